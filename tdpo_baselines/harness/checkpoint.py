"""TensorFlow checkpoints of named arrays and texts, each in a folder of its own.

A checkpoint appears under its name only when it is complete, so a kill at any moment leaves the ones
before it. TensorFlow stores a checksum with every array; one that does not fit is skipped on loading.
Nothing is ever unpickled.
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

State = dict[str, Any]  # arrays and texts

_PREFIX = "iteration-"
_FILES = "state"
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # how TensorFlow calls the value of a variable


def save(folder: Path, iteration: int, state: State, *, keep: int) -> None:
    """Write `state` as folder/iteration-N and remove all but the newest `keep`."""
    tf = load_tensorflow()
    target = folder / f"{_PREFIX}{iteration:09d}"
    partial = folder / f".partial-{os.getpid()}"
    try:
        remove_partial(folder)
        partial.mkdir()  # the folder must be there: one that has disappeared is not to be made anew
        with _still_there(folder):
            variables = {name: tf.Variable(value, trainable=False) for name, value in state.items()}
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
def _still_there(folder: Path) -> Iterator[None]:
    """TensorFlow makes folders that it misses: what it made of one that was removed meanwhile is removed again."""
    before = os.open(folder, os.O_RDONLY)
    try:
        yield
        if not os.path.samestat(os.fstat(before), os.stat(folder)):
            shutil.rmtree(folder)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()  # if there is nothing else
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    finally:
        os.close(before)


def load(path: Path) -> State:
    """Everything in one checkpoint; OSError if it is torn, corrupt or no checkpoint."""
    tf = load_tensorflow()
    try:
        reader = tf.train.load_checkpoint(str(path / _FILES))
        names = [key.removesuffix(_SUFFIX) for key in reader.get_variable_to_shape_map() if key.endswith(_SUFFIX)]
        return {name: _value(reader.get_tensor(name + _SUFFIX)) for name in names}
    except Exception as error:  # TensorFlow raises many kinds, by the kind of damage
        raise OSError(f"{path} is torn or corrupt ({_reason(error)})") from error


def load_newest(folder: Path) -> State | None:
    """The newest checkpoint that can be read, with a warning for each that cannot; None if there is none at all."""
    paths = _newest_first(folder)
    for path in paths:
        try:
            return load(path)
        except OSError as error:
            print(f"warning: {error}", file=sys.stderr)
    if paths:
        raise OSError(f"none of the checkpoints in {folder} can be read; restore one, or start anew elsewhere")
    return None


def is_checkpoint(path: Path) -> bool:
    return (path / f"{_FILES}.index").is_file()


def clear(folder: Path) -> None:
    """Remove all checkpoints."""
    for path in _newest_first(folder):
        shutil.rmtree(path)


def remove_partial(folder: Path) -> None:
    """Remove what a killed writer left."""
    for partial in folder.glob(".partial-*"):
        shutil.rmtree(partial, ignore_errors=True)


def _newest_first(folder: Path) -> list[Path]:
    return sorted((path for path in folder.glob(f"{_PREFIX}*") if path.is_dir()), reverse=True)


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
