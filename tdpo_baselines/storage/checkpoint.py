"""TensorFlow checkpoints of a state: arrays by component and name, and texts. Each has a folder of its own.

`state["policy"]["theta"]` is `policy/theta/.ATTRIBUTES/VARIABLE_VALUE` for `tf.train.load_checkpoint(FOLDER/state)`.
A checkpoint appears under its name only when it is complete, so a kill at any moment leaves the ones before it intact.
Every array has a checksum; a checkpoint that fails it is skipped. Nothing is ever unpickled.
Writing goes through the opened folder: if that is removed or replaced meanwhile, what is in its place is left alone.
Only folders named iteration-N, and only our files in them, are ever removed.
"""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..common.files import sync_folder
from ..common.parallel.checks import require_memory
from . import bundle
from .upgrade import is_old, upgrade

REPLAY = "replay"  # component that only training needs, and the beginning of its names in old checkpoints
MAX_BYTES = 2**32  # of a checkpoint without its replay
_NAME = re.compile(r"iteration-\d{9,18}")
_PARTIAL = re.compile(r"\.partial-\d+")
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # TensorFlow's name for the value of a variable


def save(
    folder: Path, iteration: int, state: dict[str, Any], *, keep: int, is_ours: Callable[[], bool] = lambda: True
) -> None:
    """Write `state` as folder/iteration-N and remove all but the newest `keep`.

    Raise OSError if that fails, or if `is_ours` says that another run's folder has taken the place of this one.
    """
    name, partial = _name(iteration), f".partial-{os.getpid()}"
    try:
        with _opened(folder) as opened:
            if not is_ours():
                raise FileNotFoundError(0, "another folder is in its place")
            for left_by_killed in _listed(opened, _PARTIAL):
                shutil.rmtree(left_by_killed, ignore_errors=True, dir_fd=opened)
            os.mkdir(partial, dir_fd=opened)
            try:
                with _opened(partial, dir_fd=opened) as inner:
                    bundle.write(inner, {f"{key}{_SUFFIX}": value for key, value in flatten(state).items()})
                    sync_folder(inner)
                for newer_or_same in (old for old in _listed(opened, _NAME) if old >= name):  # unreadable: skipped
                    _remove(newer_or_same, opened)
                os.rename(partial, name, src_dir_fd=opened, dst_dir_fd=opened)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True, dir_fd=opened)
                raise
            sync_folder(opened)
            for old in _listed(opened, _NAME)[keep:]:
                _remove(old, opened)
    except OSError as error:
        fate = "the ones before it are intact" if folder.exists() and is_ours() else "its folder has disappeared"
        raise OSError(f"cannot write checkpoint {folder / name}: {_reason(error)}; {fate}") from error


@contextlib.contextmanager
def _opened(path: Path | str, *, dir_fd: int | None = None) -> Iterator[int]:
    """Open a folder that is no link."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        yield opened
    finally:
        os.close(opened)


def _listed(folder: int | Path, pattern: re.Pattern) -> list[str]:
    """Return the names of folders, but not of links to them, that match a pattern, in reverse order."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if pattern.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(names, reverse=True)


def _remove(name: str, opened: int) -> None:
    """Remove a checkpoint; a folder in which someone has put files of their own stays, with these, as NAME-kept-PID."""
    with _opened(name, dir_fd=opened) as inner:
        for file in (bundle.INDEX, bundle.DATA):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file, dir_fd=inner)
    try:
        os.rmdir(name, dir_fd=opened)
    except OSError:
        os.rename(name, f"{name}-kept-{os.getpid()}", src_dir_fd=opened, dst_dir_fd=opened)


def load(path: Path, *, skip: str = "", max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Load one checkpoint, without the names that begin with `skip`.

    Raise OSError if it is incomplete, corrupt, larger than `max_bytes` or not a checkpoint.
    """
    try:
        found = bundle.read_index(path).items()
        tensors = [(k, t) for k, t in found if k.endswith(_SUFFIX) and not (skip and k.startswith(skip))]
        _require_room(sum(tensor.num_bytes for _, tensor in tensors), max_bytes)
        state = _nest({name.removesuffix(_SUFFIX): value for name, value in bundle.read(path, tensors).items()})
    except (ValueError, OSError, MemoryError) as error:
        raise OSError(f"{path} is torn or corrupt ({_reason(error)})") from error
    return upgrade(state) if is_old(state) else state


def _require_room(num_bytes: int, max_bytes: int) -> None:
    if num_bytes > max_bytes:
        raise ValueError(f"its arrays have {num_bytes:,} bytes, more than the {max_bytes:,} expected")
    require_memory("its arrays", num_bytes)


def flatten(state: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a state by their names in the file, such as "policy/theta"; texts have no component."""
    flat: dict[str, Any] = {}
    for component, values in state.items():
        flat |= {f"{component}/{n}": v for n, v in values.items()} if isinstance(values, dict) else {component: values}
    return flat


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    """Return the values by component and name; names without a component stay at the top."""
    state: dict[str, Any] = {}
    for path, value in flat.items():
        component, _, name = path.rpartition("/")
        (state.setdefault(component, {}) if component else state)[name] = value
    return state


def load_newest(folder: Path, **how: Any) -> dict[str, Any] | None:
    """Load the newest readable checkpoint, warning of newer ones that are not; return None if there is none at all.

    `how` holds arguments of `load`.
    """
    paths = _newest_first(folder)
    for path in paths:
        try:
            return load(path, **how)
        except OSError as error:
            print(f"warning: {error}", file=sys.stderr)
    if paths:
        raise OSError(f"none of the checkpoints in {folder} can be read; restore one, or pass another --log_dir")
    return None


def is_checkpoint(path: Path) -> bool:
    """Return whether the path is the folder of one checkpoint."""
    return os.path.lexists(path / bundle.INDEX)


def has_checkpoints(folder: Path) -> bool:
    """Return whether the folder holds checkpoints itself."""
    return bool(_newest_first(folder))


def has_iteration(folder: Path, iteration: int) -> bool:
    """Return whether the folder holds the checkpoint of an iteration."""
    return is_checkpoint(folder / _name(iteration))


def clear(folder: Path) -> None:
    """Remove all checkpoints."""
    with _opened(folder) as opened:
        for name in _listed(opened, _NAME):
            _remove(name, opened)


def _newest_first(folder: Path) -> list[Path]:
    return [folder / name for name in _listed(folder, _NAME)]


def _name(iteration: int) -> str:
    return f"iteration-{iteration:09d}"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
