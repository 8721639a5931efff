"""Reacher-v5: an arm in a plane reaches for a target."""

import math

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import asset, number, sum_of_squares, uniform


def place(params, view, start):
    """Start near rest, with the target anywhere within 0.2 m."""
    radius, angle = 0.2 * math.sqrt(start[2]), 2.0 * math.pi * start[3]
    for i in range(2):
        view.qpos[i] += uniform(start[i], 0.1)
        view.qvel[i] += uniform(start[4 + i], 0.005)
    view.qpos[2] = radius * math.cos(angle)
    view.qpos[3] = radius * math.sin(angle)


def observe(params, view, observation):
    for i in range(2):
        observation[i] = math.cos(view.qpos[i])
        observation[2 + i] = math.sin(view.qpos[i])
        observation[4 + i] = view.qpos[2 + i]
        observation[6 + i] = view.qvel[i]
        observation[8 + i] = view.tip[i] - view.target[i]


def reward(params, view, action):
    x, y, z = view.tip[0] - view.target[0], view.tip[1] - view.target[1], view.tip[2] - view.target[2]
    return -math.sqrt(x * x + y * y + z * z) - sum_of_squares(action)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("reacher.xml"),
        observations=number(cos=2, sin=2, target=2, qvel=2, distance=2),
        views={"tip": "xpos:fingertip", "target": "xpos:target"},
        observe=observe,
        reward=reward,
        place=place,
        start_size=6,
        frame_skip=2,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
