"""A linear system with quadratic cost, as a kernel: its optimal gain is known in closed form."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit

from envs.kernel import Kernel

HORIZON = 30
STATE = np.array([[1.0, 0.1], [0.0, 1.0]])
INPUT = np.array([[0.0, 0.02], [0.1, 0.05]])
ACTION_COST = 0.1


class Params(NamedTuple):
    start_scale: float


@njit
def reset(params, start, state):
    state[:] = params.start_scale * (2.0 * start - 1.0)


@njit
def observe(params, state, observation):
    observation[:] = state


@njit
def step(params, state, action):
    cost = state[0] ** 2 + state[1] ** 2 + ACTION_COST * (action[0] ** 2 + action[1] ** 2)
    x0 = STATE[0, 0] * state[0] + STATE[0, 1] * state[1] + INPUT[0, 0] * action[0] + INPUT[0, 1] * action[1]
    x1 = STATE[1, 0] * state[0] + STATE[1, 1] * state[1] + INPUT[1, 0] * action[0] + INPUT[1, 1] * action[1]
    state[0], state[1] = x0, x1
    return -cost, False


def kernel() -> Kernel:
    unbounded = np.full(2, np.inf)
    return Kernel(
        params=Params(1.0), reset=reset, observe=observe, step=step, horizon=HORIZON, state_size=2, start_size=2,
        observation_low=-unbounded, observation_high=unbounded, action_low=-unbounded, action_high=unbounded,
    )  # fmt: skip


FIXED_START = (0.9, 0.2)  # in the unit square


@njit
def reset_to_fixed_start(params, start, state):
    reset(params, np.array(FIXED_START), state)


def fixed_start_kernel() -> Kernel:
    """Return the kernel with a single start."""
    return replace(kernel(), reset=reset_to_fixed_start, start_size=0)


@njit
def step_in_box(params, state, action):
    reward, _ = step(params, state, action)
    return reward, abs(state[0]) > 1.2 or abs(state[1]) > 1.2


def ending_kernel() -> Kernel:
    """Return the kernel with trajectories that end when they leave a box."""
    return replace(kernel(), step=step_in_box)


def fixed_ending_kernel() -> Kernel:
    """Return the kernel with a single start and trajectories that end when they leave a box."""
    return replace(fixed_start_kernel(), step=step_in_box)


LOW, HIGH = np.array([-1.0, -0.5]), np.array([3.0, 0.5])


@njit
def step_limited_in_box(params, state, action):
    for j in range(2):
        action[j] = min(max(action[j], LOW[j]), HIGH[j])
    return step_in_box(params, state, action)


def limited_kernel() -> Kernel:
    """Return the ending kernel with limits about another centre for each action."""
    return replace(ending_kernel(), step=step_limited_in_box, action_low=LOW, action_high=HIGH)


def cost(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return the cost [R] of states [R, 2] and actions [R, 2]."""
    return np.sum(states**2, axis=1) + ACTION_COST * np.sum(actions**2, axis=1)


def mean_cost(gain: np.ndarray) -> float:
    """Return the exact expected cost of the static policy u = x gain from uniform starts in [-1, 1]^2."""
    covariance = np.eye(2) / 3
    closed = STATE + INPUT @ gain.T
    weight = np.eye(2) + ACTION_COST * gain @ gain.T
    total = 0.0
    for _ in range(HORIZON):
        total += np.trace(weight @ covariance)
        covariance = closed @ covariance @ closed.T
    return total


def best_gain() -> np.ndarray:
    """Return the best static gain for this horizon, by quasi-Newton descent on the exact cost."""
    from scipy.optimize import minimize

    return minimize(lambda k: mean_cost(k.reshape(2, 2)), np.zeros(4), tol=1e-12).x.reshape(2, 2)
