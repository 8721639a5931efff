"""Closed-loop rollouts of a compiled environment, policy included, in compiled code.

Every kind of rollout is one function: the policy's action plus an offset that the caller supplies,
from a state that the caller supplies. Two rollouts differ only by what was put in.
"""

import numpy as np

from ..networks import mlp
from ..networks.templates import compile_template
from .rollouts import Rollouts

# ruff: noqa: F821


def _rollouts(params, theta, states, num_steps, offsets, gamma, save_steps, out):
    """Roll `states` [B, S] forward in place; see `KernelRoller.rollouts`.

    Each lane of the policy takes the next rollout when its last one has ended. This is a template:
    `observe`, `step`, `act` and the sizes in capitals are bound when it is compiled.
    """
    observations, actions, rewards, returns, lengths, saved_states, is_terminal = out
    batch, num_recorded, num_offsets = states.shape[0], observations.shape[1], offsets.shape[1]
    theta, activations = mlp.aligned_copy(theta), np.zeros(ACTIVATIONS)
    rollout = np.full(LANES, -1)  # index b of each lane's rollout, -1 if it has none
    t, save, total, discount = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64), np.zeros(LANES), np.zeros(LANES)
    next_rollout, num_active = 0, 0
    while True:
        num_lanes = 0  # up to the last one that has a rollout
        for lane in range(LANES):
            while rollout[lane] < 0 and next_rollout < batch:
                if num_steps[next_rollout] > 0:
                    rollout[lane], t[lane], save[lane], total[lane], discount[lane] = next_rollout, 0, 0, 0.0, 1.0
                    num_active += 1
                next_rollout += 1
            b = rollout[lane]
            if b >= 0:
                num_lanes = lane + 1
                while save[lane] < save_steps.shape[1] and save_steps[b, save[lane]] == t[lane]:
                    saved_states[b, save[lane]] = states[b]
                    save[lane] += 1
                observe(params, states[b], activations[lane * OBSERVATION : (lane + 1) * OBSERVATION])
        if num_active == 0:
            break
        act(theta, activations, num_lanes)
        for lane in range(LANES):
            b = rollout[lane]
            if b < 0:
                continue
            k = t[lane]
            action = ACTIONS + lane * ACTION  # where it is
            if k < num_offsets:
                for j in range(ACTION):
                    activations[action + j] += offsets[b, k, j]
            reward, terminated = step(params, states[b], activations[action : action + ACTION])
            total[lane] += discount[lane] * reward
            discount[lane] *= gamma
            if k < num_recorded:
                for j in range(OBSERVATION):
                    observations[b, k, j] = activations[lane * OBSERVATION + j]
                for j in range(ACTION):
                    actions[b, k, j] = activations[action + j]
                rewards[b, k] = reward
            t[lane] = k + 1
            if terminated or k + 1 == num_steps[b]:
                returns[b], lengths[b], is_terminal[b] = total[lane], k + 1, terminated
                rollout[lane] = -1
                num_active -= 1


def _start_states(params, starts, states):
    """Place `states` [B, S] at `starts` [B, U]. A template, in which `reset` is bound."""
    for b in range(starts.shape[0]):
        reset(params, starts[b], states[b])


class KernelRoller:
    """Rolls out a kernel with an MLP policy of the given hidden layer sizes."""

    def __init__(self, kernel, hidden_sizes: tuple[int, ...], gamma: float, style: mlp.Style = mlp.PLAIN):
        self.kernel = kernel
        self.horizon = kernel.horizon
        self.start_size = kernel.start_size
        self.state_size = kernel.state_size
        self.style = style
        has_range = np.isfinite(kernel.action_low) & np.isfinite(kernel.action_high)
        self.is_action_limited = kernel.is_action_limited & has_range  # [A]
        self.layer_sizes = (kernel.observation_size, *hidden_sizes, kernel.action_size)
        self.num_parameters = mlp.num_parameters(self.layer_sizes)
        self._gamma = gamma
        self._place = compile_template(_start_states, reset=kernel.reset)
        self._compiled = compile_rollouts(kernel, self.layer_sizes, style)
        once = self.start_states(np.full((1, kernel.start_size), 0.5))
        self.rollouts(np.zeros(self.num_parameters), once, num_steps=np.array([1]))  # compiles now

    def start_states(self, starts: np.ndarray) -> np.ndarray:
        """States [B, S] placed at points [B, U] of the unit cube."""
        states = np.zeros((len(starts), self.kernel.state_size))
        self._place(self.kernel.params, starts, states)
        return states

    def rollouts(
        self,
        theta: np.ndarray,
        states: np.ndarray,
        *,
        num_steps: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
        save_steps: np.ndarray | None = None,
        num_recorded: int | None = None,
    ) -> Rollouts:
        """Roll out from `states` [B, S] for `num_steps` [B] (default: the horizon).

        `offsets` [B, D, A] are added to the first D actions; `save_steps` [B, K], ascending, are the
        steps before which states are saved; `num_recorded` limits the per-step arrays.
        """
        kernel, batch = self.kernel, len(states)
        num_steps = np.full(batch, self.horizon) if num_steps is None else num_steps
        offsets = np.zeros((batch, 0, kernel.action_size)) if offsets is None else offsets
        save_steps = np.zeros((batch, 0), dtype=np.int64) if save_steps is None else save_steps
        num_recorded = self.horizon if num_recorded is None else num_recorded
        out = Rollouts.empty(batch, num_recorded, self.layer_sizes, kernel.state_size, save_steps.shape[1])
        out.final_states[:] = states
        names = ("observations", "actions", "rewards", "returns", "lengths", "saved_states", "is_terminal")
        filled = tuple(getattr(out, name) for name in names)
        self._compiled(kernel.params, theta, out.final_states, num_steps, offsets, self._gamma, save_steps, filled)
        return out

    def observe(self, state: np.ndarray) -> np.ndarray:
        """What the policy sees in that state. [O]"""
        observation = np.empty(self.layer_sizes[0])
        self.kernel.observe(self.kernel.params, state, observation)
        return observation


def compile_rollouts(kernel, layer_sizes: tuple[int, ...], style: mlp.Style):
    """The rollout loop with the kernel's physics and the policy network inside."""
    return compile_template(
        _rollouts,
        observe=kernel.observe,
        step=kernel.step,
        act=mlp.compile_act(layer_sizes, style),
        LANES=mlp.LANES,
        ACTIVATIONS=mlp.num_activations(layer_sizes),
        OBSERVATION=layer_sizes[0],
        ACTION=layer_sizes[-1],
        ACTIONS=mlp.num_activations(layer_sizes[:-1]),
    )
