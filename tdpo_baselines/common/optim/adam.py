"""Adam (Kingma and Ba 2015, arXiv 1412.6980), with an explicit state."""

from typing import Any, NamedTuple

import numpy as np

BETA1, BETA2 = 0.9, 0.999


class Adam(NamedTuple):
    """Moments of the gradient: arrays, or tensors inside a graph."""

    mean: Any  # [P]
    square: Any  # [P]
    count: Any  # gradients so far

    @classmethod
    def of_size(cls, size: int) -> "Adam":
        """Return the moments before the first gradient."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(()))

    def step(self, gradient, *, learning_rate, epsilon: float = 1e-8) -> tuple["Adam", Any]:
        """Return the moments after a gradient, and the change of the parameters in its direction."""
        count = self.count + 1
        mean = BETA1 * self.mean + (1 - BETA1) * gradient
        square = BETA2 * self.square + (1 - BETA2) * gradient**2
        change = learning_rate * mean / (1 - BETA1**count) / ((square / (1 - BETA2**count)) ** 0.5 + epsilon)
        return Adam(mean, square, count), change
