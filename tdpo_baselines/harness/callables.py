"""Environments that a user's callable makes: Gymnasium knows them by an id that names the callable and its source.

The callable itself is never written to a file. The ranks get it from the process that starts them, and whoever resumes
or evaluates the run passes it again.
"""

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from typing import Any, BinaryIO

PREFIX = "callable/"
PLAIN_TYPES = (bool, int, float, str, type(None))  # of options that config.json can hold


def register(make: Callable, name: str | None = None) -> str:
    """Let Gymnasium know an environment by its callable; return its id. Plain defaults of parameters become options."""
    import gymnasium

    name = name or name_of(make)
    parameters = inspect.signature(make).parameters.values()
    options = {p.name: p.default for p in parameters if isinstance(p.default, PLAIN_TYPES)}
    gymnasium.registry.pop(name, None)
    gymnasium.register(name, entry_point=make, kwargs=options, disable_env_checker=True)
    return name


def pickle(make: Callable) -> bytes:
    """Return a callable and its id for another process, after their length; raise ValueError if it cannot be sent."""
    import cloudpickle

    try:
        pickled = cloudpickle.dumps((name_of(make), make))
    except Exception as error:  # objects may raise anything
        raise ValueError(
            f"env must be a callable that can be sent to other processes, got {make!r} "
            f"({type(error).__name__}: {error}); create such objects inside of the callable"
        ) from error
    return len(pickled).to_bytes(8, "big") + pickled


def read(pipe: BinaryIO) -> bytes:
    """Read what `pickle` returned, without its length. mpirun passes on what comes through a pipe, but not its end."""
    return pipe.read(int.from_bytes(pipe.read(8), "big"))


def unpickle(pickled: bytes) -> None:
    """Register the callable that the process which started this one sent; raise ValueError if it cannot be loaded."""
    import cloudpickle

    try:
        name, make = cloudpickle.loads(pickled)
    except Exception as error:
        raise ValueError(
            f"env cannot be loaded by the ranks ({type(error).__name__}: {error}); they must find its modules"
        ) from error
    register(make, name)


def without_hash(name: str) -> str:
    """Return the part of an environment's id that stays when the source of its callable changes."""
    return name.rpartition("-")[0] if name.startswith(PREFIX) else name


def name_of(make: Callable) -> str:
    """Return "callable/", the qualified name of a callable, and a hash of its source."""
    bound = repr((make.args, make.keywords)) if isinstance(make, functools.partial) else ""
    inner: Any = inspect.unwrap(make.func if isinstance(make, functools.partial) else make)
    if not (inspect.isroutine(inner) or inspect.isclass(inner)):
        inner = type(inner)
    try:
        digest = hashlib.sha256((inspect.getsource(inner) + bound).encode()).hexdigest()[:12]
    except (OSError, TypeError):  # typed at a prompt
        digest = "unknown"
    qualified = re.sub(r"[^\w.]", "", f"{inner.__module__}.{inner.__qualname__}")  # without <locals>
    return f"{PREFIX}{qualified}-{digest}"
