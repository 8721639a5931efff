"""Hopper-v5: one leg hops forward."""

from numba import njit

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_uniform_noise, asset, clip, copy_into, number, sum_of_squares

DT = 0.002 * 4  # s
NOISE = 5e-3


def place(params, view, start):
    add_uniform_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    first = copy_into(observation, 0, view.qpos[1:])
    for i in range(view.qvel.shape[0]):
        observation[first + i] = clip(view.qvel[i], -10.0, 10.0)


@njit
def is_over(params, view):
    is_healthy = view.qpos[1] > 0.7 and abs(view.qpos[2]) < 0.2
    for i in range(2, view.qpos.shape[0]):
        is_healthy = is_healthy and abs(view.qpos[i]) < 100.0
    for i in range(view.qvel.shape[0]):
        is_healthy = is_healthy and abs(view.qvel[i]) < 100.0
    return not is_healthy


def reward(params, view, action):
    healthy = 0.0 if is_over(params, view) else 1.0
    return (view.qpos[0] - view.x_before[0]) / DT + healthy - 1e-3 * sum_of_squares(action)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("hopper.xml"),
        observations=number(qpos=5, qvel=6),
        views={"x_before": "previous qpos:rootx"},
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=12,
        frame_skip=4,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
