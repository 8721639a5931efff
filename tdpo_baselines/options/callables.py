"""Environments that a user's callable makes.

`--env module:function` names one. Of one that is passed from Python, Gymnasium knows an id that names the callable and
its source. The callable itself is never written to a file: the ranks get it from the process that starts them, and
whoever resumes or evaluates the run passes it again.
"""

import functools
import hashlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

PREFIX = "callable/"
PLAIN_TYPES = (bool, int, float, str, type(None))  # of options that config.json can hold
OTHERS = (sys.prefix, sys.base_prefix, "<frozen", str(Path(__file__).parent.parent))  # begin files that are no user's


def register(make: Callable, name: str | None = None) -> str:
    """Let Gymnasium know an environment by its callable; return its id."""
    import gymnasium

    name = name or name_of(make)
    gymnasium.registry[name] = specify(make, name)
    return name


def specify(make: Callable, name: str) -> Any:
    """Return Gymnasium's specification of what a callable makes. Plain defaults of its parameters become options."""
    from gymnasium.envs.registration import EnvSpec

    parameters = inspect.signature(make).parameters
    if "delay_steps" in parameters:
        raise ValueError(f"{name}: every environment has an option delay_steps; give the parameter another name")
    options = {p.name: p.default for p in parameters.values() if isinstance(p.default, PLAIN_TYPES)}
    return EnvSpec(name, functools.partial(_make, make, name), kwargs=options, disable_env_checker=True)


def parameters_of(spec: Any) -> Any:
    """Return the parameters of the callable that makes an environment, or None if a library makes it."""
    entry = spec.entry_point
    is_ours = isinstance(entry, functools.partial) and entry.func is _make
    return inspect.signature(entry.args[0]).parameters if is_ours else None


def _make(make: Callable, name: str, /, **options) -> Any:
    """Return the environment that a callable makes, or the environment of the kernel that it makes."""
    try:
        made = make(**options)
    except ValueError:
        raise
    except Exception as error:  # others' code may raise anything
        raise ValueError(f"{name} cannot be made with {options or 'no options'}: {explain(error)}") from error
    is_kernel = isinstance(made, import_module("envs.kernel").Kernel)
    return import_module("envs.gym_env").KernelEnv(made) if is_kernel else made


def import_named(module: str) -> Any:
    """Import a module that the user names, from Python's path or else from the present folder."""
    root, here = module.partition(".")[0], os.getcwd()
    if find_spec(root) is None and PathFinder.find_spec(root, [here]) is not None:
        sys.path.append(here)  # last, so that its files hide no other module
    try:
        return import_module(module)
    except Exception as error:  # others' code may raise anything
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise  # there is no such module
        raise ValueError(f"{module} cannot be imported: {explain(error)}") from error


def explain(error: Exception) -> str:
    """Return the kind and the text of an error, with the last line of a user's code that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OTHERS)]
    has_place = not frames or isinstance(error, SyntaxError)
    where = "" if has_place else f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


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
