"""Running mean and variance of observations, and networks that see them normalised.

A network for normalised observations is the same function as one for raw observations with other weights in its first
layer. Acting, checkpoints and evaluation always use the one for raw observations; only derivatives are taken of the
other. So new statistics never change the policy itself.
"""

from typing import Any, NamedTuple

import numpy as np

from . import mlp


class RunningStats(NamedTuple):
    """Sums over all observations so far. Field names are names in checkpoints."""

    count: Any
    sum: np.ndarray  # [O]
    squares: np.ndarray  # [O] sum of squares

    @classmethod
    def of_size(cls, size: int) -> "RunningStats":
        """Return the statistics before the first observation."""
        return cls(0.0, np.zeros(size), np.zeros(size))

    def merged(self, counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> "RunningStats":
        """Return the statistics with those of trajectories [N], [N, O], [N, O] added in their order."""
        return RunningStats(self.count + counts.sum(), self.sum + sums.sum(axis=0), self.squares + squares.sum(axis=0))

    @property
    def mean(self) -> np.ndarray:
        return self.sum / max(self.count, 1.0)

    @property
    def std(self) -> np.ndarray:
        """The standard deviation [O], one where nothing varies."""
        variance = self.squares / max(self.count, 1.0) - self.mean**2
        scale = 1e-12 * (1 + self.mean**2)
        return np.sqrt(np.where(variance > scale, variance, 1.0))

    def limited(self) -> "RunningStats":
        """Return statistics that only scale down: mean 0, and a deviation of at least 1."""
        return RunningStats(1.0, np.zeros_like(self.sum), np.maximum(self.std, 1.0) ** 2)

    def normalise(self, observations: np.ndarray) -> np.ndarray:
        """Return observations [..., O] scaled to mean 0 and standard deviation 1."""
        return (observations - self.mean) / self.std


def fold_normalisation(theta: np.ndarray, sizes: tuple[int, ...], stats: RunningStats) -> np.ndarray:
    """Return the parameters for raw observations, from those for normalised ones."""
    theta = theta.copy()
    for weights, biases in _input_weights(theta, sizes):
        weights /= stats.std[:, None]
        biases -= (stats.mean[:, None] * weights).sum(axis=0)
    return theta


def unfold_normalisation(theta: np.ndarray, sizes: tuple[int, ...], stats: RunningStats) -> np.ndarray:
    """Return the parameters for normalised observations, from those for raw ones."""
    theta = theta.copy()
    for weights, biases in _input_weights(theta, sizes):
        biases += (stats.mean[:, None] * weights).sum(axis=0)
        weights *= stats.std[:, None]
    return theta


def _input_weights(theta: np.ndarray, sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights that observations meet, and the biases beside them, as views of theta."""
    layers, linear = mlp.split_layers(theta, sizes), mlp.linear_part(theta, sizes)
    return [layers[0]] + ([(linear.reshape(sizes[0], sizes[-1]), layers[-1][1])] if linear.size else [])
