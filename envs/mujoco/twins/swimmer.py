"""Swimmer-v5: three links swim forward."""

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_uniform_noise, asset, copy_into, number, sum_of_squares

DT = 0.01 * 4  # s
NOISE = 0.1


def place(params, view, start):
    add_uniform_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    copy_into(observation, copy_into(observation, 0, view.qpos[2:]), view.qvel)


def reward(params, view, action):
    return (view.qpos[0] - view.before[0]) / DT - 1e-4 * sum_of_squares(action)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("swimmer.xml"),
        observations=number(qpos=3, qvel=5),
        views={"before": "previous qpos"},
        observe=observe,
        reward=reward,
        place=place,
        start_size=10,
        frame_skip=4,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
