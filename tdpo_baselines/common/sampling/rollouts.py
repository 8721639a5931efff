"""The record of a batch of rollouts, which all rollers return."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Rollouts:
    """B rollouts. Per-step arrays hold the first R steps, R as asked for; rows past `lengths` are zero."""

    observations: np.ndarray  # [B, R, O]
    actions: np.ndarray  # [B, R, A] as executed
    rewards: np.ndarray  # [B, R]
    returns: np.ndarray  # [B] discounted from the rollout's own first step, all steps
    lengths: np.ndarray  # [B]
    saved_states: np.ndarray  # [B, K, S] before the steps asked for
    final_states: np.ndarray  # [B, S]
    replayed_steps: np.ndarray  # [B] simulated only to reach the first state
    is_terminal: np.ndarray  # [B] whether the environment itself ended it, not a limit of steps
    is_truncated: np.ndarray  # [B] whether a limit of its own cut it off

    @classmethod
    def empty(cls, batch: int, num_recorded: int, sizes: tuple[int, ...], state_size: int, num_saved: int):
        """Zeros, to be filled."""
        return cls(
            observations=np.zeros((batch, num_recorded, sizes[0])),
            actions=np.zeros((batch, num_recorded, sizes[-1])),
            rewards=np.zeros((batch, num_recorded)),
            returns=np.zeros(batch),
            lengths=np.zeros(batch, dtype=np.int64),
            saved_states=np.zeros((batch, num_saved, state_size)),
            final_states=np.zeros((batch, state_size)),
            replayed_steps=np.zeros(batch, dtype=np.int64),
            is_terminal=np.zeros(batch, dtype=np.bool_),
            is_truncated=np.zeros(batch, dtype=np.bool_),
        )
