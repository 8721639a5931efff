"""Closed-loop rollouts of a compiled environment, with the policy inside the compiled loop.

All rollouts are one function of a first state and of offsets to the policy's actions. Two rollouts differ only by
these inputs.
"""

from typing import NamedTuple

import numpy as np

from ..networks import mlp
from ..networks.templates import compile_template
from .rollouts import PolicyRoller, Rollouts

# ruff: noqa: F821


class KernelRoller(PolicyRoller):
    """Rollouts of a kernel with an MLP policy."""

    def __init__(self, kernel, hidden_sizes: tuple[int, ...], gamma: float, style: mlp.Style = mlp.PLAIN):
        super().__init__(kernel, hidden_sizes, gamma, style)
        self._place = compile_template(_place_all, reset=kernel.reset)
        self._compiled = compile_rollouts(kernel, self.layer_sizes, style)
        once = self.start_states(np.full((1, kernel.start_size), 0.5))
        self.rollouts(np.zeros(self.num_parameters), once, num_steps=np.array([1]))  # compiles now

    def start_states(self, starts: np.ndarray) -> np.ndarray:
        """Return the states [B, S] at points [B, U] of the unit cube."""
        states = np.zeros((len(starts), self.state_size))
        self._place(self.environment.params, starts, states)
        return states

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observation [O] in a state [S]."""
        observation = np.empty(self.layer_sizes[0])
        self.environment.observe(self.environment.params, state, observation)
        return observation

    def _roll_out(self, theta, states, num_steps, offsets, save_steps, out: Rollouts) -> None:
        out.final_states[:] = states
        workspace, params = mlp.make_workspace(self.layer_sizes), self.environment.params
        self._compiled(params, theta, num_steps, offsets, save_steps, self._gamma, workspace, out)


def compile_rollouts(kernel, layer_sizes: tuple[int, ...], style: mlp.Style):
    """Return the rollout loop with the kernel's physics and the policy network inside."""
    sizes = {"OBSERVATION": layer_sizes[0], "ACTION": layer_sizes[-1]}
    return compile_template(
        _roll_out_all,
        begin_rollouts=compile_template(_begin_rollouts),
        observe_lane=compile_template(_observe_lane, observe=kernel.observe),
        act=mlp.compile_act(layer_sizes, style),
        step_lane=compile_template(_step_lane, step=kernel.step, **sizes),
        LANES=mlp.LANES,
    )


# Templates: functions that are called and sizes in capitals are bound when they are compiled.


def _place_all(params, starts, states):
    """Set `states` [B, S] at `starts` [B, U]."""
    for b in range(starts.shape[0]):
        reset(params, starts[b], states[b])


class Lanes(NamedTuple):
    """The rollouts that the lanes of the policy are working on, [LANES] each."""

    rollout: np.ndarray  # index b, -1 if there is none
    step: np.ndarray
    num_saved: np.ndarray
    total: np.ndarray  # discounted rewards so far
    discount: np.ndarray


def _roll_out_all(params, theta, num_steps, offsets, save_steps, gamma, workspace, out):
    """Advance `out.final_states` [B, S] in place; each lane takes the next rollout when its last one has ended."""
    theta, whole, real = mlp.copy_aligned(theta), np.zeros((2, LANES), np.int64), np.zeros((2, LANES))
    lanes = Lanes(np.full(LANES, -1), whole[0], whole[1], real[0], real[1])
    next_rollout = 0
    while True:
        next_rollout = begin_rollouts(lanes, next_rollout, num_steps)
        num = 0  # lanes up to the last one that has a rollout
        for lane in range(LANES):
            if lanes.rollout[lane] >= 0:
                observe_lane(params, lane, lanes, save_steps, workspace, out)
                num = lane + 1
        if num == 0:
            break
        act(theta, workspace.activations, num)
        for lane in range(num):
            if lanes.rollout[lane] >= 0:
                step_lane(params, lane, lanes, num_steps, offsets, gamma, workspace, out)


def _begin_rollouts(lanes, next_rollout, num_steps):
    """Give idle lanes the rollouts from `next_rollout` on; return the first that no lane has taken."""
    for lane in range(lanes.rollout.shape[0]):
        while lanes.rollout[lane] < 0 and next_rollout < num_steps.shape[0]:
            if num_steps[next_rollout] > 0:
                lanes.rollout[lane], lanes.step[lane], lanes.num_saved[lane] = next_rollout, 0, 0
                lanes.total[lane], lanes.discount[lane] = 0.0, 1.0
            next_rollout += 1
    return next_rollout


def _observe_lane(params, lane, lanes, save_steps, workspace, out):
    """Save the state if asked for, and observe it."""
    b = lanes.rollout[lane]
    while lanes.num_saved[lane] < save_steps.shape[1] and save_steps[b, lanes.num_saved[lane]] == lanes.step[lane]:
        out.saved_states[b, lanes.num_saved[lane]] = out.final_states[b]
        lanes.num_saved[lane] += 1
    observe(params, out.final_states[b], workspace.observations[lane])


def _step_lane(params, lane, lanes, num_steps, offsets, gamma, workspace, out):
    """Take and record the lane's action; free the lane if its rollout has ended."""
    b, k = lanes.rollout[lane], lanes.step[lane]
    observation, action = workspace.observations[lane], workspace.actions[lane]
    if k < offsets.shape[1]:
        for j in range(ACTION):
            action[j] += offsets[b, k, j]
    reward, is_terminal = step(params, out.final_states[b], action)
    lanes.total[lane] += lanes.discount[lane] * reward
    lanes.discount[lane] *= gamma
    if k < out.rewards.shape[1]:
        for j in range(OBSERVATION):
            out.observations[b, k, j] = observation[j]
        for j in range(ACTION):
            out.actions[b, k, j] = action[j]
        out.rewards[b, k] = reward
    lanes.step[lane] = k + 1
    if is_terminal or k + 1 == num_steps[b]:
        out.returns[b], out.lengths[b], out.is_terminal[b] = lanes.total[lane], k + 1, is_terminal
        lanes.rollout[lane] = -1
