"""Masses, friction, motors, gravity and pushes that are drawn at each start.

MuJoCo's model is shared by all trajectories. The numbers of a trajectory are in its state; they are written into the
model before each step and the model's own written back after it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numba import njit

from ..kernel import Kernel, extend
from ..ranges import read_ranges
from .memory import memory

# ruff: noqa: F821

PUSH_SECONDS = 0.1
MULTIPLIED = {  # arrays of the model that a quantity multiplies, and how many numbers of each row if not all
    "mass": {"body_mass": None, "body_inertia": None, "body_subtreemass": None},
    "friction": {"geom_friction": None, "pair_friction": None},
    "joint_friction": {"dof_frictionloss": None, "tendon_frictionloss": None},
    "damping": {"dof_damping": None, "dof_dampingpoly": None, "tendon_damping": None, "tendon_dampingpoly": None},
    "motor": {"actuator_gainprm": 3, "actuator_biasprm": 3},
}
DIVIDED = {"mass": {"body_invweight0": None, "dof_invweight0": None, "tendon_invweight0": None}}  # scales of constraints


class RandomParams(NamedTuple):
    """Parameters of a kernel whose model is drawn at each start: Q quantities, W numbers of the model."""

    inner: Any
    low: np.ndarray  # [Q]
    width: np.ndarray  # [Q]
    addresses: np.ndarray  # [W]
    own: np.ndarray  # [W] the model's own numbers
    quantity: np.ndarray  # [W] what multiplies or divides them
    is_divided: np.ndarray  # [W]
    push: int  # index of the push among the quantities, followed by its time; -1: none
    gravity_x: int  # address
    push_steps: int
    horizon: int


# Templates over a kernel (see `kernel.extend`). State: the kernel's own, then the quantities, then the steps so far.


@njit
def random_reset(params, start, state):
    coordinate = START
    for q in range(params.low.shape[0]):
        state[STATE + q] = params.low[q]
        if params.width[q] > 0.0:
            state[STATE + q] += start[coordinate] * params.width[q]
            coordinate += 1
    state[-1] = 0.0
    write(params, state[STATE:])
    inner_reset(params.inner, start[:START], state[:STATE])
    write_back(params)


@njit
def random_begin(params, state):
    write(params, state[STATE:])
    inner_begin(params.inner, state[:STATE])
    write_back(params)


@njit
def random_observe(params, state, observation):
    inner_observe(params.inner, state[:STATE], observation)


@njit
def random_step(params, state, action):
    write(params, state[STATE:])
    if params.push >= 0:
        steps = state[-1] - np.floor(state[STATE + params.push + 1] * params.horizon)
        if 0.0 <= steps < params.push_steps:
            memory(params.gravity_x, 1)[0] += state[STATE + params.push]
    state[-1] += 1.0
    result = inner_step(params.inner, state[:STATE], action)
    write_back(params)
    return result


@njit
def write(params, values):
    """Write a trajectory's numbers into the model."""
    for w in range(params.addresses.shape[0]):
        value = values[params.quantity[w]]
        factor = 1.0 / value if params.is_divided[w] else value
        memory(params.addresses[w], 1)[0] = params.own[w] * factor


@njit
def write_back(params):
    """Write the model's own numbers into it."""
    for w in range(params.addresses.shape[0]):
        memory(params.addresses[w], 1)[0] = params.own[w]


def randomisable(kernel: Kernel, model: mujoco.MjModel) -> Kernel:
    """Return the kernel with `randomise`, for the model that its functions step."""
    return replace(kernel, randomise=lambda ranges: _randomise(kernel, model, ranges))


def _randomise(kernel: Kernel, model: mujoco.MjModel, ranges: Mapping[str, Any]) -> Kernel:
    """Return the kernel with quantities drawn at each start."""
    found = read_ranges(ranges)
    if not found:
        return randomisable(kernel, model)
    if "push" in found:  # a push acts like gravity for a while
        found.setdefault("gravity", (1.0, 1.0))
        found |= {"push": found.pop("push"), "push_time": (0.0, 1.0)}  # last
    names, ends = tuple(found), np.array(list(found.values()))
    width = ends[:, 1] - ends[:, 0]
    num_random, rate = int((width > 0).sum()), kernel.interface.control_rate_hz if kernel.interface else 1.0
    params = RandomParams(
        kernel.params,
        ends[:, 0].copy(),
        width,
        *_find_numbers(model, names),
        push=names.index("push") if "push" in names else -1,
        gravity_x=model.opt.gravity.ctypes.data,
        push_steps=max(1, round(PUSH_SECONDS * rate)),
        horizon=kernel.horizon,
    )
    templates = {"reset": random_reset, "observe": random_observe, "step": random_step}
    if kernel.begin is not None:
        templates["begin"] = random_begin

    def describe(params, state):
        """Return a step's info with the quantities."""
        own = {} if kernel.describe is None else kernel.describe(params.inner, state[: kernel.state_size])
        return {**own, **dict(zip(names, state[kernel.state_size :].tolist()))}

    def again(more):
        """Return the kernel with other ranges of some quantities."""
        return _randomise(kernel, model, {**ranges, **more})

    changes = {"start_size": kernel.start_size + num_random, "describe": describe, "randomise": again}
    return extend(kernel, params, len(names) + 1, templates, again, **changes)


def _find_numbers(model: mujoco.MjModel, names: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    """Return addresses, values and quantities of the model's numbers, and which are divided. [W] each"""
    rows: list[tuple[int, float, int, bool]] = []

    def add(array: np.ndarray, first: int | None, quantity: int, is_divided: bool) -> None:
        for index, value in np.ndenumerate(array):
            if (value or name == "gravity") and (first is None or index[-1] < first):  # a push needs gravity's zeros
                address = array.ctypes.data + 8 * int(np.ravel_multi_index(index, array.shape))
                rows.append((address, float(value), quantity, is_divided))

    for quantity, name in enumerate(names):
        for is_divided, arrays in ((False, MULTIPLIED), (True, DIVIDED)):
            for array, first in arrays.get(name, {}).items():
                add(getattr(model, array), first, quantity, is_divided)
        if name == "gravity":
            add(model.opt.gravity, None, quantity, False)
    columns = zip(*rows) if rows else [()] * 4
    return tuple(np.array(column, dtype) for column, dtype in zip(columns, (np.int64, float, np.int64, bool)))
