"""Action delay: an action is executed `delay_steps` control steps after it was chosen, zeros before that.

`delay_actions` lengthens a kernel's state by the queue, and may draw the delay at each start; `ActionDelay` wraps any
Gymnasium environment. A delay of zero changes nothing.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numba import njit

from .kernel import Interface, Kernel, extend
from .ranges import read_range

# ruff: noqa: F821


class DelayParams(NamedTuple):
    """Parameters of a delayed kernel."""

    inner: Any  # parameters of the kernel that is delayed
    least_delay: int
    most_delay: int
    low: tuple[float, ...]  # action limits
    high: tuple[float, ...]


# Templates over a kernel (see `kernel.extend`). State: the kernel's own, then the queue [most_delay + 1, A], the number
# of steps so far, and the delay.


@njit
def delayed_reset(params, start, state):
    inner_reset(params.inner, start[:START], state[:STATE])
    state[STATE:] = 0.0
    delay = params.least_delay
    if params.most_delay > delay:
        delay = min(delay + int(start[START] * (params.most_delay - delay + 1)), params.most_delay)
    state[-1] = delay


@njit
def delayed_observe(params, state, observation):
    inner_observe(params.inner, state[:STATE], observation)


@njit
def delayed_step(params, state, action):
    step, num_slots = int(state[-2]), params.most_delay + 1
    slot = STATE + ACTION * (step % num_slots)
    for i in range(ACTION):
        action[i] = min(max(action[i], params.low[i]), params.high[i])
        state[slot + i] = action[i]
    state[-2] = step + 1
    due = STATE + ACTION * ((step + num_slots - int(state[-1])) % num_slots)
    return inner_step(params.inner, state[:STATE], state[due : due + ACTION].copy())


def check_delay(delay_steps: Any) -> tuple[int, int]:
    """Return the ends of a delay or of a range of delays, or raise ValueError."""
    low, high = read_range("delay_steps", delay_steps)
    if low != int(low) or high != int(high) or not 0 <= low <= high <= 1000:
        raise ValueError(f"delay_steps must be a whole number from 0 to 1000, or two of them, got {delay_steps!r}")
    return int(low), int(high)


def delay_actions(kernel: Kernel, delay_steps: int | tuple[int, int]) -> Kernel:
    """Return the kernel with its actions executed `delay_steps` later; of a range, a delay is drawn at each start."""
    least, most = check_delay(delay_steps)
    if most == 0:
        return kernel
    low = np.where(kernel.is_action_limited, kernel.action_low, -np.inf)
    high = np.where(kernel.is_action_limited, kernel.action_high, np.inf)
    return extend(
        kernel,
        DelayParams(kernel.params, least, most, tuple(low.tolist()), tuple(high.tolist())),
        (most + 1) * kernel.action_size + 2,
        {"reset": delayed_reset, "observe": delayed_observe, "step": delayed_step},
        lambda other: delay_actions(other, delay_steps),
        start_size=kernel.start_size + (most > least),
        interface=_delay_interface(kernel.interface, (least + most) / 2),
    )


def _delay_interface(interface: Interface | None, delay_steps: float) -> Interface | None:
    """Return the interface with the delay of its actions prolonged; the mean of a range counts."""
    if interface is None:
        return None
    return replace(interface, action_delay_s=interface.action_delay_s + delay_steps / interface.control_rate_hz)


class ActionDelay(gymnasium.Wrapper):
    """An action delay for any Gymnasium environment with continuous actions."""

    def __init__(self, env: gymnasium.Env, delay_steps: int):
        super().__init__(env)
        self._delay_steps, most = check_delay(delay_steps)
        if most != self._delay_steps:
            raise ValueError(
                f"delay_steps must be one number, got {delay_steps!r}: only compiled environments take a range"
            )
        self._queue: list[np.ndarray] = []

    def reset(self, **keywords):
        self._queue = [np.zeros(self.action_space.shape) for _ in range(self._delay_steps)]
        return self.env.reset(**keywords)

    def step(self, action):
        self._queue.append(np.array(action))
        return self.env.step(self._queue.pop(0))
