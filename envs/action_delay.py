"""Action delay: an action is executed `delay_steps` control steps after it was chosen, zeros before that.

`delay_actions` lengthens a kernel's state by the queue; `ActionDelay` wraps any Gymnasium environment. A delay of zero
changes nothing.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numba import njit

from tdpo_baselines.common.networks.templates import compile_template

from .kernel import Interface, Kernel

# ruff: noqa: F821


class DelayParams(NamedTuple):
    """Parameters of a delayed kernel."""

    inner: Any  # parameters of the kernel that is delayed
    delay_steps: int
    low: tuple[float, ...]  # action limits
    high: tuple[float, ...]


# State: the kernel's own, then the queue [delay_steps, A], then the number of steps so far. `delay_actions` binds
# `inner_reset`, `inner_observe`, `inner_step`, STATE (size of the kernel's own state) and ACTION (size of an action).


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


def check_delay(delay_steps: int) -> int:
    """Return `delay_steps` as an int, or raise ValueError."""
    if isinstance(delay_steps, bool) or delay_steps != int(delay_steps) or not 0 <= delay_steps <= 1000:
        raise ValueError(f"delay_steps must be a whole number from 0 to 1000, got {delay_steps!r}")
    return int(delay_steps)


def delay_actions(kernel: Kernel, delay_steps: int) -> Kernel:
    """Return the kernel with its actions executed `delay_steps` later."""
    delay_steps = check_delay(delay_steps)
    if delay_steps == 0:
        return kernel
    sizes = {"STATE": kernel.state_size, "ACTION": kernel.action_size}
    low = np.where(kernel.is_action_limited, kernel.action_low, -np.inf)
    high = np.where(kernel.is_action_limited, kernel.action_high, np.inf)

    def on_inner(function):
        """Return a function of (params, states) that calls `function` with the kernel's own part of them."""
        if function is None:
            return None
        return lambda params, states: function(params.inner, states[..., : kernel.state_size])

    return replace(
        kernel,
        params=DelayParams(kernel.params, delay_steps, tuple(low.tolist()), tuple(high.tolist())),
        reset=compile_template(delayed_reset, inner_reset=kernel.reset, **sizes),
        observe=compile_template(delayed_observe, inner_observe=kernel.observe, **sizes),
        step=compile_template(delayed_step, inner_step=kernel.step, **sizes),
        state_size=kernel.state_size + delay_steps * kernel.action_size + 1,
        interface=_delay_interface(kernel.interface, delay_steps),
        begin=on_inner(kernel.begin),
        describe=on_inner(kernel.describe),
        measure=on_inner(kernel.measure),
        draw=on_inner(kernel.draw),
        render=on_inner(kernel.render),
        scene=on_inner(kernel.scene),
        poses=on_inner(kernel.poses),
    )


def _delay_interface(interface: Interface | None, delay_steps: int) -> Interface | None:
    """Return the interface with the delay of its actions prolonged."""
    if interface is None:
        return None
    return replace(interface, action_delay_s=interface.action_delay_s + delay_steps / interface.control_rate_hz)


class ActionDelay(gymnasium.Wrapper):
    """An action delay for any Gymnasium environment with continuous actions."""

    def __init__(self, env: gymnasium.Env, delay_steps: int):
        super().__init__(env)
        self._delay_steps = check_delay(delay_steps)
        self._queue: list[np.ndarray] = []

    def reset(self, **keywords):
        self._queue = [np.zeros(self.action_space.shape) for _ in range(self._delay_steps)]
        return self.env.reset(**keywords)

    def step(self, action):
        self._queue.append(np.array(action))
        return self.env.step(self._queue.pop(0))
