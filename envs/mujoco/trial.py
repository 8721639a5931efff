"""Try the functions of a task before it is used: in Python, which checks what compiled code does not, then compiled."""

import inspect
import math
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numba.core.errors import NumbaError

from ..kernel import Kernel
from .dynamics import TaskParams, is_bounded
from .views import Layout

NUM_STEPS = 20  # of an episode
NUM_EPISODES = 2


class Trial:
    """Episodes in Python with random starts and actions."""

    def __init__(self, functions: Mapping[str, Callable], task: TaskParams, model, data, layout: Layout):
        self._functions, self._task, self._model, self._data = functions, task, model, data
        self._state = np.zeros(layout.state_size)
        self._view = layout.view(self._state)
        self._kept = [(getattr(self._view, name), layout.found[name]) for name in layout.index if name in layout.found]

    def play(self, generator: np.random.Generator, start_size: int, num_steps: int, names: tuple[str, ...]) -> None:
        """Play an episode; raise ValueError for the first thing that is wrong."""
        self._state[:] = 0.0
        mujoco.mj_resetData(self._model, self._data)
        self._call("place", generator.random(start_size))
        mujoco.mj_forward(self._model, self._data)
        self._observe(names)
        for _ in range(num_steps):
            action = generator.uniform(self._task.low, self._task.high)
            self._step(action)
            self._check_number("reward", self._call("reward", action))
            if self._call("is_over"):
                return
            self._observe(names)

    def _step(self, action: np.ndarray) -> None:
        self._view.step[0] += 1
        for _ in range(self._task.frame_skip):
            self._call("actuate", action)
            mujoco.mj_step(self._model, self._data)
        if self._task.needs_late_forces:
            mujoco.mj_rnePostConstraint(self._model, self._data)
        if not (is_bounded(self._data.qpos) and is_bounded(self._data.qvel)):
            raise ValueError(
                f"model: the simulation diverges in step {int(self._view.step[0])} of random actions; "
                "choose a smaller timestep in <option>, more armature or damping, or a smaller ctrlrange"
            )

    def _observe(self, names: tuple[str, ...]) -> None:
        observation = np.full(len(names), np.nan)
        self._call("observe", observation)
        for name, value in zip(names, observation):
            self._check_number(f"observe: {name}", value)
        for kept, present in self._kept:
            kept[:] = present

    def _call(self, name: str, *arguments) -> Any:
        """Return what a function returns in Python; raise ValueError with its file and line if it raises."""
        function = plain(self._functions[name])
        try:
            return function(self._task.own, self._view, *arguments)
        except Exception as error:  # a user's code may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{name}: {reason} ({Path(frame.filename).name}, line {frame.lineno})") from error

    def _check_number(self, name: str, value: Any) -> None:
        """Raise ValueError unless a value is a finite number."""
        try:
            is_finite = math.isfinite(value)
        except TypeError:
            is_finite = False
        if not is_finite:
            raise ValueError(f"{name} must be a finite number, got {value} in step {int(self._view.step[0])}")


def rehearse(functions, task: TaskParams, model, data, layout: Layout, names, num_steps: int, start_size: int) -> None:
    """Raise ValueError if the functions fail, leave observations unset, or return something else than numbers."""
    trial = Trial(functions, task, model, data, layout)
    generator = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for _ in range(NUM_EPISODES):
            trial.play(generator, start_size, num_steps, names)


def compile_now(functions: Mapping[str, Callable], kernel: Kernel) -> None:
    """Compile a kernel; raise ValueError with the function, file and line that numba cannot compile."""
    state = np.zeros(kernel.state_size)
    try:
        kernel.reset(kernel.params, np.full(kernel.start_size, 0.5), state)
        kernel.step(kernel.params, state, np.zeros(kernel.action_size))
    except NumbaError as error:
        text = re.sub(r"\x1b\[\d*m", "", str(error))  # without colours
        reasons = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("Failed in ")]
        where = next(
            filter(None, (_locate(name, function, text) for name, function in functions.items())), "a function"
        )
        hint = "; functions that it calls need @numba.njit" if reasons[0].endswith("<class 'function'>") else ""
        raise ValueError(f"{where} cannot be compiled: {reasons[0]}{hint}") from error


def _locate(name: str, function: Callable, text: str) -> str:
    """Return a function's name with the file and line that numba's message names, or '' if it names another one."""
    lines, first = inspect.getsourcelines(plain(function))
    file = Path(plain(function).__code__.co_filename).name
    for hit in re.findall(rf'{re.escape(file)}(?:", line | \()(\d+)', text):
        if first <= int(hit) < first + len(lines):
            return f"{name} ({file}, line {hit})"
    return ""


def plain(function: Callable) -> Any:
    """Return the Python function of a compiled one."""
    return inspect.unwrap(function)
