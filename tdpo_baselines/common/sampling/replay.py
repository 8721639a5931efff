"""The last transitions of each of a rank's streams, to be drawn from again and again."""

from typing import NamedTuple

import numpy as np

from .streams import Segments


class Columns(NamedTuple):
    """Where the parts of a transition are in its row [D]."""

    observation: slice
    action: slice
    reward: int
    is_terminal: int
    next_observation: slice
    width: int

    @classmethod
    def of(cls, O: int, A: int) -> "Columns":
        return cls(slice(0, O), slice(O, O + A), O + A, O + A + 1, slice(O + A + 2, 2 * O + A + 2), 2 * O + A + 2)

    def rows(self, segments: Segments, actions: np.ndarray) -> np.ndarray:
        """[n, L, D] of segments whose actions, in units of their range, are given."""
        rows = np.empty((*segments.rewards.shape, self.width), np.float32)
        rows[..., self.observation], rows[..., self.next_observation] = (
            segments.observations,
            segments.next_observations,
        )
        rows[..., self.action], rows[..., self.reward] = actions, segments.rewards
        rows[..., self.is_terminal] = segments.is_terminal
        return rows


class Replay:
    """A ring of rows per stream. All streams go on equally, so they share one counter."""

    def __init__(self, num_streams: int, capacity: int, width: int):
        self._rows = np.zeros((num_streams, capacity, width), np.float32)
        self.num_added = 0  # to each stream

    @property
    def num_filled(self) -> int:
        return min(self.num_added, self._rows.shape[1])

    def add(self, rows: np.ndarray) -> None:
        """Rows [n, L, D], the oldest of which make room."""
        for t in range(rows.shape[1]):
            self._rows[:, (self.num_added + t) % self._rows.shape[1]] = rows[:, t]
        self.num_added += rows.shape[1]

    def sample(self, stream: int, indices: np.ndarray) -> np.ndarray:
        """Rows [..., D] at indices [...] of the filled part of a stream."""
        return self._rows[stream][indices]

    def latest(self, num: int) -> np.ndarray:
        """The last rows [n, num, D] of every stream, or all that there are."""
        num = min(num, self.num_filled)
        return self._rows[:, (self.num_added - num + np.arange(num)) % self._rows.shape[1]]

    @property
    def filled(self) -> np.ndarray:
        return self._rows[:, : self.num_filled]

    def load(self, rows: np.ndarray, num_added: int) -> None:
        self._rows[:, : rows.shape[1]] = rows
        self.num_added = num_added
