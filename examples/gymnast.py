"""A gymnast swings on a bar, moved by the hips alone, and rings a bell that hangs above and before it.

The reward is paid at the last step, for the closest approach of the feet to the bell in the whole episode. A single
push of the hips does not reach it: the gymnast has to swing up in time with its own motion.
"""

import math
from pathlib import Path

from envs.kernel import Kernel
from envs.mujoco.task import mujoco_task

MODEL = Path(__file__).with_name("gymnast.xml")
OBSERVATIONS = {"bar_angle": "rad", "hip_angle": "rad", "bar_rate": "rad/s", "hip_rate": "rad/s"}
VIEWS = {"feet": "site_xpos:feet", "bell": "site_xpos:bell"}
NUM_STEPS = 250  # 5 s at 50 Hz


def observe(params, view, observation):
    observation[0] = view.qpos[0]
    observation[1] = view.qpos[1]
    observation[2] = view.qvel[0]
    observation[3] = view.qvel[1]


def reward(params, view, action):
    """Remember the closest approach; pay for it at the last step."""
    distance = math.hypot(view.feet[0] - view.bell[0], view.feet[2] - view.bell[2])
    if view.step[0] == 1 or distance < view.memory[0]:
        view.memory[0] = distance
    return -view.memory[0] if view.step[0] == NUM_STEPS else 0.0


def place(params, view, start):
    """Start with bent hips: hanging straight at rest, a push to either side would be worth the same."""
    view.qpos[1] = -0.3


def make() -> Kernel:
    """Return the gymnast."""
    return mujoco_task(
        MODEL,
        observations=OBSERVATIONS,
        observe=observe,
        reward=reward,
        place=place,
        views=VIEWS,
        memory_size=1,
        horizon=NUM_STEPS,
        frame_skip=4,
        is_horizon_terminal=True,
    )
