"""Masses, friction, motors, gravity and pushes that are drawn at each start.

MuJoCo's model is shared by all trajectories. The numbers of a trajectory are in its state; they are written into the
model before each step and the model's own written back after it.
"""

from collections.abc import Iterator, Mapping
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
Arrays = dict[str, dict[str, int | None]]
MULTIPLIED: Arrays = {  # arrays of the model that a quantity multiplies, and how many numbers of each row if not all
    "mass": {"body_mass": None, "body_inertia": None, "body_subtreemass": None},
    "friction": {"geom_friction": None, "pair_friction": None},
    "joint_friction": {"dof_frictionloss": None, "tendon_frictionloss": None},
    "damping": {"dof_damping": None, "dof_dampingpoly": None, "tendon_damping": None, "tendon_dampingpoly": None},
    "motor": {"actuator_gainprm": 3, "actuator_biasprm": 3},
}
DIVIDED = {
    "mass": {"body_invweight0": None, "dof_invweight0": None, "tendon_invweight0": None}
}  # scales of constraints


class Numbers(NamedTuple):
    """Numbers of the model that belong to a trajectory. [W] each"""

    address: np.ndarray
    own: np.ndarray  # the model's
    quantity: np.ndarray  # what multiplies or divides it
    is_divided: np.ndarray


class RandomParams(NamedTuple):
    """Parameters of a kernel whose model is drawn at each start: Q quantities, W numbers of the model."""

    inner: Any
    low: np.ndarray  # [Q]
    width: np.ndarray  # [Q]
    numbers: Numbers
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
    numbers = params.numbers
    for w in range(numbers.address.shape[0]):
        value = values[numbers.quantity[w]]
        factor = 1.0 / value if numbers.is_divided[w] else value
        memory(numbers.address[w], 1)[0] = numbers.own[w] * factor


@njit
def write_back(params):
    """Write the model's own numbers into it."""
    for w in range(params.numbers.address.shape[0]):
        memory(params.numbers.address[w], 1)[0] = params.numbers.own[w]


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
    params = _make_params(kernel, model, found)
    templates: dict[str, Any] = {"reset": random_reset, "observe": random_observe, "step": random_step}
    if kernel.begin is not None:
        templates["begin"] = random_begin

    def again(more):
        """Return the kernel with other ranges of some quantities."""
        return _randomise(kernel, model, {**ranges, **more})

    def describe(params, state):
        """Return a step's info with the quantities."""
        own = {} if kernel.describe is None else kernel.describe(params.inner, state[: kernel.state_size])
        return {**own, **dict(zip(found, state[kernel.state_size :].tolist()))}

    num_drawn = int((params.width > 0).sum())
    changes = {"start_size": kernel.start_size + num_drawn, "describe": describe, "randomise": again}
    return extend(kernel, params, len(found) + 1, templates, again, **changes)


def _make_params(kernel: Kernel, model: mujoco.MjModel, ranges: dict[str, tuple[float, float]]) -> RandomParams:
    names, ends = list(ranges), np.array(list(ranges.values()))
    rate = kernel.interface.control_rate_hz if kernel.interface else 1.0
    return RandomParams(
        inner=kernel.params,
        low=ends[:, 0].copy(),
        width=ends[:, 1] - ends[:, 0],
        numbers=_find_numbers(model, names),
        push=names.index("push") if "push" in names else -1,
        gravity_x=model.opt.gravity.ctypes.data,
        push_steps=max(1, round(PUSH_SECONDS * rate)),
        horizon=kernel.horizon,
    )


def _find_numbers(model: mujoco.MjModel, names: list[str]) -> Numbers:
    """Return the numbers of the model that the quantities change."""
    rows = [(quantity, *found) for quantity, name in enumerate(names) for found in _numbers_of(model, name)]
    quantity, address, own, is_divided = zip(*rows) if rows else [()] * 4
    return Numbers(
        np.array(address, np.int64), np.array(own, float), np.array(quantity, np.int64), np.array(is_divided, bool)
    )


def _numbers_of(model: mujoco.MjModel, name: str) -> Iterator[tuple[int, float, bool]]:
    """Yield address and value of the model's numbers that a quantity changes, and True if it divides them."""
    arrays = [(getattr(model, array), num, False) for array, num in MULTIPLIED.get(name, {}).items()]
    arrays += [(getattr(model, array), num, True) for array, num in DIVIDED.get(name, {}).items()]
    if name == "gravity":
        arrays.append((model.opt.gravity, None, False))
    for array, num, is_divided in arrays:
        for index, value in np.ndenumerate(array[..., :num]):
            if value or name == "gravity":  # a push needs gravity's zeros
                yield array.ctypes.data + int(np.dot(index, array.strides)), float(value), is_divided
