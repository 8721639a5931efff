"""Running mean and variance of observations, and networks that see them normalised.

A network for normalised observations is the same function as one for raw observations with other
weights in its first layer. Acting, checkpoints and evaluation always use the latter, `folded`; only
derivatives are taken of the former, `unfolded`. So new statistics never change the policy itself.
"""

from typing import Any, NamedTuple

import numpy as np


class RunningStats(NamedTuple):
    observation_count: Any  # of observations
    observation_sum: np.ndarray  # [O]
    observation_squares: np.ndarray  # [O] sum of squares

    @classmethod
    def none(cls, size: int) -> "RunningStats":
        return cls(0.0, np.zeros(size), np.zeros(size))

    def merged(self, counts: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> "RunningStats":
        """With those of trajectories [N], [N, O], [N, O], added in their order."""
        return RunningStats(
            self.observation_count + counts.sum(),
            self.observation_sum + sums.sum(axis=0),
            self.observation_squares + squares.sum(axis=0),
        )

    @property
    def mean(self) -> np.ndarray:
        return self.observation_sum / max(self.observation_count, 1.0)

    @property
    def std(self) -> np.ndarray:
        """One where nothing varies."""
        variance = self.observation_squares / max(self.observation_count, 1.0) - self.mean**2
        scale = 1e-12 * (1 + self.mean**2)
        return np.sqrt(np.where(variance > scale, variance, 1.0))


def folded(theta: np.ndarray, sizes: tuple[int, ...], stats: RunningStats) -> np.ndarray:
    """Parameters for raw observations, from those for normalised ones."""
    weights, biases, rest = _first_layer(theta, sizes)
    weights = weights / stats.std[:, None]
    return np.concatenate([weights.ravel(), biases - (stats.mean[:, None] * weights).sum(axis=0), rest])


def unfolded(theta: np.ndarray, sizes: tuple[int, ...], stats: RunningStats) -> np.ndarray:
    """Parameters for normalised observations, from those for raw ones."""
    weights, biases, rest = _first_layer(theta, sizes)
    shifted = biases + (stats.mean[:, None] * weights).sum(axis=0)
    return np.concatenate([(weights * stats.std[:, None]).ravel(), shifted, rest])


def _first_layer(theta: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, m = sizes[:2]
    return theta[: n * m].reshape(n, m), theta[n * m : (n + 1) * m], theta[(n + 1) * m :]
