"""Compiling templates: numba functions whose constants and callees are bound when they are made.

A closure would do the same but cannot be cached on disk, because numba sees a new one in every
process. Here a template's code gets a namespace of its own, in which constants are known to the
compiler, and a name that changes with all that went into it, so that a stale cache is never used.
"""

import hashlib
import inspect
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher

_made: dict[str, Any] = {}


def compile_template(template, **bound):
    """The template as a numba function with `bound` as its globals: numbers and numba functions."""
    names = {**template.__globals__, **bound}
    digest = hashlib.sha256(_source(template))
    for name in sorted(bound):
        digest.update(f"{name}={_identity(bound[name])};".encode())
    for name in sorted(set(template.__code__.co_names) - set(bound)):
        if hasattr(names.get(name), "__wrapped__"):  # a function or an intrinsic of numba
            digest.update(_source(names[name]))
    name = f"{template.__name__.strip('_')}_{digest.hexdigest()[:16]}"
    if name not in _made:
        function = FunctionType(template.__code__, names, name)
        function.__qualname__ = name
        function.__module__ = template.__module__
        _made[name] = njit(cache=True, error_model="numpy")(function)
    return _made[name]


def _identity(value) -> str:
    """A number itself; a function by its name and the content of its file, which holds its helpers."""
    if not isinstance(value, CPUDispatcher):
        return repr(value)
    return f"{value.py_func.__qualname__}:{hashlib.sha256(_source(value)).hexdigest()}"


def _source(function) -> bytes:
    return Path(inspect.getfile(inspect.unwrap(function))).read_bytes()
