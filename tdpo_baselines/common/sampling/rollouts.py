"""The record of a batch of rollouts, and the part of a roller that does not depend on the kind of environment."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..networks import mlp


class Rollouts(NamedTuple):
    """B rollouts. Per-step arrays hold the first R steps, `num_recorded`; rows past `lengths` are zero."""

    observations: np.ndarray  # [B, R, O]
    actions: np.ndarray  # [B, R, A] as executed
    rewards: np.ndarray  # [B, R]
    discounted_returns: np.ndarray  # [B] of all steps, from the rollout's own first one
    lengths: np.ndarray  # [B]
    saved_states: np.ndarray  # [B, K, S] before `save_steps`
    final_states: np.ndarray  # [B, S]
    replayed_steps: np.ndarray  # [B] simulated only to reach the first state
    is_terminal: np.ndarray  # [B] the environment itself ended the rollout
    is_truncated: np.ndarray  # [B] a time limit of the environment ended it


def make_rollouts(batch: int, num_recorded: int, sizes: tuple[int, ...], state_size: int, num_saved: int) -> Rollouts:
    """Return a record of zeros, to be filled in."""
    return Rollouts(
        observations=np.zeros((batch, num_recorded, sizes[0])),
        actions=np.zeros((batch, num_recorded, sizes[-1])),
        rewards=np.zeros((batch, num_recorded)),
        discounted_returns=np.zeros(batch),
        lengths=np.zeros(batch, dtype=np.int64),
        saved_states=np.zeros((batch, num_saved, state_size)),
        final_states=np.zeros((batch, state_size)),
        replayed_steps=np.zeros(batch, dtype=np.int64),
        is_terminal=np.zeros(batch, dtype=np.bool_),
        is_truncated=np.zeros(batch, dtype=np.bool_),
    )


class PolicyRoller(ABC):
    """An environment and the shape of an MLP policy. A subclass fills in the record of the rollouts."""

    def __init__(self, environment: Any, hidden_sizes: tuple[int, ...], gamma: float, style: mlp.Style = mlp.PLAIN):
        self.environment = environment
        self.horizon, self.is_horizon_terminal = environment.horizon, environment.is_horizon_terminal
        self.start_size = environment.start_size
        self.state_size = environment.state_size
        self.style = style
        self.has_action_range = np.isfinite(environment.action_low) & np.isfinite(environment.action_high)  # [A]
        self.is_action_limited = environment.is_action_limited & self.has_action_range  # [A]
        self.layer_sizes = (environment.observation_size, *hidden_sizes, environment.action_size)
        self.num_parameters = mlp.num_parameters(self.layer_sizes, style)
        self.gamma = gamma

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
        """Roll out, with the meaning of `contracts.Roller.rollouts`."""
        batch = len(states)
        if theta.ndim == 2 and batch % len(theta):
            raise ValueError(f"{batch} rollouts cannot be shared equally among {len(theta)} policies")
        num_steps = np.full(batch, self.horizon) if num_steps is None else num_steps
        offsets = np.zeros((batch, 0, self.layer_sizes[-1])) if offsets is None else offsets
        save_steps = np.zeros((batch, 0), dtype=np.int64) if save_steps is None else save_steps
        num_recorded = self.horizon if num_recorded is None else num_recorded
        out = make_rollouts(batch, num_recorded, self.layer_sizes, self.state_size, save_steps.shape[1])
        self._roll_out(theta, states, num_steps, offsets, save_steps, out)
        return out

    @abstractmethod
    def _roll_out(self, theta, states, num_steps, offsets, save_steps, out: Rollouts) -> None:
        """Fill in `out`."""
