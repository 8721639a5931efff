"""InvertedDoublePendulum-v5: balance two poles on a cart."""

import math
from typing import NamedTuple

from numba import njit

from ...kernel import Kernel
from ..task import mujoco_task
from .parts import add_normal_noise, add_uniform_noise, asset, clip, number

NOISE = 0.1


class Params(NamedTuple):
    """A number that the compiler must not know: Gymnasium squares with pow(x, 2), which is not always x * x."""

    two: float


def place(params, view, start):
    add_normal_noise(view.qvel, start, add_uniform_noise(view.qpos, start, 0, NOISE), NOISE)


def observe(params, view, observation):
    observation[0] = view.qpos[0]
    for i in range(2):
        observation[1 + i] = math.sin(view.qpos[1 + i])
        observation[3 + i] = math.cos(view.qpos[1 + i])
    for i in range(3):
        observation[5 + i] = clip(view.qvel[i], -10.0, 10.0)
    observation[8] = clip(view.constraint[0], -10.0, 10.0)


@njit
def is_over(params, view):
    return view.tip[2] <= 1.0


def reward(params, view, action):
    x, y = view.tip[0], view.tip[2]
    distance = 0.01 * math.pow(x, params.two) + math.pow(y - 2.0, params.two)
    velocity = 1e-3 * math.pow(view.qvel[1], params.two) + 5e-3 * math.pow(view.qvel[2], params.two)
    alive = 0.0 if is_over(params, view) else 10.0
    return alive - distance - velocity


def kernel(max_episode_steps: int) -> Kernel:
    """Return the task."""
    return mujoco_task(
        asset("inverted_double_pendulum.xml"),
        observations=number(cart=1, sin=2, cos=2, qvel=3, qfrc_constraint=1),
        views={"tip": "site_xpos:tip", "constraint": "qfrc_constraint"},
        observe=observe,
        reward=reward,
        is_over=is_over,
        place=place,
        start_size=6,
        frame_skip=5,
        horizon=max_episode_steps,
        params=Params(2.0),
        reward_if_diverged=None,
    )
