"""The two rewards of the leg, as terms to be added. docs/leg.md has the equations.

Weights are positive numbers that multiply a cost.
"""

import math

from numba import njit

from .params import FOOT, GROUND_FORCE, HAS_LANDED, KNEE_HEIGHT, POSITION, TORQUE, TORQUE_BEFORE

GRAVITY = 9.81
SIMPLE_TERMS = ("posture", "rate", "foot_offset", "ground_force", "foot_height", "knee_height", "air_torque")
SIMPLE_WEIGHTS = {
    "paper": (1.0, 0.08, 10.0, 1.0, 1.0, 15.0, 1e-4),
    "code": (1.0, 0.08, 10.0, 0.5, 10.0, 15.0, 0.0),
}
SUPPORTED_FORCE = {"paper": 0.76 * GRAVITY, "code": 7.6}  # N

DENSE_TERMS = ("torque_change", "foot_offset", "hip_height", "torque", "rate", "violation")
DENSE_WEIGHTS = {
    "paper": (2.0, 1.0, 0.1, 1e-7, 1e-4, 0.1, 0.0),
    "code": (2000.0, 1000.0, 100.0, 1e-4, 0.1, 100.0, 0.0),
}

# Limits of the hardware. Outside of them the dense reward is its violation term alone.
MAX_RATE = 100.0  # rad/s
HIP_RANGE = (math.radians(-225), math.radians(90))
KNEE_RANGE = (math.radians(-155), math.radians(-35))
MIN_HIP_HEIGHT = 0.05  # m
MIN_KNEE_HEIGHT = 0.02


@njit
def simple_terms(params, state, hip_rate, knee_rate):
    """Return SIMPLE_TERMS: stand with the hip at -45 and the knee at -90 degrees, foot below the hip."""
    weights = params.weights
    hip, knee = state[POSITION + 1], state[POSITION + 2]
    posture = -weights[0] * (abs(knee + math.pi / 2) + abs(hip + math.pi / 4))
    rate = -weights[1] * (abs(knee_rate) + abs(hip_rate))
    foot_offset = -weights[2] * abs(state[FOOT]) if state[KNEE_HEIGHT] < 0.2 else 0.0
    if state[HAS_LANDED] == 0.0:
        air_torque = -weights[6] * (state[TORQUE] ** 2 + state[TORQUE + 1] ** 2)
        return posture, rate, foot_offset, 0.0, 0.0, 0.0, air_torque
    ground_force = -weights[3] * max(0.0, params.supported_force - state[GROUND_FORCE])
    foot_height = -weights[4] * abs(state[FOOT + 1])
    knee_height = -weights[5] * abs(state[KNEE_HEIGHT] - 0.1)
    return posture, rate, foot_offset, ground_force, foot_height, knee_height, 0.0


@njit
def is_violated(state, hip_rate, knee_rate):
    """Return True if a limit of the hardware is exceeded; the limit itself is allowed."""
    hip, knee = state[POSITION + 1], state[POSITION + 2]
    return not (
        abs(hip_rate) <= MAX_RATE
        and abs(knee_rate) <= MAX_RATE
        and HIP_RANGE[0] <= hip <= HIP_RANGE[1]
        and KNEE_RANGE[0] <= knee <= KNEE_RANGE[1]
        and state[POSITION] >= MIN_HIP_HEIGHT
        and state[KNEE_HEIGHT] >= MIN_KNEE_HEIGHT
    )


@njit
def dense_terms(params, state, hip_rate, knee_rate):
    """Return DENSE_TERMS and a zero: smooth torques, foot 0.1 m below the hip, at rest."""
    weights = params.weights
    if is_violated(state, hip_rate, knee_rate):
        return 0.0, 0.0, 0.0, 0.0, 0.0, -weights[5], 0.0
    hip_change, knee_change = state[TORQUE] - state[TORQUE_BEFORE], state[TORQUE + 1] - state[TORQUE_BEFORE + 1]
    torque_change = -weights[0] * (hip_change**2 + knee_change**2)
    foot_offset = -weights[1] * state[FOOT] ** 2
    hip_height = -weights[2] * (state[POSITION] - state[FOOT + 1] - 0.1) ** 2
    torque = -weights[3] * (state[TORQUE] ** 2 + state[TORQUE + 1] ** 2)
    rate = -weights[4] * (hip_rate**2 + knee_rate**2)
    return torque_change, foot_offset, hip_height, torque, rate, 0.0, 0.0
