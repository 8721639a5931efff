"""Humanoid-v5: a man walks forward."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit

from ...kernel import Kernel
from ..randomisation import randomisable
from ..task import find_source, load, mujoco_task
from .parts import add_uniform_noise, asset, copy_into, number, sum_of_squares

DT = 0.003 * 5  # s
NOISE = 1e-2
VIEWS = {
    "centres": "xipos", "centres_before": "previous xipos",
    "inertia": "cinert", "rate": "cvel", "moved": "qfrc_actuator", "force": "cfrc_ext",
}  # fmt: skip


class HumanoidParams(NamedTuple):
    """The model's masses."""

    masses: np.ndarray  # [bodies]
    total_mass: float


def place(params, view, start):
    add_uniform_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    first = copy_into(observation, copy_into(observation, 0, view.qpos[2:]), view.qvel)
    first = copy_into(observation, copy_into(observation, first, view.inertia[10:]), view.rate[6:])  # without the world
    copy_into(observation, copy_into(observation, first, view.moved[6:]), view.force[6:])


@njit
def is_over(params, view):
    return not 1.0 < view.qpos[2] < 2.0


@njit
def centre(params, positions):
    """Return x of the centre of mass."""
    total = 0.0
    for body in range(params.masses.shape[0]):
        total += params.masses[body] * positions[3 * body]
    return total / params.total_mass


def reward(params, view, action):
    forward = 1.25 * ((centre(params, view.centres) - centre(params, view.centres_before)) / DT)
    healthy = 0.0 if is_over(params, view) else 5.0
    contact = min(5e-7 * sum_of_squares(view.force), 10.0)
    return forward + healthy - (0.1 * sum_of_squares(action) + contact)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task. Gymnasium rounds the limits of actions to single precision."""
    path = asset("humanoid.xml")
    model, _ = load(*find_source(path), is_reset_by_mujoco=True)
    made = mujoco_task(
        path,
        params=HumanoidParams(model.body_mass.copy(), float(model.body_mass.sum())),
        observations=number(qpos=22, qvel=23, cinert=130, cvel=78, qfrc_actuator=17, cfrc_ext=78),
        views=VIEWS,
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=47,
        frame_skip=5,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
    low, high = (limits.astype(np.float32).astype(float) for limits in (made.action_low, made.action_high))
    params = made.params._replace(low=tuple(low.tolist()), high=tuple(high.tolist()))
    return randomisable(replace(made, params=params, action_low=low, action_high=high), model)
