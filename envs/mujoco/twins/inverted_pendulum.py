"""InvertedPendulum-v5: balance a pole on a cart."""

import math

from numba import njit

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_uniform_noise, asset, copy_into, number


def place(params, view, start):
    add_uniform_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, 0.01), 0.01)


def observe(params, view, observation):
    copy_into(observation, copy_into(observation, 0, view.qpos), view.qvel)


@njit
def is_over(params, view):
    is_finite = math.isfinite(view.qpos[0] + view.qpos[1] + view.qvel[0] + view.qvel[1])
    return not is_finite or abs(view.qpos[1]) > 0.2


def reward(params, view, action):
    return 0.0 if is_over(params, view) else 1.0


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("inverted_pendulum.xml"),
        observations=number(qpos=2, qvel=2),
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=4,
        frame_skip=2,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
