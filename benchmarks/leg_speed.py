"""Closed-loop steps of the leg against bare `mj_step` of the same model on the same motion, in one process.

The closed loop has everything: 64-64 network, delays, motor, torque map, reward, sensors, saving and restoring the
state around each step. The bare loop only sets the recorded torques and steps.
"""

import time

import numpy as np
from numba import njit
from table import add_row

from envs.leg.model import load
from envs.leg.params import POSITION, TORQUE
from envs.mujoco.memory import memory, mj_step
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.options import registry

ROUNDS = 15
NUM_ROLLOUTS = 2


@njit
def step_bare(mujoco, torques):
    """Step MuJoCo with the torques [T, 2]."""
    ctrl = memory(mujoco.ctrl, 2)
    for t in range(torques.shape[0]):
        ctrl[0], ctrl[1] = torques[t, 0], torques[t, 1]
        mj_step(mujoco.model, mujoco.data)


def standing_policy(sizes):
    """Return parameters of a network whose nearly linear units make a PD controller: the leg lands and stands."""
    small, num = 0.02, sizes[1]
    first, last = np.zeros((4, num)), np.zeros((num, 2))
    first[:, :4] = small * np.eye(4)
    last[:4] = np.array([[-6, 0], [0, -6], [-0.3, 0], [0, -0.3]]) / small
    zeros, bias = np.zeros(num), 6 * np.array([-0.8, -1.45])
    return np.concatenate([first.ravel(), zeros, np.eye(num).ravel(), zeros, last.ravel(), bias])


def seconds(function, *arguments) -> float:
    """Return the wall time of a call."""
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


def measure(name: str) -> str:
    """Return the result for one environment as a line of text."""
    options = registry.resolve_options(name, {})
    kernel = registry.make_environment(name, options)
    roller = KernelRoller(kernel, (64, 64), gamma=0.99975)
    theta = standing_policy(roller.layer_sizes)
    starts = roller.start_states(np.full((NUM_ROLLOUTS, kernel.start_size), 0.6))
    states = kernel.replay(starts[0], roller.rollouts(theta, starts).actions[0])
    torques = np.ascontiguousarray(states[1:, TORQUE : TORQUE + 2])
    _, data = load(options["contact"])
    times = np.zeros((ROUNDS, 2))
    for i in range(ROUNDS):
        data.qpos[:] = states[0, POSITION : POSITION + 3]
        data.qvel[:] = data.qacc_warmstart[:] = 0
        times[i, 0] = seconds(step_bare, kernel.params.mujoco, torques)
        error = np.abs(data.qpos - states[-1, POSITION : POSITION + 3]).max()
        times[i, 1] = seconds(roller.rollouts, theta, starts) / NUM_ROLLOUTS
    bare_us, closed_us = 1e6 * np.median(times, axis=0) / kernel.horizon
    ratio = np.median(times[1:, 1] / times[1:, 0])  # the first round compiles
    add_row(f"a step, {name}, beside mj_step", closed_us, "us", other=bare_us, goal="at most 1.2", bound="mj_step")
    return (
        f"{name}: bare mj_step {bare_us:.2f} us, closed loop {closed_us:.2f} us a step "
        f"({1e6 / closed_us:,.0f} steps/s), ratio {ratio:.2f} (median of {ROUNDS - 1} rounds); "
        f"same motion to {error:.0e}"
    )


if __name__ == "__main__":
    for environment in ("leg", "leg-stochastic"):
        print(measure(environment), flush=True)
