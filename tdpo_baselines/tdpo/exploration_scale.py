"""The advanced variant's exploration scale, which follows the gain of larger perturbations."""

from typing import Any, NamedTuple

import numpy as np

from ..common.optim.adam import Adam
from .devine import Vines

RANGE = (1e-3, 10.0)  # floor and ceiling of sigma, relative to its initial value


class ExplorationScale(NamedTuple):
    """log sigma of each action coordinate, and Adam's moments of its gradient."""

    log_std: np.ndarray  # [A]
    log_std_mean: np.ndarray  # [A]
    log_std_square: np.ndarray  # [A]
    log_std_updates: Any = 0.0

    @classmethod
    def initial(cls, std: float, action_size: int) -> "ExplorationScale":
        nothing = np.zeros(action_size)
        return cls(nothing + np.log(std), nothing, nothing)

    def adapted(
        self, directions: np.ndarray, vines: Vines, *, initial_std: float, learning_rate: float
    ) -> "ExplorationScale":
        """After a step along d/dlog sigma E[A] = E[A (z^2 - 1)], z the perturbation over sigma."""
        z = directions / np.exp(self.log_std)  # [N, K, A]
        gradient = np.mean((vines.weights * vines.even_advantages)[..., None] * (z**2 - 1), axis=(0, 1))
        adam = Adam(self.log_std_mean, self.log_std_square, self.log_std_updates)
        adam, change = adam.step(gradient, learning_rate=learning_rate)
        low, high = np.log(initial_std) + np.log(RANGE)
        return ExplorationScale(np.clip(self.log_std + change, low, high), *adam)
