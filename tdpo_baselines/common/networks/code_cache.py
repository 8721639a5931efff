"""Compiled functions on disk. The cache only saves time: whatever is wrong with it, the function is compiled instead.

Numba's own cache keeps an index beside the data; a torn file of either ends the program, and two processes that add to
one index may mix up their data. Here every signature has a file of its own, whose name says everything it was compiled
from and for, and whose contents begin with their checksum. It is written under another name and renamed.

The contents are a pickle, which executes code when it is loaded. So a file is read only if it belongs to this user, to
root or to the owner of the source, and nobody else may write to it. Nothing is unpickled before its checksum fits.
"""

import hashlib
import os
import pickle
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from ..parallel import launcher

MAX_BYTES = 2**28  # of one compiled function; most have some 100 kB
REMEDY = "set NUMBA_CACHE_DIR to a folder of your own with some free space"
_has_warned = False


def cached_jit(**options) -> Callable:
    """Return a decorator that compiles like `numba.njit(cache=True, **options)`."""

    def decorate(function: Callable) -> Any:
        dispatcher: Any = numba.jit(**{"nopython": True, **options})(function)
        dispatcher._cache = CodeCache(function)
        return dispatcher

    return decorate


class CodeCache:
    """The cache of one function, with the interface that numba's dispatcher expects."""

    def __init__(self, function: Any):
        self._function = function

    @cached_property
    def _numba(self) -> FunctionCache:
        """Numba's cache of the function: it finds the folder and turns code into bytes. Made with the first use."""
        return FunctionCache(self._function)

    @property
    def cache_path(self) -> str | None:
        """The folder, or None if there is none that can be written to."""
        try:
            return self._numba.cache_path
        except (OSError, RuntimeError):
            return None

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function of a signature, or None if the cache has none that can be used."""
        target_context.refresh()
        try:
            path, key = self._locate(sig, target_context.codegen())
            with suppress(FileNotFoundError):
                found, code = pickle.loads(read_checked(path, self._owners()))
                return self._numba._impl.rebuild(target_context, code) if found == key else None
        except Exception as error:  # unpickling and linking may raise anything
            warn(self.cache_path, error)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled function of a signature."""
        try:
            if self._numba._impl.check_cachable(data):
                path, key = self._locate(sig, data.codegen)
                write_checked(path, dumps((key, self._numba._impl.reduce(data))))
        except Exception as error:
            warn(self.cache_path, error)

    def _locate(self, sig: Any, codegen: Any) -> tuple[Path, tuple]:
        """Return the file of a signature, and what it must hold code for: versions, source, signature, processor."""
        stamp = self._numba._impl.locator.get_source_stamp()
        key = (numba.__version__, stamp, self._numba._index_key(sig, codegen))
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return Path(self._numba.cache_path) / f"{self._numba._impl.filename_base}.{digest}.nbc", key

    def _owners(self) -> set[int]:
        return {os.getuid(), 0, os.stat(self._function.__code__.co_filename).st_uid}


def read_checked(path: Path, owners: set[int]) -> bytes:
    """Return the contents that `write_checked` wrote; raise OSError or ValueError if they may be someone else's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid not in owners or about.st_mode & 0o022:
            raise PermissionError(f"others may write to {path.name}")
        contents = file.read(MAX_BYTES)
    if hashlib.sha256(contents[32:]).digest() != contents[:32]:
        raise ValueError(f"{path.name} is damaged")
    return contents[32:]


def write_checked(path: Path, contents: bytes) -> None:
    """Write contents with their checksum. Processes that write at the same time do not disturb each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
            os.fchmod(file.fileno(), 0o644)  # not for others to write, whatever the umask
            file.write(hashlib.sha256(contents).digest() + contents)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def warn(folder: str | None, error: Exception) -> None:
    """Print once, on rank 0, that compiled code cannot be kept, and what to do."""
    global _has_warned
    if not _has_warned and not launcher.rank():
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        where = f"in {folder}" if folder else "anywhere"
        print(f"warning: compiled code cannot be cached {where} ({reason}); {REMEDY}", file=sys.stderr, flush=True)
    _has_warned = True
