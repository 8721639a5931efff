"""Try the functions of a task before it is used: in Python, which checks what compiled code does not, then compiled."""

from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from ..kernel import Kernel
from ..rehearsal import as_python, call, naming_faults, require_number
from .dynamics import TaskParams, is_bounded
from .views import Layout

NUM_STEPS = 20  # of an episode
NUM_EPISODES = 2
is_bounded_in_python = as_python(is_bounded)  # spares its compilation at each start


class Trial:
    """Episodes in Python with random starts and actions."""

    def __init__(self, functions: Mapping[str, Callable], task: TaskParams, model, data, layout: Layout):
        self._functions = {name: as_python(function) for name, function in functions.items()}
        self._task, self._model, self._data = task, model, data
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
        if not (is_bounded_in_python(self._data.qpos) and is_bounded_in_python(self._data.qvel)):
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
        return call(name, self._functions[name], self._task.own, self._view, *arguments)

    def _check_number(self, name: str, value: Any) -> None:
        """Raise ValueError unless a value is a finite number."""
        require_number(name, value, int(self._view.step[0]))


def rehearse(functions, task: TaskParams, model, data, layout: Layout, names, num_steps: int, start_size: int) -> None:
    """Raise ValueError if the functions fail, leave observations unset, or return something else than numbers."""
    trial = Trial(functions, task, model, data, layout)
    generator = np.random.default_rng(0)
    for _ in range(NUM_EPISODES):
        trial.play(generator, start_size, num_steps, names)


def compile_now(functions: Mapping[str, Callable], kernel: Kernel) -> None:
    """Compile a kernel; raise ValueError with the function, file and line that numba cannot compile."""
    state = np.zeros(kernel.state_size)
    with naming_faults(functions):
        kernel.reset(kernel.params, np.full(kernel.start_size, 0.5), state)
        kernel.step(kernel.params, state, np.zeros(kernel.action_size))
