"""What an environment is: numbers, a flat state, and three compiled functions.

    reset(params, start, state)              places the state; `start` is a point of the unit cube
    observe(params, state, observation)      fills the observation
    step(params, state, action)              advances; returns (reward, terminated)

All of them work in place on float64 arrays. `step` limits `action` in place, so that what is
recorded is what was executed. Everything that the future depends on is in `state`: copying it is
saving, copying it back is restoring, and a reward over the whole trajectory is simply computed by
the last `step` from a history that the state carries.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
    measure: Callable[[Any, np.ndarray], dict[str, float]] | None = None
    """measure(params, final_state): the finished trajectory in physical terms, or None."""
    draw: Callable[[Any, np.ndarray], Any] | None = None
    """draw(params, final_state): the same as a matplotlib figure, or None."""

    @property
    def observation_size(self) -> int:
        return len(self.observation_low)

    @property
    def action_size(self) -> int:
        return len(self.action_low)
