"""Caching compiled code on disk by content.

Numba's own cache notices a change of the function's file, not of the files of the functions that it
calls. Here the function gets a name that changes with any source file in its folder.
"""

import hashlib
from pathlib import Path
from types import FunctionType

from numba import njit

_made: dict = {}


def cached(function, **bound):
    """The numba function again, with a cache on disk that is never stale, and with these globals of its own:
    numbers, and functions that were themselves made here."""
    python = function.py_func
    digest = hashlib.sha256()
    for path in sorted(Path(python.__code__.co_filename).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for name in sorted(bound):
        digest.update(f"{name}={getattr(bound[name], '__name__', bound[name])};".encode())
    name = f"{python.__name__}_{digest.hexdigest()[:16]}"
    if name not in _made:
        copy = FunctionType(python.__code__, {**python.__globals__, **bound}, name)
        copy.__qualname__ = name
        _made[name] = njit(cache=True, error_model="numpy")(copy)
    return _made[name]
