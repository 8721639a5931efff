"""Plants of the process and drive industries: dead time, overshoot, resonance, a chain of masses."""

import math

import numpy as np
from numba import njit

from ..action_delay import delay_actions
from ..kernel import Kernel
from .task import make_task

# Dead time. A first-order plant, y' = u - y, whose input arrives 0.5 s late, follows a constant reference.
# State: output, reference.


@njit
def dead_time_reset(params, start, state):
    state[0], state[1] = 0.0, 2.0 * start[0] - 1.0


@njit
def observe_two(params, state, observation):
    observation[0], observation[1] = state[0], state[1]


@njit
def dead_time_step(params, state, action):
    u = action[0] = min(max(action[0], -3.0), 3.0)
    reward = -((state[0] - state[1]) ** 2) - 1e-3 * u**2
    state[0] += params.dt * (u - state[0])
    return reward, False


def dead_time_kernel() -> Kernel:
    """Return a first-order plant that follows a reference; the input acts 10 steps late."""
    kernel = make_task(
        dead_time_reset,
        observe_two,
        dead_time_step,
        dt=0.05,
        num_steps=200,
        sizes=(2, 1),
        observations={"output": "1", "reference": "1"},
        actions={"input": "1"},
        low=-3.0,
        high=3.0,
    )
    return delay_actions(kernel, 10)


# Step response. A weakly damped second-order plant moves to 1 at once, with an overshoot of at most a tenth. The last
# step pays: minus the mean error, minus the overshoot beyond the limit. State: output, rate, sum of errors, largest
# output, steps.


@njit
def step_response_reset(params, start, state):
    state[0] = 0.4 * start[0] - 0.2
    state[1:] = 0.0


@njit
def step_response_step(params, state, action):
    u = action[0] = min(max(action[0], -3.0), 3.0)
    state[1] += params.dt * (4.0 * (u - state[0]) - 0.4 * state[1])
    state[0] += params.dt * state[1]
    state[2] += abs(state[0] - 1.0)
    state[3] = max(state[3], state[0])
    state[4] += 1.0
    if state[4] < params.num_steps:
        return 0.0, False
    return -100.0 * state[2] / params.num_steps - 200.0 * max(state[3] - 1.1, 0.0), False


def step_response_kernel() -> Kernel:
    """Return a weakly damped plant that moves to 1; the last step pays for mean error and overshoot."""
    return make_task(
        step_response_reset,
        observe_two,
        step_response_step,
        dt=0.05,
        num_steps=200,
        sizes=(5, 1),
        observations={"output": "1", "rate": "1/s"},
        actions={"input": "1"},
        low=-3.0,
        high=3.0,
        is_paid_at_end=True,
    )


# Two-mass drive. A motor turns a load through a spring; the load should turn at rate 1 without ringing. Only motor rate
# and twist are observed. The last step pays: minus the squared error of the mean rate, minus the power of the load's
# rate in a band around the resonance at 11 rad/s. State: motor rate, load rate, twist, sum of the load's rate, Fourier
# sums (cosine and sine for each frequency), steps.
FREQUENCIES = (8.0, 10.0, 11.0, 12.0, 14.0)  # rad/s


@njit
def two_mass_reset(params, start, state):
    state[:] = 0.0
    state[2] = 0.1 * (start[0] - 0.5)


@njit
def two_mass_observe(params, state, observation):
    observation[0], observation[1] = state[0], state[2]


@njit
def two_mass_step(params, state, action):
    u = action[0] = min(max(action[0], -2.0), 2.0)
    spring = 60.0 * state[2]
    state[0] += params.dt * (u - spring - 0.1 * state[0])
    state[1] += params.dt * (spring - 0.1 * state[1])
    state[2] += params.dt * (state[0] - state[1])
    state[3] += state[1]
    time, last = params.dt * state[-1], state.size - 1
    power = 0.0
    for i in range(len(FREQUENCIES)):
        state[4 + 2 * i] += math.cos(FREQUENCIES[i] * time) * (state[1] - 1.0)
        state[5 + 2 * i] += math.sin(FREQUENCIES[i] * time) * (state[1] - 1.0)
        power += state[4 + 2 * i] ** 2 + state[5 + 2 * i] ** 2
    state[last] += 1.0
    if state[last] < params.num_steps:
        return 0.0, False
    return -100.0 * (state[3] / params.num_steps - 1.0) ** 2 - 1000.0 * power / params.num_steps**2, False


def two_mass_kernel() -> Kernel:
    """Return a drive that turns a load without ringing; the last step pays in the frequency domain."""
    num = 5 + 2 * len(FREQUENCIES)
    return make_task(
        two_mass_reset,
        two_mass_observe,
        two_mass_step,
        dt=0.02,
        num_steps=300,
        sizes=(num, 1),
        observations={"motor_rate": "rad/s", "twist": "rad"},
        actions={"torque": "N m"},
        low=-2.0,
        high=2.0,
        is_paid_at_end=True,
    )


# Chain. Three masses joined by springs, a force on each, a quadratic cost: the optimum is known (Riccati).
# State: positions (3), rates (3).
STIFFNESS = np.array([[-2.0, 1.0, 0.0], [1.0, -2.0, 1.0], [0.0, 1.0, -1.0]])
FORCE_COST = 0.1


@njit
def chain_reset(params, start, state):
    for i in range(6):
        state[i] = 2.0 * start[i] - 1.0


@njit
def chain_observe(params, state, observation):
    for i in range(6):
        observation[i] = state[i]


@njit
def chain_step(params, state, action):
    cost = 0.0
    acceleration = np.empty(3)
    for i in range(3):
        action[i] = min(max(action[i], -10.0), 10.0)
        cost += state[i] ** 2 + 0.1 * state[3 + i] ** 2 + FORCE_COST * action[i] ** 2
        acceleration[i] = action[i]
        for j in range(3):
            acceleration[i] += STIFFNESS[i, j] * state[j]
    for i in range(3):
        state[3 + i] += params.dt * acceleration[i]
    for i in range(3):
        state[i] += params.dt * state[3 + i]
    return -cost, False


def chain_kernel() -> Kernel:
    """Return three masses joined by springs that come to rest under three forces; the optimum is known."""
    return make_task(
        chain_reset,
        chain_observe,
        chain_step,
        dt=0.05,
        num_steps=100,
        sizes=(6, 6),
        observations={f"position_{i}": "m" for i in range(3)} | {f"rate_{i}": "m/s" for i in range(3)},
        actions={f"force_{i}": "N" for i in range(3)},
        low=-10.0,
        high=10.0,
    )
