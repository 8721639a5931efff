"""Sensors that are noisy or late, over any kernel: `delay_observations(add_noise(kernel, 0.01), 2)`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .kernel import Kernel, extend
from .parts.random_numbers import normal_pair
from .ranges import read_range
from .rehearsal import rehearse

# ruff: noqa: F821


class NoiseParams(NamedTuple):
    """Parameters of a kernel with noisy observations."""

    inner: Any
    std: np.ndarray  # [O]


class LateParams(NamedTuple):
    """Parameters of a kernel with late observations."""

    inner: Any
    num_slots: int  # of the queue
    size: int  # of an observation


# Templates over a kernel (see `kernel.extend`). State of noise: the kernel's own, then the seed and the steps so far.


@njit
def noisy_reset(params, start, state):
    inner_reset(params.inner, start[:START], state[:STATE])
    state[STATE] = start[START]
    state[STATE + 1] = 0.0


@njit
def noisy_observe(params, state, observation):
    inner_observe(params.inner, state[:STATE], observation)
    num = params.std.shape[0]
    for i in range(0, num, 2):
        pair = normal_pair(state[STATE], int(state[STATE + 1]) * num + i)
        observation[i] += params.std[i] * pair[0]
        if i + 1 < num:
            observation[i + 1] += params.std[i + 1] * pair[1]


@njit
def noisy_step(params, state, action):
    state[STATE + 1] += 1.0
    return inner_step(params.inner, state[:STATE], action)


# State of late observations: the kernel's own, then the steps so far and the queue [num_slots, O], filled by the first
# step. Before it, start values may be set by hand.


@njit
def late_reset(params, start, state):
    inner_reset(params.inner, start, state[:STATE])
    state[STATE:] = 0.0


@njit
def late_observe(params, state, observation):
    if state[STATE] == 0.0:
        inner_observe(params.inner, state[:STATE], observation)
        return
    first = STATE + 1 + params.size * ((int(state[STATE]) + 1) % params.num_slots)
    for i in range(params.size):
        observation[i] = state[first + i]


@njit
def late_step(params, state, action):
    if state[STATE] == 0.0:
        for slot in range(params.num_slots):
            first = STATE + 1 + params.size * slot
            inner_observe(params.inner, state[:STATE], state[first : first + params.size])
    result = inner_step(params.inner, state[:STATE], action)
    state[STATE] += 1.0
    first = STATE + 1 + params.size * (int(state[STATE]) % params.num_slots)
    inner_observe(params.inner, state[:STATE], state[first : first + params.size])
    return result


def add_noise(kernel: Kernel, std: float | Mapping[str, float]) -> Kernel:
    """Return the kernel with normal noise on its observations: on all, or by name (of the interface, or "0", "1", ...).

    The noise is a function of the start and the step, so states are saved and restored with it.
    """
    kernel = rehearse(kernel)
    names = list(kernel.interface.observations) if kernel.interface else [*map(str, range(kernel.observation_size))]
    by_name: dict[str, Any] = dict(std) if isinstance(std, Mapping) else dict.fromkeys(names, std)
    for name, value in by_name.items():
        if name not in names:
            raise ValueError(f"std: no observation {name!r}; there are {', '.join(names)}")
        if read_range(f"std of {name}", value)[0] < 0:
            raise ValueError(f"std of {name} must be at least 0, got {value!r}")
    templates = {"reset": noisy_reset, "observe": noisy_observe, "step": noisy_step}
    params = NoiseParams(kernel.params, np.array([float(by_name.get(name, 0.0)) for name in names]))
    return extend(kernel, params, 2, templates, lambda other: add_noise(other, std), start_size=kernel.start_size + 1)


def delay_observations(kernel: Kernel, delay_steps: int) -> Kernel:
    """Return the kernel with observations of `delay_steps` control steps ago; before that, the first."""
    if isinstance(delay_steps, bool) or delay_steps != int(delay_steps) or not 0 <= delay_steps <= 1000:
        raise ValueError(f"delay_steps must be a whole number from 0 to 1000, got {delay_steps!r}")
    if delay_steps == 0:
        return kernel
    kernel = rehearse(kernel)
    interface, num_slots = kernel.interface, int(delay_steps) + 1
    if interface is not None:
        delay = interface.observation_delay_s + delay_steps / interface.control_rate_hz
        interface = replace(interface, observation_delay_s=delay)
    templates = {"reset": late_reset, "observe": late_observe, "step": late_step}
    params = LateParams(kernel.params, num_slots, kernel.observation_size)
    size = 1 + num_slots * kernel.observation_size
    return extend(
        kernel, params, size, templates, lambda other: delay_observations(other, delay_steps), interface=interface
    )
