"""A task that pays -1 at its last step, whatever the actions. Observations do not show the time left.

With discount 1 every state is worth -1 if the task ends there. With the value of the last state added on, no value
satisfies V = -1 + V.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from envs.kernel import Kernel

HORIZON = 5


class Params(NamedTuple):
    horizon: int


@njit
def reset(params, start, state):
    state[0] = 0.0


@njit
def observe(params, state, observation):
    observation[0] = 1.0


@njit
def step(params, state, action):
    action[0] = min(max(action[0], -1.0), 1.0)
    state[0] += 1.0
    return (-1.0 if state[0] == params.horizon else 0.0), False


def kernel() -> Kernel:
    return Kernel(
        params=Params(HORIZON), reset=reset, observe=observe, step=step, horizon=HORIZON, state_size=1, start_size=0,
        observation_low=np.ones(1), observation_high=np.ones(1), action_low=-np.ones(1), action_high=np.ones(1),
        is_horizon_terminal=True,
    )  # fmt: skip
