"""Closed-loop steps of compiled MuJoCo tasks against bare `mj_step` of the same models on the same motion.

The closed loop has everything: 64-64 network, reward, observation, saving and restoring the state around each action.
The bare loop only sets the recorded actions and steps. Beside them: Gymnasium's loop without a policy, and MuJoCo's own
`rollout` module on one thread with the recorded actions. All in one process, in turn.
"""

import sys
from importlib import import_module

import gymnasium
import mujoco
import numpy as np
from leg_speed import measure as measure_leg
from leg_speed import seconds
from mujoco.rollout import rollout
from numba import njit

from envs.mujoco.memory import INTEGRATION, memory, mj_setState, mj_step
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.options import registry

ROUNDS = 9
MIN_STEPS = 2000  # of a round


@njit
def step_bare(params, ctrl_address, states, actions, lengths):
    """Step MuJoCo with the actions [B, T, A] from the states [B, S]."""
    ctrl = memory(ctrl_address, actions.shape[2])
    for b in range(states.shape[0]):
        mj_setState(params.model, params.data, states[b].ctypes.data, INTEGRATION)
        for t in range(lengths[b]):
            for i in range(actions.shape[2]):
                ctrl[i] = actions[b, t, i]
            for _ in range(params.frame_skip):
                mj_step(params.model, params.data)


def step_gymnasium(env, actions, lengths) -> None:
    """Take the actions in Gymnasium's environment, from its own starts."""
    for b, length in enumerate(lengths):
        env.reset(seed=b)
        for action in actions[b, :length]:
            env.step(action)


def step_rollout(model, data, states, controls) -> None:
    """Roll out with MuJoCo's module, without threads."""
    for state, control in zip(states, controls):
        rollout(model, data, state, control, nstep=len(control), persistent_pool=False)


def measure(name: str) -> str:
    """Return the result for one task as a line of text."""
    kernel = import_module(registry.TWINS[name]).kernel(1000)
    roller, env = KernelRoller(kernel, (64, 64), gamma=0.99), gymnasium.make(name).unwrapped
    rng = np.random.default_rng(0)
    theta = 0.1 * rng.standard_normal(roller.num_parameters)
    starts = roller.start_states(rng.random((200, kernel.start_size)))
    lengths = roller.rollouts(theta, starts, num_recorded=0).lengths
    starts = starts[: max(4, 1 + int(np.searchsorted(np.cumsum(lengths), MIN_STEPS)))]
    done = roller.rollouts(theta, starts)
    num_steps = done.lengths.sum()
    model, _ = kernel.poses(kernel.params, starts)
    ctrl = kernel.params.addresses[2]  # qpos, qvel, ctrl
    data, size = mujoco.MjData(model), mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    full = starts[:, :size].copy()  # time, qpos, qvel: these models have no activations
    pairs = zip(done.actions, done.lengths)
    controls = [np.repeat(actions[:length], kernel.params.frame_skip, axis=0) for actions, length in pairs]
    times = np.array(
        [
            (
                seconds(step_bare, kernel.params, ctrl, starts, done.actions, done.lengths),
                seconds(roller.rollouts, theta, starts),
                seconds(step_gymnasium, env, done.actions, done.lengths),
                seconds(step_rollout, model, data, full, controls),
            )
            for _ in range(ROUNDS)
        ]
    )[1:]  # the first round compiles
    step_bare(kernel.params, ctrl, starts, done.actions, done.lengths)
    final = kernel.poses(kernel.params, done.final_states[-1])[1]
    error = np.abs(memory(kernel.params.addresses[0], model.nq) - final).max()
    bare, closed, gym, module = 1e6 * np.median(times, axis=0) / num_steps
    ratios = np.median(times[:, 1:] / times[:, :1], axis=0)
    return (
        f"{name}: bare {bare:.1f} us an action, closed loop {closed:.1f} ({1e6 / closed:,.0f} steps/s, "
        f"ratio {ratios[0]:.2f}), same motion to {error:.0e}; "
        f"Gymnasium {gym:.1f} ({ratios[1]:.2f}), mujoco.rollout {module:.1f} ({ratios[2]:.2f})"
    )


if __name__ == "__main__":
    names = sys.argv[1:] or ["leg", *registry.TWINS]
    for task in names:
        print(measure_leg(task) if task.startswith("leg") else measure(task), flush=True)
