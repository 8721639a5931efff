"""Sums over all ranks' rows that are the same to the bit on any number of ranks.

Only ranks that have blocks load TensorFlow: it is most of a rank's memory and of its time to start.
"""

from typing import Any

import numpy as np

from ..common.networks import mlp
from ..common.parallel.comm import Comm
from ..common.parallel.tensorflow_setup import load_tensorflow_in_turn

ROWS_PER_BLOCK = 48  # about this many rows are summed in one block; fixes the order of every sum


class NoDerivatives:
    """`policy.PolicyDerivatives` of a rank without blocks: its sums are zero."""

    def __init__(self, zeros: np.ndarray):
        self.gradient = self.wasserstein_product = self.sensitivity_product = lambda *arrays: zeros

    @staticmethod
    def tensors(*arrays):
        return list(arrays)


class Blocks:
    """Rows of all trajectories, cut into blocks of whole trajectories that the ranks share."""

    def __init__(self, num_trajectories: int, rows_per_trajectory: int, layer_sizes: tuple[int, ...], comm: Comm):
        per_block = min(num_trajectories, max(1, ROWS_PER_BLOCK // rows_per_trajectory))  # trajectories
        self.num_blocks = -(-num_trajectories // per_block)
        self.num_rows = num_trajectories * rows_per_trajectory
        self._rows_per_block = per_block * rows_per_trajectory
        self._comm = comm
        self._mine = comm.share(self.num_blocks)
        self.share = np.array([self._mine.start, self._mine.stop], dtype=np.int32)
        has_blocks = self._mine.start < self._mine.stop
        load_tensorflow_in_turn(comm, is_needed=has_blocks)
        if has_blocks:
            from ..common.networks.tf_mlp import PolicyDerivatives

            self.derivatives: Any = PolicyDerivatives(layer_sizes, self.num_blocks, self._rows_per_block)
        else:
            self.derivatives = NoDerivatives(np.zeros((self.num_blocks, mlp.num_parameters(layer_sizes))))

    def cut(self, rows: np.ndarray) -> np.ndarray:
        """Rows [N, K, D, ...] as blocks [B, R, ...]; the last block is filled up with zeros."""
        rest = rows.shape[3:]
        padded = np.zeros((self.num_blocks * self._rows_per_block, *rest))
        padded[: self.num_rows] = rows.reshape(self.num_rows, *rest)
        return padded.reshape(self.num_blocks, self._rows_per_block, *rest)

    def total(self, block_sums: np.ndarray) -> np.ndarray:
        """Sum [P] of the blocks' sums [B, P] of all ranks, in the order of the blocks."""
        return self._comm.sum(block_sums[self._mine], self.num_blocks)
