"""TensorFlow checkpoints of a state: arrays by component and name, and texts. Each has a folder of its own.

`state["policy"]["theta"]` is `policy/theta/.ATTRIBUTES/VARIABLE_VALUE` for `tf.train.load_checkpoint(FOLDER/state)`.
A checkpoint appears under its name only when it is complete, so a kill at any moment leaves the ones before it intact.
TensorFlow stores a checksum with every array; a checkpoint that fails it is skipped. Nothing is ever unpickled.
"""

import contextlib
import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..common.parallel.tensorflow_setup import load_tensorflow
from .upgrade import is_old, upgrade

_PREFIX = "iteration-"
_FILES = "state"
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # TensorFlow's name for the value of a variable


def save(folder: Path, iteration: int, state: dict[str, Any], *, keep: int) -> None:
    """Write `state` as folder/iteration-N and remove all but the newest `keep`."""
    tf = load_tensorflow()
    target = folder / f"{_PREFIX}{iteration:09d}"
    partial = folder / f".partial-{os.getpid()}"
    try:
        for left_by_killed in folder.glob(".partial-*"):
            shutil.rmtree(left_by_killed, ignore_errors=True)
        partial.mkdir()  # fails if the folder has disappeared, which must not be created again
        with _require_folder(folder):
            variables = tf.nest.map_structure(lambda value: tf.Variable(_exact(value), trainable=False), state)
            tf.train.Checkpoint(**variables).write(str(partial / _FILES))
        _sync(partial)
        newer_or_same = [path for path in _newest_first(folder) if path >= target]  # unreadable: they were skipped
        for path in newer_or_same:
            shutil.rmtree(path)
        partial.rename(target)
        _sync(folder)
        for old in _newest_first(folder)[keep:]:
            shutil.rmtree(old)
    except (OSError, tf.errors.OpError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        fate = "the ones before it are intact" if folder.exists() else "its folder has disappeared"
        raise OSError(f"cannot write checkpoint {target}: {_reason(error)}; {fate}") from error


@contextlib.contextmanager
def _require_folder(folder: Path) -> Iterator[None]:
    """Raise FileNotFoundError if the folder is removed meanwhile; TensorFlow would create it again."""
    before = os.open(folder, os.O_RDONLY)
    try:
        yield
        if not os.path.samestat(os.fstat(before), os.stat(folder)):
            shutil.rmtree(folder)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()  # if it is empty
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    finally:
        os.close(before)


def load(path: Path) -> dict[str, Any]:
    """Load one checkpoint; raise OSError if it is incomplete, corrupt or not a checkpoint."""
    tf = load_tensorflow()
    try:
        reader = tf.train.load_checkpoint(str(path / _FILES))
        names = [key.removesuffix(_SUFFIX) for key in reader.get_variable_to_shape_map() if key.endswith(_SUFFIX)]
        state = _nest({name: _value(reader.get_tensor(name + _SUFFIX)) for name in names})
    except Exception as error:  # TensorFlow raises many kinds, by the kind of damage
        raise OSError(f"{path} is torn or corrupt ({_reason(error)})") from error
    return upgrade(state) if is_old(state) else state


def flatten(state: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a state by their names in the file, such as "policy/theta"."""
    return {f"{component}/{name}": value for component, arrays in state.items() for name, value in arrays.items()}


def _nest(flat: dict[str, Any]) -> dict[str, Any]:
    """Return the values by component and name; names without a component stay at the top."""
    state: dict[str, Any] = {}
    for path, value in flat.items():
        component, _, name = path.rpartition("/")
        (state.setdefault(component, {}) if component else state)[name] = value
    return state


def load_newest(folder: Path) -> dict[str, Any] | None:
    """Load the newest readable checkpoint, warning of newer ones that are not; return None if there is none at all."""
    paths = _newest_first(folder)
    for path in paths:
        try:
            return load(path)
        except OSError as error:
            print(f"warning: {error}", file=sys.stderr)
    if paths:
        raise OSError(f"none of the checkpoints in {folder} can be read; restore one, or pass another --log_dir")
    return None


def is_checkpoint(path: Path) -> bool:
    """Return whether the path is the folder of one checkpoint."""
    return (path / f"{_FILES}.index").is_file()


def has_checkpoints(folder: Path) -> bool:
    """Return whether the folder holds checkpoints itself."""
    return bool(_newest_first(folder))


def has_iteration(folder: Path, iteration: int) -> bool:
    """Return whether the folder holds the checkpoint of an iteration."""
    return is_checkpoint(folder / f"{_PREFIX}{iteration:09d}")


def clear(folder: Path) -> None:
    """Remove all checkpoints."""
    for path in _newest_first(folder):
        shutil.rmtree(path)


def _newest_first(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob(f"{_PREFIX}*") if path.is_dir()), reverse=True)


def _exact(value) -> np.ndarray | str:
    """Return an array of the value's own precision; TensorFlow would make a number float32."""
    return value if isinstance(value, str) else np.asarray(value)


def _value(tensor) -> np.ndarray | str:
    return tensor.decode() if isinstance(tensor, bytes) else np.asarray(tensor)


def _sync(folder: Path) -> None:
    for path in [*(path for path in folder.iterdir() if path.is_file()), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _reason(error: Exception) -> str:
    text = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)
    return re.sub(r"{{.*?}}|\[Op:.*?\]", "", str(text).splitlines()[0]).strip()
