"""Ant-v5: four legs walk forward."""

import math

from numba import njit

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_normal_noise, add_uniform_noise, asset, clip, copy_into, number, sum_of_squares

DT = 0.01 * 5  # s
NOISE = 0.1


def place(params, view, start):
    add_normal_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    first = copy_into(observation, copy_into(observation, 0, view.qpos[2:]), view.qvel)
    for i in range(6, view.force.shape[0]):  # without the world
        observation[first + i - 6] = clip(view.force[i], -1.0, 1.0)


@njit
def is_over(params, view):
    total = 0.0
    for i in range(view.qpos.shape[0]):
        total += view.qpos[i]
    for i in range(view.qvel.shape[0]):
        total += view.qvel[i]
    return not (math.isfinite(total) and 0.2 <= view.qpos[2] <= 1.0)


def reward(params, view, action):
    for i in range(view.memory.shape[0]):
        view.memory[i] = clip(view.force[i], -1.0, 1.0)
    forward = (view.torso[0] - view.torso_before[0]) / DT
    healthy = 0.0 if is_over(params, view) else 1.0
    return forward + healthy - (0.5 * sum_of_squares(action) + 5e-4 * sum_of_squares(view.memory))


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("ant.xml"),
        observations=number(qpos=13, qvel=14, cfrc_ext=78),
        views={"torso": "xpos:torso", "torso_before": "previous xpos:torso", "force": "cfrc_ext"},
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=29,
        frame_skip=5,
        horizon=max_episode_steps,
        memory_size=84,
        reward_if_diverged=None,
    )
