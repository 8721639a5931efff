"""Mechanical tasks: a late force on a spring, a double well, a cart with a pole, a planar birotor."""

import math

from numba import njit

from ..action_delay import delay_actions
from ..kernel import Kernel
from .task import make_task


@njit
def observe_all(params, state, observation):
    for i in range(observation.size):
        observation[i] = state[i]


# Spring. A force that acts 0.25 s late moves a mass on a spring to 0.5 and holds it there. State: position, rate.


@njit
def spring_reset(params, start, state):
    state[0], state[1] = 2.0 * start[0] - 1.0, 0.0


@njit
def spring_step(params, state, action):
    force = action[0] = min(max(action[0], -5.0), 5.0)
    reward = -((state[0] - 0.5) ** 2) - 1e-3 * force**2
    state[1] += params.dt * (force - 2.0 * state[0] - 0.1 * state[1])
    state[0] += params.dt * state[1]
    return reward, False


def delayed_spring_kernel() -> Kernel:
    """Return a mass on a spring that moves to a target and stays; the force acts 5 steps late."""
    kernel = make_task(
        spring_reset,
        observe_all,
        spring_step,
        dt=0.05,
        num_steps=100,
        sizes=(2, 1),
        observations={"position": "m", "rate": "m/s"},
        actions={"force": "N"},
        low=-5.0,
        high=5.0,
    )
    return delay_actions(kernel, 5)


# Double well. A force too weak to lift the mass over the hill at once brings it from the left well to the right one.
# The last step pays minus the r.m.s. distance from the right well over the second half. State: position, rate, sum of
# squared distances, steps.


@njit
def double_well_reset(params, start, state):
    state[0] = 0.2 * start[0] - 1.1
    state[1:] = 0.0


@njit
def double_well_step(params, state, action):
    force = action[0] = min(max(action[0], -1.0), 1.0)
    state[1] += params.dt * (state[0] - state[0] ** 3 - 0.1 * state[1] + 0.2 * force)
    state[0] += params.dt * state[1]
    state[3] += 1.0
    if 2 * state[3] > params.num_steps:
        state[2] += (state[0] - 1.0) ** 2
    is_last = state[3] == params.num_steps
    return -100.0 * math.sqrt(2.0 * state[2] / params.num_steps) if is_last else 0.0, False


def double_well_kernel() -> Kernel:
    """Return a mass that must swing over a hill; the last step pays."""
    return make_task(
        double_well_reset,
        observe_all,
        double_well_step,
        dt=0.1,
        num_steps=300,
        sizes=(4, 1),
        observations={"position": "m", "rate": "m/s"},
        actions={"force": "N"},
        low=-1.0,
        high=1.0,
        is_paid_at_end=True,
    )


# Cart and pole with a delayed force. The episode ends when the pole leans by more than 0.5 rad or the cart leaves the
# track. State: position, rate, angle, angular rate.


@njit
def cart_pole_reset(params, start, state):
    for i in range(4):
        state[i] = 0.2 * (start[i] - 0.5)


@njit
def cart_pole_step(params, state, action):
    force = action[0] = min(max(action[0], -10.0), 10.0)
    sine, cosine = math.sin(state[2]), math.cos(state[2])
    push = (force + 0.05 * state[3] ** 2 * sine) / 1.1  # pole of 0.1 kg and 1 m on a cart of 1 kg
    angular = (9.81 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    state[1] += params.dt * (push - 0.05 * angular * cosine / 1.1)
    state[3] += params.dt * angular
    state[0] += params.dt * state[1]
    state[2] += params.dt * state[3]
    is_lost = abs(state[2]) > 0.5 or abs(state[0]) > 2.4
    return 1.0 - state[0] ** 2 - 1e-3 * force**2, is_lost


def cart_pole_kernel() -> Kernel:
    """Return a cart that balances a pole; the force acts 2 steps late."""
    kernel = make_task(
        cart_pole_reset,
        observe_all,
        cart_pole_step,
        dt=0.02,
        num_steps=500,
        sizes=(4, 4),
        observations={"position": "m", "rate": "m/s", "angle": "rad", "angular_rate": "rad/s"},
        actions={"force": "N"},
        low=-10.0,
        high=10.0,
    )
    return delay_actions(kernel, 2)


# Birotor. Two rotors lift a bar of 1 kg; it flies to the origin and hovers. The episode ends when it turns over or
# strays. State: x, z, angle, and their rates.


@njit
def birotor_reset(params, start, state):
    state[:] = 0.0
    for i in range(2):
        state[i] = 2.0 * start[i] - 1.0
    state[2] = 0.4 * (start[2] - 0.5)


@njit
def birotor_step(params, state, action):
    for i in range(2):
        action[i] = min(max(action[i], 0.0), 10.0)
    thrust, turn = action[0] + action[1], action[1] - action[0]
    state[3] -= params.dt * thrust * math.sin(state[2])
    state[4] += params.dt * (thrust * math.cos(state[2]) - 9.81)
    state[5] += params.dt * 3.0 * turn
    for i in range(3):
        state[i] += params.dt * state[3 + i]
    distance = state[0] ** 2 + state[1] ** 2
    is_lost = abs(state[2]) > 1.5 or distance > 9.0
    reward = 1.0 - distance - 0.1 * state[2] ** 2 - 0.01 * (state[3] ** 2 + state[4] ** 2 + state[5] ** 2)
    return reward - (100.0 if is_lost else 0.0), is_lost


def birotor_kernel() -> Kernel:
    """Return a bar with two rotors that flies to a point and hovers."""
    return make_task(
        birotor_reset,
        observe_all,
        birotor_step,
        dt=0.02,
        num_steps=250,
        sizes=(6, 3),
        observations={"x": "m", "z": "m", "angle": "rad", "x_rate": "m/s", "z_rate": "m/s", "angular_rate": "rad/s"},
        actions={"left_thrust": "N", "right_thrust": "N"},
        low=0.0,
        high=10.0,
    )
