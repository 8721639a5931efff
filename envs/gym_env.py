"""Gymnasium environments made from kernels: the same compiled physics, one Python call per step."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np

from . import IDS
from .action_delay import delay_actions
from .kernel import Kernel
from .ranges import randomise as apply_ranges
from .rehearsal import rehearse

KERNELS = {
    kwargs["kernel"] for kwargs in IDS.values()
}  # only these are imported: names may come from an untrusted file


class KernelEnv(gymnasium.Env):
    """A `Kernel` as a Gymnasium environment. Read `env.unwrapped.state` to save its state, assign it to restore."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012
    recipe: tuple | None = None  # arguments of `make`, for a copy in another process

    def __init__(self, kernel: Kernel, render_mode: str | None = None):
        if kernel.render is None:
            self.metadata = {"render_modes": []}
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be None or in {self.metadata['render_modes']}, got {render_mode!r}")
        self.kernel = rehearse(kernel)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(kernel.observation_low, kernel.observation_high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(kernel.action_low, kernel.action_high, dtype=np.float64)
        self._state = np.zeros(kernel.state_size)
        self._num_steps = 0

    @property
    def state(self) -> np.ndarray:
        """A copy of the kernel's state with the step count at the end."""
        return np.append(self._state, self._num_steps)

    @state.setter
    def state(self, saved: np.ndarray) -> None:
        if np.shape(saved) != (self.kernel.state_size + 1,):
            raise ValueError(
                f"state must have {self.kernel.state_size + 1} numbers, got shape {np.shape(saved)}; "
                "assign a value that `env.unwrapped.state` returned"
            )
        self._state = np.array(saved[:-1], dtype=np.float64)
        self._num_steps = int(saved[-1])

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Start an episode. Options: `start`, a point of the unit cube, or any of the kernel's start values."""
        super().reset(seed=seed)
        values = dict(options or {})
        start = self.np_random.random(self.kernel.start_size)
        if "start" in values:
            start = _check_start(values.pop("start"), self.kernel.start_size)
        self.kernel.reset(self.kernel.params, start, self._state)
        if values:
            self.kernel.place(self._state, values)
        self._num_steps = 0
        return self._observe(), self._describe()

    def step(self, action):
        if self._num_steps >= self.kernel.horizon:
            raise gymnasium.error.ResetNeeded(f"the episode of {self.kernel.horizon} steps is over; call reset()")
        executed = np.array(action, dtype=np.float64).reshape(self.kernel.action_size)
        reward, terminated = self.kernel.step(self.kernel.params, self._state, executed)
        self._num_steps += 1
        is_at_horizon = self._num_steps >= self.kernel.horizon
        terminated = bool(terminated) or (is_at_horizon and self.kernel.is_horizon_terminal)
        truncated = is_at_horizon and not self.kernel.is_horizon_terminal
        info = self._describe()
        if (terminated or truncated) and self.kernel.measure is not None:
            info |= self.kernel.measure(self.kernel.params, self._state)
        return self._observe(), float(reward), terminated, truncated, info

    def render(self):
        """Return a picture of the state, [height, width, 3] in 0..255."""
        if self.render_mode is None:
            raise gymnasium.error.Error('nothing to render: make the environment with render_mode="rgb_array"')
        return self.kernel.render(self.kernel.params, self._state)

    def __reduce__(self):
        """Pickle options, state and generator; compiled code and memory addresses are made anew."""
        if self.recipe is None:
            raise TypeError("only an environment made by gymnasium.make can be pickled")
        return _remake, (self.recipe, self.state, self.np_random)

    def _describe(self) -> dict:
        return {} if self.kernel.describe is None else self.kernel.describe(self.kernel.params, self._state)

    def _observe(self) -> np.ndarray:
        observation = np.empty(self.kernel.observation_size)
        self.kernel.observe(self.kernel.params, self._state, observation)
        return observation


def make(
    kernel: str,
    render_mode: str | None = None,
    delay_steps: int | tuple[int, int] = 0,
    randomise: Mapping[str, Any] | None = None,
    **options,
) -> KernelEnv:
    """Make the environment of an id: `kernel` is one of KERNELS and is called with the user's options.

    `randomise` has ranges of QUANTITIES (see ranges.py), `delay_steps` may be one.
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(sorted(KERNELS))}, got {kernel!r}")
    module, function = kernel.split(":")
    made = apply_ranges(getattr(import_module(module), function)(**options), randomise or {})
    env = KernelEnv(delay_actions(made, delay_steps), render_mode)
    env.recipe = (kernel, render_mode, {"delay_steps": delay_steps, "randomise": randomise, **options})
    return env


def _remake(recipe: tuple, state: np.ndarray, generator: np.random.Generator) -> KernelEnv:
    kernel, render_mode, options = recipe
    env = make(kernel, render_mode, **options)
    env.state, env.np_random = state, generator
    return env


def _check_start(start, size: int) -> np.ndarray:
    """Return a point of the unit cube, or raise ValueError."""
    point = np.asarray(start, dtype=np.float64)
    if point.shape != (size,) or not np.all((point >= 0) & (point <= 1)):
        raise ValueError(f"start must be {size} numbers between 0 and 1, got {start!r}")
    return point
