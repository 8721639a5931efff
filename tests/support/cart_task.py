"""A pole on a cart: each step pays for the tip's height, the last one also for the mean of its history."""

from typing import NamedTuple

from envs.kernel import Kernel
from envs.mujoco.task import mujoco_task

NUM_STEPS = 50
XML = """<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="cart">
      <joint name="slider" type="slide" axis="1 0 0"/>
      <geom size=".1"/>
      <body name="pole">
        <joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 0 .6"/>
        <site name="tip" pos="0 0 .6"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slider" ctrlrange="-30 30"/></actuator>
</mujoco>"""
OBSERVATIONS = {"angle": "rad", "rate": "rad/s", "height": "m"}
VIEWS = {"angle": "qpos:hinge", "tip": "site_xpos:tip", "tip_before": "previous site_xpos:tip"}


class Params(NamedTuple):
    """Numbers of the task."""

    speed_weight: float
    num_steps: int


def observe(params, view, observation):
    observation[0] = view.angle[0]
    observation[1] = view.qvel[1]
    observation[2] = view.tip[2]


def reward(params, view, action):
    k = int(view.step[0]) - 1
    view.memory[k] = view.tip[2]
    paid = view.memory.mean() if k + 1 == params.num_steps else 0.0
    return paid + view.tip[2] - params.speed_weight * (view.tip[0] - view.tip_before[0]) ** 2


def is_over(params, view):
    return view.tip[2] < 0.0


def place(params, view, start):
    view.qpos[1] = start[0] - 0.5


def make_cart(model=XML, **changes) -> Kernel:
    """Return the task, with other arguments of `mujoco_task` than these."""
    arguments = {
        "observations": OBSERVATIONS,
        "observe": observe,
        "reward": reward,
        "is_over": is_over,
        "place": place,
        "start_size": 1,
        "views": VIEWS,
        "params": Params(10.0, NUM_STEPS),
        "horizon": NUM_STEPS,
        "frame_skip": 2,
        "memory_size": NUM_STEPS,
    }
    return mujoco_task(model, **{**arguments, **changes})
