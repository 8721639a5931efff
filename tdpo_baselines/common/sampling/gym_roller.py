"""Rollouts of any Gymnasium environment: a compiled policy, and one Python call per step."""

import numpy as np

from ..networks import mlp
from ..parallel.checks import BadEnvironment
from .gym_environment import NOT_REPRODUCIBLE, GymEnvironment
from .rollouts import PolicyRoller, Rollouts

NUM_SEEDS = 2**31


class GymRoller(PolicyRoller):
    """Rollouts of a `GymEnvironment` with an MLP policy."""

    def __init__(
        self, environment: GymEnvironment, hidden_sizes: tuple[int, ...], gamma: float, style: mlp.Style = mlp.PLAIN
    ):
        super().__init__(environment, hidden_sizes, gamma, style)
        self._act = mlp.compile_act(self.layer_sizes, style)
        self._num_mains = 0  # rollouts that branches started from

    def start_states(self, starts: np.ndarray) -> np.ndarray:
        """Return the states [B, S] after resets with seeds given as points [B, 1] of the unit interval."""
        states = np.zeros((len(starts), self.state_size))
        for state, start in zip(states, starts):
            self.environment.reset(int(start[0] * NUM_SEEDS))
            state[:] = self.environment.save()
        return states

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observation [O] in a state [S]."""
        return state[1 : 1 + self.layer_sizes[0]]

    def _roll_out(self, theta, states, num_steps, offsets, save_steps, out: Rollouts) -> None:
        thetas = np.atleast_2d(theta)
        for b, state in enumerate(states):
            out.replayed_steps[b] = self.environment.load(state)
            policy = thetas[b * len(thetas) // len(states)]
            self._roll_out_one(policy, self.observe(state), num_steps[b], offsets[b], save_steps[b], b, out)
            out.final_states[b] = self.environment.save()
            if save_steps.shape[1] and not offsets.shape[1]:
                self._check_branch(policy, save_steps[b], b, out)

    def _check_branch(self, theta, save_steps, b: int, out: Rollouts) -> None:
        """Raise BadEnvironment if rollout b would continue differently from a state that was saved on its way.

        The self-test sees few steps and random actions. So the first rollout is checked, the second, the fourth, the
        eighth and so on.
        """
        self._num_mains += 1
        first, length = save_steps[len(save_steps) // 2], out.lengths[b]
        if self._num_mains & (self._num_mains - 1) or not first < length <= out.rewards.shape[1]:
            return
        state = out.saved_states[b : b + 1, len(save_steps) // 2]
        again = self.rollouts(theta, state, num_steps=np.array([length - first]), num_recorded=length - first)
        for name in ("observations", "actions", "rewards"):
            if not np.array_equal(getattr(again, name)[0], getattr(out, name)[b, first:length], equal_nan=True):
                raise BadEnvironment(f"{name} after step {first} of an episode differ in a branch, {NOT_REPRODUCIBLE}")

    def _roll_out_one(self, theta, observation, num_steps, offsets, save_steps, b: int, out: Rollouts) -> None:
        """Roll out from the environment's present state into row b of the record."""
        environment, workspace = self.environment, mlp.make_workspace(self.layer_sizes)
        activations, seen, acted = workspace.activations, workspace.observations[0], workspace.actions[0]
        total, discount, num_saved, num_recorded = 0.0, 1.0, 0, out.rewards.shape[1]
        for k in range(num_steps):
            while num_saved < len(save_steps) and save_steps[num_saved] == k:
                out.saved_states[b, num_saved] = environment.save()
                num_saved += 1
            seen[:] = observation
            self._act(theta, activations, 1)
            action = acted.copy()
            if k < len(offsets):
                action += offsets[k]
            observation, reward, is_terminal, is_truncated = environment.step(action)
            if k < num_recorded:
                out.observations[b, k], out.actions[b, k], out.rewards[b, k] = seen, action, reward
            total += discount * reward
            discount *= self.gamma
            out.discounted_returns[b], out.lengths[b] = total, k + 1
            out.is_terminal[b], out.is_truncated[b] = is_terminal, is_truncated
            if is_terminal or is_truncated:
                break
