"""What an environment is: numbers, a flat state, and three compiled functions.

    reset(params, start, state)              places the state; `start` is a point of the unit cube
    observe(params, state, observation)      fills the observation
    step(params, state, action)              advances; returns (reward, terminated)

All of them work in place on float64 arrays. `step` limits `action` in place, so that what is
recorded is what was executed. Everything that the future depends on is in `state`: copying it is
saving, copying it back is restoring, and a reward over the whole trajectory is simply computed by
the last `step` from a history that the state carries.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Kernel:
    """A compiled environment. `params` is a NamedTuple of numbers, handed to every function."""

    params: Any
    reset: Callable
    observe: Callable
    step: Callable
    horizon: int
    state_size: int
    start_size: int
    observation_low: np.ndarray  # [O]
    observation_high: np.ndarray  # [O]
    action_low: np.ndarray  # [A]
    action_high: np.ndarray  # [A]
    how_branches_start: str = ""
    """Worth saying of environments that cannot simply be set to a state."""
    is_action_limited: bool = True
    """Whether `step` limits the action to its range."""
    start_values: Mapping[str, int] = field(default_factory=dict)
    """Names of the quantities that a start may be given by, and where they are in the state."""
    begin: Callable | None = None
    """begin(params, state): completes a state of which the start values were set by hand."""
    describe: Callable[[Any, np.ndarray], dict[str, float]] | None = None
    """describe(params, state): what a step's `info` says, or None."""
    measure: Callable[[Any, np.ndarray], dict[str, float]] | None = None
    """measure(params, final_state): the finished trajectory in physical terms, or None."""
    draw: Callable[[Any, np.ndarray], Any] | None = None
    """draw(params, states): a trajectory as a matplotlib figure, or None."""
    render: Callable[[Any, np.ndarray], np.ndarray] | None = None
    """render(params, state): a picture [height, width, 3], or None."""

    @property
    def observation_size(self) -> int:
        return len(self.observation_low)

    @property
    def action_size(self) -> int:
        return len(self.action_low)

    def place(self, state: np.ndarray, values: Mapping[str, float]) -> None:
        """Put a state that was just reset at the given start values."""
        for name, value in values.items():
            if name not in self.start_values:
                known = ", ".join(self.start_values) or "none"
                raise ValueError(f"unknown start value {name!r}; this environment has {known}")
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
            state[self.start_values[name]] = value
        if self.begin is not None:
            self.begin(self.params, state)

    def replay(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """States [T + 1, S] of taking `actions` [T, A] from `state`."""
        states = np.empty((len(actions) + 1, self.state_size))
        states[0] = state
        for t, action in enumerate(actions):
            states[t + 1] = states[t]
            self.step(self.params, states[t + 1], action.copy())
        return states
