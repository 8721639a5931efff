"""Gymnasium's pendulum as compiled functions of a state that begins with (angle, rate).

Angle 0 is upright and is never wrapped. Units: rad, rad/s, N m, s.
"""

import math

import numpy as np
from numba import njit

from ..kernel import Scene

LENGTH = 1.0  # m
MAX_RATE = 8.0
EPISODE_SECONDS = 10.0
START_VALUES = {"angle": 0, "rate": 1}  # name: index in the state
ANGLE = {"angle": "rad", "rate": "rad/s"}  # units of the observations
COS_SIN = {"cos_angle": "1", "sin_angle": "1", "rate": "rad/s"}
TORQUE = {"torque": "N m"}


@njit
def swing(dt, max_torque, state, action):
    """Advance (angle, rate) by `dt`; clip `action` in place."""
    torque = min(max(action[0], -max_torque), max_torque)
    action[0] = torque
    rate = state[1] + (15.0 * math.sin(state[0]) + 3.0 * torque) * dt
    rate = min(max(rate, -MAX_RATE), MAX_RATE)
    state[0] += rate * dt
    state[1] = rate


@njit
def place(start_scale, start, state):
    """Map a point of the unit square to an angle on `start_scale` of the circle and a rate of that range."""
    state[0] = start_scale * (-math.pi + 2.0 * math.pi * start[0])
    state[1] = start_scale * (-1.0 + 2.0 * start[1])


@njit
def observe_cos_sin(state, observation):
    """Fill in cos(angle), sin(angle) and the rate."""
    observation[0] = math.cos(state[0])
    observation[1] = math.sin(state[0])
    observation[2] = state[1]


def check_start_scale(start_scale: float) -> float:
    """Return `start_scale`, or raise ValueError if it is outside of [0, 1]."""
    if not 0 <= start_scale <= 1:
        raise ValueError(f"start_scale must be between 0 and 1, got {start_scale!r}")
    return float(start_scale)


def draw_rod(states: np.ndarray, target: float) -> Scene:
    """Return the rod in states [M, S], and a line at the target angle. Positive angles lean to the left."""

    def end(angle):
        return np.stack([-LENGTH * np.sin(angle), LENGTH * np.cos(angle)], axis=-1)

    return Scene(
        np.stack([np.zeros((len(states), 2)), end(states[:, 0])], axis=1),
        {"target": np.array([[0.0, 0.0], 1.15 * end(target)])},
        (-1.3, 1.3, -1.3, 1.3),
        {"angle (rad)": states[:, 0], "rate (rad/s)": states[:, 1]},
    )
