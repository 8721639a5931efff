"""The advanced variant's exploration scale: Algorithm 1, line 8 of arXiv 2205.15379."""

from typing import Any, NamedTuple

import numpy as np

from ..common.optim.adam import Adam

RANGE = (1e-3, 10.0)  # floor and ceiling of sigma, relative to its initial value


class ExplorationScale(NamedTuple):
    """log sigma of each action coordinate, and Adam's moments of its gradient. Field names are names in checkpoints."""

    log_std: np.ndarray  # [A]
    mean: np.ndarray  # [A]
    square: np.ndarray  # [A]
    count: Any = 0.0

    @classmethod
    def initial(cls, std: float, action_size: int) -> "ExplorationScale":
        """Return the scale before the first update."""
        zeros = np.zeros(action_size)
        return cls(zeros + np.log(std), zeros, zeros)

    def adapt(
        self,
        directions: np.ndarray,
        weights: np.ndarray,
        advantages: np.ndarray,
        *,
        initial_std: float,
        learning_rate: float,
    ) -> "ExplorationScale":
        """Return the scale after a step along the gradient of the expected advantage.

        The score function of a Gaussian gives d/dlog sigma E[A] = E[A (z^2 - 1)], z = perturbation / sigma. Of
        two-sided advantages [N, K] only the even part contributes. `directions` are the perturbations [N, K, A].
        """
        z = directions / np.exp(self.log_std)
        gradient = np.mean((weights * advantages)[..., None] * (z**2 - 1), axis=(0, 1))
        adam, change = Adam(*self[1:]).step(gradient, learning_rate=learning_rate)
        low, high = np.log(initial_std) + np.log(RANGE)
        return ExplorationScale(np.clip(self.log_std + change, low, high), *adam)
