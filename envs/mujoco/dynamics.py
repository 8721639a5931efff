"""The compiled functions of a MuJoCo task.

Everything that the future depends on is in the flat state. It is written into MuJoCo before each action and read back
after it, so that one copy of MuJoCo's memory serves any number of trajectories.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .memory import (
    INTEGRATION,
    memories,
    memory,
    mj_forward,
    mj_getState,
    mj_resetData,
    mj_rnePostConstraint,
    mj_setState,
    mj_step,
)

# ruff: noqa: F821

LARGEST = 1e6  # of positions and rates: the simulation has diverged beyond it


class TaskParams(NamedTuple):
    """Parameters of the compiled functions, and of the state that `views.Layout` describes."""

    own: Any  # numbers for the task's functions
    model: int  # address
    data: int
    addresses: tuple[int, ...]  # of the views; -n is n bytes into the state
    sizes: tuple[int, ...]
    previous: np.ndarray  # [P, 2] the index in the state of a value before the action, the address of its present one
    low: tuple[float, ...]  # action limits
    high: tuple[float, ...]
    frame_skip: int
    mujoco_size: int  # of MuJoCo's part of the state
    observation_size: int
    needs_late_forces: bool
    is_frozen: bool  # once diverged
    reward_if_diverged: float


# Templates: `View` and the task's `observe, reward, is_over, place, actuate` are bound when they are compiled.


@njit
def task_view(params, state):
    """Return the view of the state that MuJoCo's memory holds."""
    return View(*memories(params.addresses, params.sizes, state.ctypes.data))


@njit
def task_reset(params, start, state):
    state.fill(0.0)
    mj_resetData(params.model, params.data)
    place(params.own, look(params, state), start)
    mj_getState(params.model, params.data, state.ctypes.data, INTEGRATION)
    begin(params, state)


@njit
def task_begin(params, state):
    """Compute everything that follows from a state whose positions and rates are set."""
    mj_resetData(params.model, params.data)
    mj_setState(params.model, params.data, state.ctypes.data, INTEGRATION)
    mj_forward(params.model, params.data)
    read_back(params, state)


@njit
def task_observe(params, state, observation):
    for i in range(params.observation_size):
        observation[i] = state[params.mujoco_size + 2 + i]


@njit
def task_step(params, state, action):
    for i in range(len(params.low)):
        action[i] = min(max(action[i], params.low[i]), params.high[i])
    view, is_diverged = look(params, state), params.mujoco_size + 1
    view.step[0] += 1
    if state[is_diverged] != 0.0:
        return params.reward_if_diverged, False
    mj_setState(params.model, params.data, state.ctypes.data, INTEGRATION)
    for _ in range(params.frame_skip):
        actuate(params.own, view, action)
        mj_step(params.model, params.data)
    if params.is_frozen and not (is_bounded(view.qpos) and is_bounded(view.qvel)):
        state[is_diverged] = 1.0
        return params.reward_if_diverged, False
    if params.needs_late_forces:
        mj_rnePostConstraint(params.model, params.data)
    value, has_ended = float(reward(params.own, view, action)), bool(is_over(params.own, view))
    read_back(params, state)
    return value, has_ended


@njit
def task_read_back(params, state):
    """Fill in the state from MuJoCo's memory."""
    first = params.mujoco_size + 2
    observe(params.own, look(params, state), state[first : first + params.observation_size])
    for p in range(params.previous.shape[0]):
        state[params.previous[p, 0]] = memory(params.previous[p, 1], 1)[0]
    mj_getState(params.model, params.data, state.ctypes.data, INTEGRATION)


@njit
def is_bounded(values):
    """Return True if the simulation has not diverged."""
    bounded = True
    for i in range(values.shape[0]):
        bounded = bounded and abs(values[i]) < LARGEST  # false for NaN
    return bounded


@njit
def start_at_rest(params, view, start):
    """Start as the model stands in its file."""


@njit
def never(params, view):
    """Return False: the task ends at its horizon."""
    return False


@njit
def apply_action(params, view, action):
    """Set ctrl to the action."""
    for i in range(action.shape[0]):
        view.ctrl[i] = action[i]
