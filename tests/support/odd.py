"""Environments whose faults a test assigns: `Odd.faults` of a Gymnasium environment, the parameters of a kernel."""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numba import njit

from envs.gym_env import KernelEnv
from envs.kernel import Kernel

PARTS = ("observation", "reward", "terminated", "truncated", "info")
HORIZON = 12


class Odd(gymnasium.Env):
    """A point to be pushed to the origin, with faults."""

    faults: tuple[tuple[str, int, Any], ...] = ()  # (what, from which step of an episode on, value)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)

    def __init__(self):
        for what, _, value in self.faults:
            if what.endswith("_space"):
                setattr(self, what, value)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state, self._step = self.np_random.normal(size=3), 0
        return self._break((self._state.copy(), {}))

    def step(self, action):
        self._step += 1
        self._state[0] += 0.1 * float(np.ravel(action)[0])
        for what, first, value in self.faults:
            if what == "action" and self._step >= first:
                action[...] = value
            if what == "randomness" and self._step >= first:
                self._state += np.random.random(3)
        return self._break((self._state.copy(), -float(self._state[0] ** 2), False, False, {}))

    def _break(self, result):
        names = PARTS if len(result) == 5 else ("observation", "info")
        for what, first, value in self.faults:
            if self._step >= first and what == "result":
                return value
            if self._step >= first and what in names:
                result = tuple(value if name == what else part for name, part in zip(names, result))
        return result


class Params(NamedTuple):
    """A fault of a kernel: which (0: none), from which step on, and its value."""

    fault: int
    first: int
    value: float


@njit
def reset(params, start, state):
    state[0], state[1] = start[0], 0.0


@njit
def observe(params, state, observation):
    is_odd = params.fault == 1 and state[1] >= params.first
    observation[0] = params.value if is_odd else state[0]


@njit
def step(params, state, action):
    state[1] += 1.0
    is_odd = state[1] >= params.first
    if params.fault == 2 and is_odd:
        action[0] = params.value
    state[0] += 0.1 * action[0]
    if params.fault == 3 and is_odd:
        state[0] = params.value
    reward = params.value if params.fault == 4 and is_odd else -(state[0] ** 2)
    return reward, params.fault == 5 and is_odd


NUM_FAULTS = 5


def kernel(params: Params) -> Kernel:
    return Kernel(
        params=params, reset=reset, observe=observe, step=step, horizon=HORIZON, state_size=2, start_size=1,
        observation_low=-np.ones(1), observation_high=np.ones(1), action_low=-np.ones(1), action_high=np.ones(1),
    )  # fmt: skip


class OddKernel(KernelEnv):
    """An environment of a kernel with a fault."""

    params = Params(0, 1, 0.0)

    def __init__(self):
        super().__init__(kernel(self.params))


gymnasium.register("OddKernel-v0", entry_point=OddKernel)
gymnasium.register("Odd-v0", entry_point=Odd, max_episode_steps=HORIZON)
