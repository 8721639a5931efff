"""Walker2d-v5: two legs walk forward."""

from numba import njit

from ...kernel import Kernel
from ..task import mujoco_task
from .hopper import DT, observe, place
from .parts import asset, number, sum_of_squares


@njit
def is_over(params, view):
    return not (0.8 < view.qpos[1] < 2.0 and abs(view.qpos[2]) < 1.0)


def reward(params, view, action):
    healthy = 0.0 if is_over(params, view) else 1.0
    return (view.qpos[0] - view.x_before[0]) / DT + healthy - 1e-3 * sum_of_squares(action)


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("walker2d_v5.xml"),
        observations=number(qpos=8, qvel=9),
        views={"x_before": "previous qpos:rootx"},
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=18,
        frame_skip=4,
        horizon=max_episode_steps,
        reward_if_diverged=None,
    )
