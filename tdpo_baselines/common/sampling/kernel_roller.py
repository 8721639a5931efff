"""Closed-loop rollouts of a compiled environment, with the policy inside the compiled loop.

All rollouts are one function of a first state and of offsets to the policy's actions. Two rollouts differ only by
these inputs.
"""

import numpy as np

from ..networks import mlp
from ..networks.templates import compile_template
from .rollouts import PolicyRoller, Rollouts

# ruff: noqa: F821


class KernelRoller(PolicyRoller):
    """Rollouts of a kernel with an MLP policy."""

    def __init__(self, kernel, hidden_sizes: tuple[int, ...], gamma: float, style: mlp.Style = mlp.PLAIN):
        super().__init__(kernel, hidden_sizes, gamma, style)
        self._workspace = tuple(mlp.make_workspace(self.layer_sizes))
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
        params = self.environment.params
        self._compiled(
            params, np.atleast_2d(theta), num_steps, offsets, save_steps, self.gamma, self._workspace, tuple(out)
        )


def compile_rollouts(kernel, layer_sizes: tuple[int, ...], style: mlp.Style):
    """Return the rollout loop with the kernel's physics and the policy network inside."""
    return compile_template(
        _roll_out_all,
        observe=kernel.observe,
        act=mlp.compile_act(layer_sizes, style),
        step=kernel.step,
        LANES=mlp.LANES,
        OBSERVATION=layer_sizes[0],
        ACTION=layer_sizes[-1],
        OUTPUT=mlp.num_activations(layer_sizes[:-1]),
    )


# Templates: functions that are called and sizes in capitals are bound when they are compiled. The loop is a single
# function because every array that is passed to another one, inlined or not, is reference-counted at each step, which
# makes a step of the pendulum 10 to 60 % slower.


def _place_all(params, starts, states):
    """Set `states` [B, S] at `starts` [B, U]."""
    for b in range(starts.shape[0]):
        reset(params, starts[b], states[b])


def _roll_out_all(params, thetas, num_steps, offsets, save_steps, gamma, workspace, out):
    """Advance `final_states` [B, S] in place; each lane takes the next rollout when its last one has ended."""
    activations, seen, acted = workspace
    observations, actions, rewards, returns, lengths, saved_states, states, _, is_terminal, _ = out
    theta, queue = mlp.copy_aligned(thetas[0]), np.flatnonzero(num_steps > 0)
    num_policies, alone = thetas.shape[0], np.zeros(activations.size)  # workspace of a lane with its own policy
    rollout, t, num_saved = np.full(LANES, -1), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)  # -1: idle lane
    total, discount = np.zeros(LANES), np.zeros(LANES)
    num_begun, num_ended = 0, 0
    while num_ended < queue.size:
        num = 0  # lanes up to the last one that is not idle
        for lane in range(LANES):
            if rollout[lane] < 0 and num_begun < queue.size:
                rollout[lane], t[lane], num_saved[lane], total[lane], discount[lane] = queue[num_begun], 0, 0, 0.0, 1.0
                num_begun += 1
            b = rollout[lane]
            if b >= 0:
                num = lane + 1
                while num_saved[lane] < save_steps.shape[1] and save_steps[b, num_saved[lane]] == t[lane]:
                    saved_states[b, num_saved[lane]] = states[b]
                    num_saved[lane] += 1
                observe(params, states[b], seen[lane])
        if num_policies == 1:
            act(theta, activations, num)
        else:
            for lane in range(num):
                if rollout[lane] >= 0:
                    for j in range(OBSERVATION):
                        alone[j] = seen[lane, j]
                    act(thetas[rollout[lane] * num_policies // lengths.size], alone, 1)
                    for j in range(ACTION):
                        acted[lane, j] = alone[OUTPUT + j]
        for lane in range(num):
            b, k = rollout[lane], t[lane]
            if b < 0:
                continue
            if k < offsets.shape[1]:
                for j in range(ACTION):
                    acted[lane, j] += offsets[b, k, j]
            reward, terminated = step(params, states[b], acted[lane])
            if k < rewards.shape[1]:
                for j in range(OBSERVATION):
                    observations[b, k, j] = seen[lane, j]
                for j in range(ACTION):
                    actions[b, k, j] = acted[lane, j]
                rewards[b, k] = reward
            total[lane] += discount[lane] * reward
            t[lane], discount[lane] = k + 1, discount[lane] * gamma
            if terminated or k + 1 == num_steps[b]:
                returns[b], lengths[b], is_terminal[b] = total[lane], k + 1, terminated
                rollout[lane], num_ended = -1, num_ended + 1
