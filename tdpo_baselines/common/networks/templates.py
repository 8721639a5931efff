"""Compiled functions whose constants and callees are bound when they are made, cached on disk.

A closure would do the same, but numba sees a new one in every process and compiles it again. Numba's own cache also
misses changes in other files. Here a function gets a namespace of its own, in which constants are known to the
compiler, and a name that changes with everything it was made from, so that a stale cache is never used.

Functions below a template must not be `cached_jit` themselves if they call functions of other files. Helpers of an
intrinsic must be in its file.
"""

import hashlib
import inspect
import linecache
import marshal
from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .code_cache import cached_jit

_compiled: dict[str, Any] = {}


def compile_template(template, **bound):
    """Return a compiled `template` with `bound` (numbers and numba functions) added to its globals.

    `template` is a plain function or a numba function, whose options it keeps.
    """
    function = inspect.unwrap(template)
    names = {**function.__globals__, **bound}
    digest = hashlib.sha256("\n".join(_list_sources(function, names, set())).encode()).hexdigest()[:16]
    name = f"{function.__name__.strip('_')}_{digest}"
    if name not in _compiled:
        copy = FunctionType(function.__code__, names, name, function.__defaults__, function.__closure__)
        copy.__qualname__, copy.__module__ = name, function.__module__
        options = {**getattr(template, "targetoptions", {}), "error_model": "numpy"}
        _compiled[name] = cached_jit(**options)(copy)
    return _compiled[name]


def _list_sources(function: FunctionType, names: dict[str, Any], seen: set[int]) -> Iterator[str]:
    """Yield the file of `function` and what it uses of `names`: numbers, and numba functions with their own sources."""
    seen.add(id(function))
    yield f"{function.__module__}.{function.__qualname__} in {_source_digest(function.__code__)}"
    for name, value in sorted(_used_values(function, names).items()):
        if isinstance(value, (int, float, complex, str, tuple, np.generic)):
            yield f"{name} = {value!r}"
        elif isinstance(value, np.ndarray):
            yield f"{name} = {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        elif isinstance(value, type) and hasattr(value, "_fields"):  # a NamedTuple
            yield f"{name} = {value._fields}"
        elif type(value).__module__.startswith("numba.") and hasattr(value, "__wrapped__"):  # function or intrinsic
            callee = inspect.unwrap(value)
            yield f"{name} = {callee.__module__}.{callee.__qualname__}"
            if callee.__name__ not in _compiled and id(callee) not in seen:  # the name of a compiled one says it all
                yield from _list_sources(callee, callee.__globals__, seen)


def _used_values(function: FunctionType, names: dict[str, Any]) -> dict[str, Any]:
    """Return the globals and closure variables that `function` refers to, and the members of modules among them."""
    used = set(_names_in(function.__code__))
    values = {name: names[name] for name in used & names.keys()}
    for name, value in list(values.items()):
        if isinstance(value, ModuleType):
            values |= {f"{name}.{member}": vars(value)[member] for member in used & vars(value).keys()}
    cells = function.__closure__ or ()
    return values | {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells)}


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function's code refers to, nested functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


@cache
def _source_digest(code: CodeType) -> str:
    """Return a hash of the file that the code is from, or of the code itself if there is no file."""
    linecache.checkcache(code.co_filename)  # a module may have been edited and reloaded
    source = "".join(linecache.getlines(code.co_filename)).encode() or marshal.dumps(code)
    return hashlib.sha256(source).hexdigest()
