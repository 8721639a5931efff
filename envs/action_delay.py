"""Action delay: what is chosen now is applied `delay_steps` control steps later. The queue starts with zeros.

`delayed` lengthens a kernel's state by the queue; `ActionDelay` does the same to any Gymnasium
environment. A delay of zero is the environment itself.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numba import njit

from .compiled import cached
from .kernel import Kernel

# ruff: noqa: F821


class DelayParams(NamedTuple):
    inner: Any  # params of the kernel that is delayed
    delay_steps: int
    low: tuple[float, ...]  # of the action
    high: tuple[float, ...]


# State: the kernel's own, then the queue [delay_steps, A], then the number of steps so far.
# `inner_reset` and so on, STATE and ACTION are bound by `delayed`.


@njit
def delayed_reset(params, start, state):
    inner_reset(params.inner, start, state[:STATE])
    state[STATE:] = 0.0


@njit
def delayed_observe(params, state, observation):
    inner_observe(params.inner, state[:STATE], observation)


@njit
def delayed_step(params, state, action):
    step = int(state[-1])
    slot = STATE + ACTION * (step % params.delay_steps)
    due = state[slot : slot + ACTION].copy()
    for i in range(ACTION):
        action[i] = min(max(action[i], params.low[i]), params.high[i])
        state[slot + i] = action[i]
    state[-1] = step + 1
    return inner_step(params.inner, state[:STATE], due)


def checked_delay(delay_steps: int) -> int:
    if isinstance(delay_steps, bool) or delay_steps != int(delay_steps) or not 0 <= delay_steps <= 10_000:
        raise ValueError(f"delay_steps must be a whole number from 0 to 10000, got {delay_steps!r}")
    return int(delay_steps)


def delayed(kernel: Kernel, delay_steps: int) -> Kernel:
    """The kernel with its actions applied late."""
    delay_steps = checked_delay(delay_steps)
    if delay_steps == 0:
        return kernel
    bound = {"STATE": kernel.state_size, "ACTION": kernel.action_size}
    low = np.where(kernel.is_action_limited, kernel.action_low, -np.inf)
    high = np.where(kernel.is_action_limited, kernel.action_high, np.inf)
    params = DelayParams(kernel.params, delay_steps, tuple(low.tolist()), tuple(high.tolist()))

    def of_inner(function):
        """A Python function of (params, state or states), for the kernel's own part of them."""
        if function is None:
            return None
        return lambda params, states: function(params.inner, states[..., : kernel.state_size])

    return replace(
        kernel,
        params=params,
        reset=cached(delayed_reset, inner_reset=kernel.reset, **bound),
        observe=cached(delayed_observe, inner_observe=kernel.observe, **bound),
        step=cached(delayed_step, inner_step=kernel.step, **bound),
        state_size=kernel.state_size + delay_steps * kernel.action_size + 1,
        begin=of_inner(kernel.begin),
        describe=of_inner(kernel.describe),
        measure=of_inner(kernel.measure),
        draw=of_inner(kernel.draw),
        render=of_inner(kernel.render),
    )


class ActionDelay(gymnasium.Wrapper):
    """The same for any Gymnasium environment with continuous actions."""

    def __init__(self, env: gymnasium.Env, delay_steps: int):
        super().__init__(env)
        self._delay_steps = checked_delay(delay_steps)
        self._queue: list[np.ndarray] = []

    def reset(self, **keywords):
        self._queue = [np.zeros(self.action_space.shape) for _ in range(self._delay_steps)]
        return self.env.reset(**keywords)

    def step(self, action):
        self._queue.append(np.array(action))
        return self.env.step(self._queue.pop(0))
