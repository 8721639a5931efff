"""Make the kernels of the small control tasks from three functions each."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Interface, Kernel


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
    sizes: tuple[int, int],
    observations: Mapping[str, str],
    actions: Mapping[str, str],
    low: float,
    high: float,
    is_paid_at_end: bool = False,
) -> Kernel:
    """Return a kernel.

    `sizes` are those of state and start. `observations` and `actions` are units by name; all actions are limited to
    `low` and `high`.
    """
    state_size, start_size = sizes
    return Kernel(
        params=Params(dt, num_steps),
        reset=compile_template(reset),
        observe=compile_template(observe),
        step=compile_template(step),
        horizon=num_steps,
        state_size=state_size,
        start_size=start_size,
        observation_low=np.full(len(observations), -np.inf),
        observation_high=np.full(len(observations), np.inf),
        action_low=np.full(len(actions), low),
        action_high=np.full(len(actions), high),
        interface=Interface(observations, actions, 1 / dt),
        is_horizon_terminal=is_paid_at_end,
    )
