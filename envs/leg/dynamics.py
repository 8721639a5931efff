"""A physics step of the leg, 0.25 ms: command queue, motor, torque map, MuJoCo, reward, sensors.

By default observations and commands are 1 ms late, and rewards 0.75 ms. Everything is in the flat state, which is
written into MuJoCo before each step and read back after it, so that one copy of MuJoCo's memory serves any number of
trajectories.
"""

import math

from numba import njit

from ..mujoco.memory import memory, mj_step
from ..parts.delay_line import delay
from ..parts.motor import advance_motor, joint_torque
from .model import integration_state
from .noise import NOISE_MODEL, advance_noise, begin_noise, rate_noise
from .params import (
    FOOT,
    GROUND_FORCE,
    HAS_LANDED,
    IS_BROKEN,
    KNEE_HEIGHT,
    LAST_AIR_STEP,
    MOTOR,
    MOTOR_RATE,
    MOTOR_TRANSITION,
    NOISE_SEED,
    NUM_TERMS,
    POSITION,
    QUEUES,
    RATE,
    ROUGHNESS,
    STEP,
    TERMS,
    TORQUE,
    TORQUE_BEFORE,
    WARM_START,
)
from .reward import dense_terms, simple_terms

LARGEST = 1e4  # m, rad, m/s, rad/s: the simulation has diverged beyond it; MuJoCo resets itself only much later
ROUGHNESS_STEPS = 400  # over which the torque's roughness is averaged


@njit
def reset(params, start, state):
    """Start at rest at (height, hip, knee, noise seed), a point of the unit cube; a fixed start has no coordinates."""
    state.fill(0.0)
    for i in range(3):
        u = start[i] if start.shape[0] > 0 else 0.0
        state[POSITION + i] = params.start_low[i] + u * (params.start_high[i] - params.start_low[i])
    if start.shape[0] > 3:
        state[NOISE_SEED] = start[3]
    begin(params, state)


@njit
def begin(params, state):
    """Start the noise and fill the observation queue of a state whose positions, rates and noise seed are set."""
    begin_noise(params, state)
    for slot in range(params.observation_delay + 1):
        push_observation(params, state, slot)


@njit
def observe(params, state, observation):
    """Fill in the angles and rates of hip and knee as sensed `observation_delay` steps ago."""
    slot = (int(state[STEP]) + 1) % (params.observation_delay + 1)
    for i in range(4):
        observation[i] = state[QUEUES + 4 * slot + i]


@njit
def step(params, state, action):
    """Hold the action for `inner_steps` physics steps; return the mean reward."""
    total = 0.0
    for i in range(NUM_TERMS):
        state[TERMS + i] = 0.0
    for _ in range(params.inner_steps):
        total += physics_step(params, state, action)
    return total / params.inner_steps, False


@njit
def physics_step(params, state, action):
    """Advance by 0.25 ms; return the delayed reward."""
    k = int(state[STEP])
    hip_torque, knee_torque = actuate(params, state, action, k)
    can_move = is_bounded(state[POSITION:], state[RATE:]) and math.isfinite(hip_torque + knee_torque)
    if state[IS_BROKEN] == 0.0 and can_move:
        simulate(params, state, hip_torque, knee_torque)
        sensed = QUEUES + 4 * (k % (params.observation_delay + 1))
        if params.is_dense:
            terms = dense_terms(params, state, state[sensed + 2], state[sensed + 3])
        else:
            terms = simple_terms(params, state, state[sensed + 2], state[sensed + 3])
        reward = add_terms(params, state, terms)
        read_back(params, state, hip_torque, knee_torque, k)
    else:
        state[IS_BROKEN] = 1.0
        reward = params.broken_reward
    state[STEP] = k + 1.0
    if params.noise_kind == NOISE_MODEL:
        advance_noise(state, k)
    push_observation(params, state, (k + 1) % (params.observation_delay + 1))
    return delayed_reward(params, state, reward, k)


@njit
def actuate(params, state, action, k):
    """Return the torques of hip and knee in step k, then let the motors follow the delayed command."""
    hip_torque = joint_torque(state[MOTOR], state[RATE + 1])
    knee_torque = joint_torque(state[MOTOR + 1], state[RATE + 2])
    num_slots = params.torque_delay + 1
    for i in range(2):
        command = delay(state, QUEUES + 4 * (params.observation_delay + 1) + i * num_slots, num_slots, k, action[i])
        state[MOTOR + i], state[MOTOR_RATE + i] = advance_motor(
            MOTOR_TRANSITION, state[MOTOR + i], state[MOTOR_RATE + i], command
        )
    return hip_torque, knee_torque


@njit
def simulate(params, state, hip_torque, knee_torque):
    """Step MuJoCo from the state; record contact and the positions of knee and foot before the step."""
    qpos, qvel, warm_start = integration_state(params.mujoco)
    for i in range(3):
        qpos[i], qvel[i], warm_start[i] = state[POSITION + i], state[RATE + i], state[WARM_START + i]
    ctrl = memory(params.mujoco.ctrl, 2)
    ctrl[0], ctrl[1] = hip_torque, knee_torque
    mj_step(params.mujoco.model, params.mujoco.data)
    sites = memory(params.mujoco.site_xpos, 6)  # knee, foot
    state[KNEE_HEIGHT], state[FOOT], state[FOOT + 1] = sites[2], sites[3], sites[5]
    if memory(params.mujoco.sensordata, 4)[0] > 0.0:
        state[HAS_LANDED] = 1.0


@njit
def read_back(params, state, hip_torque, knee_torque, k):
    """Copy the state after the step from MuJoCo. If the simulation diverged, freeze the state for good."""
    qpos, qvel, warm_start = integration_state(params.mujoco)
    if not is_bounded(qpos, qvel):
        state[IS_BROKEN] = 1.0
        return
    for i in range(3):
        state[POSITION + i], state[RATE + i], state[WARM_START + i] = qpos[i], qvel[i], warm_start[i]
    contact = memory(params.mujoco.sensordata, 4)  # number of contacts, force on the lower leg
    state[GROUND_FORCE] = contact[3]
    if contact[0] == 0.0:
        state[LAST_AIR_STEP] = k
    change = (hip_torque - state[TORQUE]) ** 2 + (knee_torque - state[TORQUE + 1]) ** 2
    state[ROUGHNESS] += (change - state[ROUGHNESS]) / ROUGHNESS_STEPS
    state[TORQUE_BEFORE], state[TORQUE_BEFORE + 1] = state[TORQUE], state[TORQUE + 1]
    state[TORQUE], state[TORQUE + 1] = hip_torque, knee_torque


@njit
def is_bounded(positions, rates):
    """Return True if the simulation has not diverged."""
    bounded = True
    for i in range(3):
        bounded = bounded and abs(positions[i]) < LARGEST and abs(rates[i]) < LARGEST  # false for NaN
    return bounded


@njit
def add_terms(params, state, terms):
    """Return the sum of the terms, and add them to their means over the action's physics steps."""
    reward = 0.0
    for i in range(NUM_TERMS):
        reward += terms[i]
        state[TERMS + i] += terms[i] / params.inner_steps
    return reward


@njit
def push_observation(params, state, slot):
    """Put the present observation into the queue: exact angles, noisy rates."""
    hip_noise, knee_noise = rate_noise(params, state)
    first = QUEUES + 4 * slot
    hip_rate, knee_rate = state[RATE + 1], state[RATE + 2]
    state[first], state[first + 1] = state[POSITION + 1], state[POSITION + 2]
    state[first + 2] = hip_rate + min(1.0, abs(hip_rate)) * hip_noise
    state[first + 3] = knee_rate + min(1.0, abs(knee_rate)) * knee_noise


@njit
def delayed_reward(params, state, reward, k):
    """Return the reward of `reward_delay` steps ago; before that, the first."""
    first = QUEUES + 4 * (params.observation_delay + 1) + 2 * (params.torque_delay + 1)
    return delay(state, first, params.reward_delay + 1, k, reward)
