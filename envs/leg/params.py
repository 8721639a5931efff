"""Parameters of the leg, and the layout of its flat state."""

from typing import NamedTuple

import numpy as np

from ..parts.motor import motor_transition

PHYSICS_RATE_HZ = 4000
MOTOR_TRANSITION = motor_transition(period=0.0014, overshoot=0.3, time_step=1 / PHYSICS_RATE_HZ)
EPISODE_SECONDS = 2.0
LINK = 0.14  # m, length of the upper and of the lower leg

# The flat state. Triples are (slider, hip, knee), pairs are (hip, knee).
POSITION = 0  # 3: hip height (m), angles (rad)
RATE = 3  # 3
WARM_START = 6  # 3: the solver's last accelerations
STEP = 9  # physics steps so far
IS_BROKEN = 10  # 1 once the simulation has diverged
HAS_LANDED = 11  # 1 once the lower leg has touched the ground
GROUND_FORCE = 12  # N, vertical, on the lower leg in the last step
LAST_AIR_STEP = 13  # last step without contact
MOTOR = 14  # 2: torque before the torque map (N m)
MOTOR_RATE = 16  # 2
TORQUE = 18  # 2: applied in the last step (N m)
TORQUE_BEFORE = 20  # 2: applied in the step before it
ROUGHNESS = 22  # recent mean square of the torque's change per step
FOOT = 23  # 2: x and z before the last step
KNEE_HEIGHT = 25  # before the last step
NOISE_SEED = 26
NOISE = 27  # 2 of the last step, 2 of the step before
TERMS = 31  # reward terms of the last step, before the delay; see reward.py
NUM_TERMS = 7
QUEUES = TERMS + NUM_TERMS  # observations (4 each), commands of the hip, of the knee, rewards


class Addresses(NamedTuple):
    """Addresses of the memory that a step of MuJoCo reads and writes, under MuJoCo's names."""

    model: int
    data: int
    qpos: int
    qvel: int
    qacc_warmstart: int
    ctrl: int
    sensordata: int
    site_xpos: int


class LegParams(NamedTuple):
    """Parameters of the compiled functions."""

    mujoco: Addresses
    inner_steps: int  # physics steps per action
    observation_delay: int  # physics steps
    torque_delay: int
    reward_delay: int
    is_dense: bool  # the stochastic leg's reward, else the simple leg's
    weights: tuple[float, ...]  # of the reward terms, see reward.py
    supported_force: float  # N, least ground force that costs nothing
    broken_reward: float  # of every step after the simulation diverged
    start_low: tuple[float, ...]  # height, hip, knee
    start_high: tuple[float, ...]
    noise_kind: int  # see noise.py
    noise_template: np.ndarray  # [R, 2]


def state_size(params: LegParams) -> int:
    """Return the length of the flat state, which depends on the delays."""
    queues = 4 * (params.observation_delay + 1) + 2 * (params.torque_delay + 1) + params.reward_delay + 1
    return QUEUES + queues
