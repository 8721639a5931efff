"""Make the kernels of the small control tasks from three functions each."""

from typing import NamedTuple

import numpy as np

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Kernel


class Params(NamedTuple):
    """Parameters of a task."""

    dt: float  # s
    num_steps: int


def make_task(
    reset,
    observe,
    step,
    *,
    dt: float,
    num_steps: int,
    sizes: tuple[int, int, int],
    low: list[float],
    high: list[float],
    is_paid_at_end: bool = False,
) -> Kernel:
    """Return a kernel; `sizes` are those of state, start and observation, `low` and `high` limit the actions."""
    state_size, start_size, observation_size = sizes
    return Kernel(
        params=Params(dt, num_steps),
        reset=compile_template(reset),
        observe=compile_template(observe),
        step=compile_template(step),
        horizon=num_steps,
        state_size=state_size,
        start_size=start_size,
        observation_low=np.full(observation_size, -np.inf),
        observation_high=np.full(observation_size, np.inf),
        action_low=np.array(low),
        action_high=np.array(high),
        is_horizon_terminal=is_paid_at_end,
    )
