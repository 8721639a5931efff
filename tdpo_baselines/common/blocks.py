"""Sums over all ranks' rows that are the same to the bit on any number of ranks."""

import numpy as np

from .comm import Comm

ROWS_PER_BLOCK = 48  # about this many rows are summed in one block; fixes the order of every sum


class Blocks:
    """Rows of all trajectories, cut into blocks of whole trajectories that the ranks share."""

    def __init__(self, num_trajectories: int, rows_per_trajectory: int, layer_sizes: tuple[int, ...], comm: Comm):
        from .policy import PolicyDerivatives

        per_block = min(num_trajectories, max(1, ROWS_PER_BLOCK // rows_per_trajectory))  # trajectories
        self.num_blocks = -(-num_trajectories // per_block)
        self.num_rows = num_trajectories * rows_per_trajectory
        self._rows_per_block = per_block * rows_per_trajectory
        self._comm = comm
        self._mine = comm.share(self.num_blocks)
        self.share = np.array([self._mine.start, self._mine.stop], dtype=np.int32)
        self.derivatives = PolicyDerivatives(layer_sizes, self.num_blocks, self._rows_per_block)

    def cut(self, rows: np.ndarray) -> np.ndarray:
        """Rows [N, K, D, ...] as blocks [B, R, ...]; the last block is filled up with zeros."""
        rest = rows.shape[3:]
        padded = np.zeros((self.num_blocks * self._rows_per_block, *rest))
        padded[: self.num_rows] = rows.reshape(self.num_rows, *rest)
        return padded.reshape(self.num_blocks, self._rows_per_block, *rest)

    def total(self, block_sums: np.ndarray) -> np.ndarray:
        """Sum [P] of the blocks' sums [B, P] of all ranks, in the order of the blocks."""
        return self._comm.sum(block_sums[self._mine], self.num_blocks)
