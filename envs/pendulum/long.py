"""Gymnasium's Pendulum-v1 task at any control rate, for 10 s. State: angle, rate."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from tdpo_baselines.common.networks.templates import compile_template

from ..kernel import Interface, Kernel, Scene
from .physics import (
    COS_SIN,
    EPISODE_SECONDS,
    MAX_RATE,
    START_VALUES,
    TORQUE,
    check_start_scale,
    draw_rod,
    observe_cos_sin,
    place,
    swing,
)

MAX_TORQUE = 2.0  # N m


class LongParams(NamedTuple):
    """Parameters of the task."""

    dt: float  # s
    max_torque: float
    start_scale: float


@njit
def reset(params, start, state):
    place(params.start_scale, start, state)


@njit
def observe(params, state, observation):
    observe_cos_sin(state, observation)


@njit
def step(params, state, action):
    angle = (state[0] + math.pi) % (2.0 * math.pi) - math.pi
    rate = state[1]
    swing(params.dt, params.max_torque, state, action)
    return -(angle**2 + 0.1 * rate**2 + 0.001 * action[0] ** 2), False


def scene(params: LongParams, states: np.ndarray) -> Scene:
    """Return the rod, and upright as its target."""
    return draw_rod(states, target=0.0)


OPTIONS = {  # meanings, for help and documentation
    "control_rate_hz": "control rate; the episode has 10 s times this many steps",
    "start_scale": "range of the start: 1 is the whole circle and rates up to 1 rad/s",
}


def long_kernel(control_rate_hz: float = 20, start_scale: float = 1.0) -> Kernel:
    """Return the task of Pendulum-v1, swing up and balance, at another control rate."""
    if not 1 <= control_rate_hz <= 1e5:
        raise ValueError(f"control_rate_hz must be between 1 and 100000, got {control_rate_hz}")
    return Kernel(
        params=LongParams(1.0 / control_rate_hz, MAX_TORQUE, check_start_scale(start_scale)),
        reset=compile_template(reset),
        observe=compile_template(observe),
        step=compile_template(step),
        horizon=round(EPISODE_SECONDS * control_rate_hz),
        state_size=2,
        start_size=2,
        observation_low=np.array([-1.0, -1.0, -MAX_RATE]),
        observation_high=np.array([1.0, 1.0, MAX_RATE]),
        action_low=np.array([-MAX_TORQUE]),
        action_high=np.array([MAX_TORQUE]),
        start_values=START_VALUES,
        interface=Interface(COS_SIN, TORQUE, control_rate_hz),
        scene=scene,
    )
