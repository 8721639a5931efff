"""HalfCheetah-v5: two legs run forward."""

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_normal_noise, add_uniform_noise, asset, copy_into, number, sum_of_squares

DT = 0.01 * 5  # s
NOISE = 0.1


def place(params, view, start):
    add_normal_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    copy_into(observation, copy_into(observation, 0, view.qpos[1:]), view.qvel)


def reward(params, view, action):
    return (view.qpos[0] - view.x_before[0]) / DT - 0.1 * sum_of_squares(action)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("half_cheetah.xml"),
        observations=number(qpos=8, qvel=9),
        views={"x_before": "previous qpos:rootx"},
        observe=observe,
        reward=reward,
        place=place,
        start_size=18,
        frame_skip=5,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
