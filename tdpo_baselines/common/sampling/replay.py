"""Transitions as rows, and a ring buffer that keeps the latest ones of each stream.

Shapes: n streams of this rank, L steps, M rows of a minibatch, O observation, A action, D = 2 O + A + 2 of a row.
"""

from typing import Any, NamedTuple

import numpy as np


class Transitions(NamedTuple):
    """Columns of rows [..., D]: arrays or tensors."""

    observations: Any  # [..., O]
    actions: Any  # [..., A]
    rewards: Any  # [...]
    is_terminal: Any  # [...] nothing follows
    next_observations: Any  # [..., O]

    @classmethod
    def from_rows(cls, rows: Any, O: int, A: int) -> "Transitions":
        """Split rows [..., D] into columns."""
        reward = O + A
        return cls(
            rows[..., :O], rows[..., O:reward], rows[..., reward], rows[..., reward + 1], rows[..., reward + 2 :]
        )

    def rows(self) -> np.ndarray:
        """Return the columns side by side. [..., D]"""
        scalars = self.rewards[..., None], self.is_terminal[..., None]
        columns = self.observations, self.actions, *scalars, self.next_observations
        return np.concatenate(columns, axis=-1, dtype=np.float32)


def row_width(O: int, A: int) -> int:
    """Return D, the number of columns of a transition."""
    return 2 * O + A + 2


class Replay:
    """A ring buffer of rows per stream. All streams advance together, so one counter serves them all."""

    def __init__(self, num_streams: int, capacity: int, width: int):
        self._rows = np.zeros((num_streams, capacity, width), np.float32)
        self.num_added = 0  # to each stream

    @property
    def num_filled(self) -> int:
        """Rows that each stream holds."""
        return min(self.num_added, self._rows.shape[1])

    @property
    def filled(self) -> np.ndarray:
        """All rows held, in the order of the buffer. [n, num_filled, D]"""
        return self._rows[:, : self.num_filled]

    def add(self, rows: np.ndarray) -> None:
        """Append rows [n, L, D], overwriting the oldest."""
        for t in range(rows.shape[1]):
            self._rows[:, (self.num_added + t) % self._rows.shape[1]] = rows[:, t]
        self.num_added += rows.shape[1]

    def sample(self, stream: int, indices: np.ndarray) -> np.ndarray:
        """Return the rows [..., D] of a stream at indices [...] less than `num_filled`."""
        return self._rows[stream][indices]

    def latest(self, num: int) -> np.ndarray:
        """Return the last rows [n, num, D] of every stream, or all if there are fewer."""
        num = min(num, self.num_filled)
        return self._rows[:, (self.num_added - num + np.arange(num)) % self._rows.shape[1]]

    def load(self, rows: np.ndarray, num_added: int) -> None:
        """Continue from `filled` and `num_added` of a checkpoint."""
        self._rows[:, : rows.shape[1]] = rows
        self.num_added = num_added
