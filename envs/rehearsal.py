"""Try a kernel that a user wrote before it is used.

Compiled code does not check the bounds of arrays, and numba explains what it cannot compile on pages. So the functions
run in Python first, and what is wrong with them is said in one line with their file and line.
"""

import inspect
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from tdpo_baselines.common.networks.templates import compile_template

from .kernel import Kernel

NUM_STEPS = 20
ONLY_IN_PYTHON = (TypeError, NotImplementedError, ZeroDivisionError)  # also raised where compiled code is sound


def rehearse(kernel: Kernel) -> Kernel:
    """Return a kernel with its functions compiled and kept on disk; raise ValueError if they are wrong."""
    functions = {name: getattr(kernel, name) for name in ("reset", "observe", "step")}
    if all(inspect.unwrap(f).__module__.startswith("envs.") for f in functions.values()):
        return kernel  # ours, tested elsewhere
    in_python: dict[str, Any] = {name: as_python(function) for name, function in functions.items()}
    try:
        play(replace(kernel, **in_python))
    except ValueError as error:
        if not isinstance(error.__cause__, ONLY_IN_PYTHON):
            raise
    templates: dict[str, Any] = {name: compile_template(function) for name, function in functions.items()}
    compiled = replace(kernel, **templates)
    with naming_faults(functions):
        play(compiled)
    return compiled


def play(kernel: Kernel) -> None:
    """Play the first steps of an episode with random actions; raise ValueError for the first thing that is wrong."""
    generator = np.random.default_rng(0)
    state = np.zeros(kernel.state_size)
    call("reset", kernel.reset, kernel.params, generator.random(kernel.start_size), state)
    for step in range(min(kernel.horizon, NUM_STEPS)):
        observation = np.full(kernel.observation_size, np.nan)
        call("observe", kernel.observe, kernel.params, state, observation)
        for i, value in enumerate(observation):
            require_number(f"observe: observation[{i}]", value, step)
        action = generator.uniform(-1.0, 1.0, kernel.action_size).clip(kernel.action_low, kernel.action_high)
        result = call("step", kernel.step, kernel.params, state, action)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(f"step must return (reward, has_ended), got {result!r}")
        require_number("step: the reward", result[0], step + 1)
        if result[1]:
            return


def call(name: str, function: Callable, *arguments) -> Any:
    """Return what a function returns; raise ValueError with its file and line if it raises."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except NumbaError:
        raise
    except Exception as error:  # a user's code may raise anything
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        raise ValueError(f"{name}: {type(error).__name__}: {error} ({where})") from error


def require_number(name: str, value: Any, step: int) -> None:
    """Raise ValueError unless a value is a finite number."""
    try:
        is_finite = math.isfinite(value)
    except TypeError:
        is_finite = False
    if not is_finite:
        raise ValueError(f"{name} must be a finite number, got {value} in step {step}")


def as_python(function: Callable, made: dict[int, Callable] | None = None) -> Callable:
    """Return a function in Python that calls compiled ones in Python too; `made` are those made already."""
    made = {} if made is None else made
    plain: Any = inspect.unwrap(function)
    if id(plain) not in made:
        names = dict(plain.__globals__)
        made[id(plain)] = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
        callees = {name: names[name] for name in plain.__code__.co_names if isinstance(names.get(name), Dispatcher)}
        names.update({name: as_python(callee, made) for name, callee in callees.items()})
    return made[id(plain)]


@contextmanager
def naming_faults(functions: Mapping[str, Callable]) -> Iterator[None]:
    """Raise ValueError with the function, file and line that numba cannot compile."""
    try:
        yield
    except NumbaError as error:
        text = re.sub(r"\x1b\[\d*m", "", str(error))  # without colours
        reasons = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("Failed in ")]
        where = next(filter(None, (locate(name, f, text) for name, f in functions.items())), "a function")
        hint = "; functions that it calls need @numba.njit" if reasons[0].endswith("<class 'function'>") else ""
        raise ValueError(f"{where} cannot be compiled: {reasons[0]}{hint}") from error


def locate(name: str, function: Callable, text: str) -> str:
    """Return a function's name with the file and line that numba's message names, or '' if it names another one."""
    plain = inspect.unwrap(function)
    file = Path(plain.__code__.co_filename).name
    try:
        lines, first = inspect.getsourcelines(plain)
    except OSError:  # typed at a prompt
        return f"{name} ({file})"
    for hit in re.findall(rf'{re.escape(file)}(?:", line | \()(\d+)', text):
        if first <= int(hit) < first + len(lines):
            return f"{name} ({file}, line {hit})"
    return ""
