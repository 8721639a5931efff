"""Files of run folders, which may be someone else's: bounded reads of regular files, and writes that stay in place.

A link, a device or a pipe in the place of a file is refused, never followed, waited for or written to. The paths that a
user types may have links in them.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

MAX_JSON_BYTES = 2**24
MAX_JSON_DEPTH = 20
MAX_JSON_DIGITS = 19  # of a whole number
MAX_LINE = 2**16  # characters
NO_TRICKS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_to_read(path: str | Path, *, max_bytes: int | None = None, follow_links: bool = False) -> BinaryIO:
    """Open a regular file; raise ValueError if it is none, larger than `max_bytes`, or cannot be read."""
    flags = os.O_RDONLY | (NO_TRICKS & ~os.O_NOFOLLOW if follow_links else NO_TRICKS)
    try:
        file = os.fdopen(_open_regular(path, flags), "rb")
    except OSError as error:
        raise ValueError(f"cannot read {path}: {_reason(error)}") from error
    size = os.fstat(file.fileno()).st_size
    if max_bytes is not None and size > max_bytes:
        file.close()
        raise ValueError(f"cannot read {path}: it has {size:,} bytes, more than the {max_bytes:,} allowed")
    return file


def _open_regular(path: str | Path, flags: int) -> int:
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def _reason(error: OSError) -> str:
    """Return what is wrong in words."""
    named = {errno.ELOOP: "it is a symbolic link", errno.ENXIO: "it is not a regular file"}  # the latter: a pipe
    return named.get(error.errno or 0, error.strerror or str(error))


def read_lines(path: Path, *, max_bytes: int | None = None) -> Iterator[str]:
    """Yield the lines of a text, each with its "\\n"; raise ValueError at one that is too long."""
    with open_to_read(path, max_bytes=max_bytes) as file:
        while line := file.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise ValueError(f"{path} has a line of more than {MAX_LINE} bytes; it is damaged")
            yield line.decode(errors="replace")


def read_json(path: str | Path, *, follow_links: bool = True) -> dict:
    """Read a JSON object from a file."""
    path = Path(path).expanduser()
    with open_to_read(path, max_bytes=MAX_JSON_BYTES, follow_links=follow_links) as file:
        content = file.read(MAX_JSON_BYTES)
    return parse_json(content, path)


def parse_json(content: bytes | str, source: str | Path) -> dict:
    """Parse a JSON object whose nesting and whole numbers are bounded; raise ValueError if it is not one."""
    try:
        values = json.loads(content, parse_int=_parse_int)
        _check_depth(values)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source} is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{source} must hold a JSON object of options, got {type(values).__name__}")
    return values


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_JSON_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits, more than {MAX_JSON_DIGITS}")
    return int(digits)


def _check_depth(values: Any) -> None:
    """Raise ValueError if objects and lists are nested too deeply for code that follows them by recursion."""
    level = [values]
    for _ in range(MAX_JSON_DEPTH):
        nested = [value for value in level if isinstance(value, (dict, list))]
        level = [part for value in nested for part in (value.values() if isinstance(value, dict) else value)]
    if level:
        raise ValueError(f"it is nested more than {MAX_JSON_DEPTH} deep")


def replace(path: Path, parts: Iterable[str]) -> TextIO:
    """Replace a file by a text at once, on the disk when this returns; return it open for appending."""
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)  # left by a killed process
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | NO_TRICKS
    file = os.fdopen(os.open(partial, flags, 0o666), "w", encoding="utf-8", newline="")
    try:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
            file.close()
        raise
    return file


def sync_folder(folder: Path | int) -> None:
    """Force a folder's entries onto the disk."""
    descriptor = os.open(folder, os.O_RDONLY) if isinstance(folder, Path) else os.dup(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_to_append(path: Path) -> TextIO:
    """Open a file of the folder to append to it; raise OSError if it is a link, also a hard one, or no file."""
    descriptor = _open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_TRICKS)
    if os.fstat(descriptor).st_nlink != 1:
        os.close(descriptor)
        raise OSError(errno.EMLINK, "it has other names too, by hard links", str(path))
    return os.fdopen(descriptor, "a", encoding="utf-8")


def make_folder(path: Path) -> None:
    """Create a folder, unless it exists; raise OSError if a link or a file is in its place."""
    if path.is_symlink():
        raise OSError(errno.ENOTDIR, f"{path.name} is a symbolic link, which would lead out of the folder", str(path))
    path.mkdir(parents=True, exist_ok=True)


def lock(folder: Path, option: str) -> TextIO:
    """Lock a folder as long as the returned file is open; raise ValueError, naming `option`, if it is locked."""
    try:
        file = os.fdopen(_open_regular(folder / ".lock", os.O_RDWR | os.O_CREAT | NO_TRICKS), "r+")
    except OSError as error:
        raise ValueError(f"cannot open {folder}/.lock: {_reason(error)}; remove it or pass another {option}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise ValueError(f"another process is training in {folder}; wait for it or pass another {option}") from error
    except OSError as error:  # a file system without locks
        reason = f"{folder} cannot be locked ({error.strerror}); do not start a second run there"
        print(f"warning: {reason}", file=sys.stderr)
    return file
