"""Adam (Kingma and Ba 2015, arXiv 1412.6980), with an explicit state; for networks compiled, in single precision."""

from typing import Any, NamedTuple

import numpy as np

from ..networks.code_cache import cached_jit

BETA1, BETA2 = 0.9, 0.999
KEEP1, TAKE1, KEEP2, TAKE2 = map(np.float32, (BETA1, 1 - BETA1, BETA2, 1 - BETA2))


class Adam(NamedTuple):
    """Moments of the gradient."""

    mean: np.ndarray  # [P]
    square: np.ndarray  # [P]
    count: Any  # gradients so far

    @classmethod
    def of_size(cls, size: int) -> "Adam":
        """Return the moments before the first gradient."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(()))

    def step(self, gradient, *, learning_rate, epsilon: float = 1e-8) -> tuple["Adam", np.ndarray]:
        """Return the moments after a gradient, and the change of the parameters in its direction."""
        count = self.count + 1
        mean = BETA1 * self.mean + (1 - BETA1) * gradient
        square = BETA2 * self.square + (1 - BETA2) * gradient**2
        change = learning_rate * mean / (1 - BETA1**count) / ((square / (1 - BETA2**count)) ** 0.5 + epsilon)
        return Adam(mean, square, count), change


@cached_jit(error_model="numpy")
def descend(theta, mean, square, gradient, count, learning_rate, epsilon):
    """Take step number `count` down the gradient, in place."""
    rate, scale = np.float32(learning_rate / (1 - BETA1**count)), np.float32(1 / (1 - BETA2**count))
    epsilon = np.float32(epsilon)
    for i in range(theta.size):
        m = KEEP1 * mean[i] + TAKE1 * gradient[i]
        s = KEEP2 * square[i] + TAKE2 * (gradient[i] * gradient[i])
        mean[i], square[i] = m, s
        theta[i] -= rate * m / (np.sqrt(s * scale) + epsilon)


@cached_jit(error_model="numpy")
def descend_and_average(theta, mean, square, average, gradient, count, learning_rate, epsilon, average_rate):
    """Do the same, and average <- average + average_rate (theta - average), in one pass over the memory."""
    rate, scale = np.float32(learning_rate / (1 - BETA1**count)), np.float32(1 / (1 - BETA2**count))
    epsilon, average_rate = np.float32(epsilon), np.float32(average_rate)
    for i in range(theta.size):
        m = KEEP1 * mean[i] + TAKE1 * gradient[i]
        s = KEEP2 * square[i] + TAKE2 * (gradient[i] * gradient[i])
        mean[i], square[i] = m, s
        theta[i] -= rate * m / (np.sqrt(s * scale) + epsilon)
        average[i] += average_rate * (theta[i] - average[i])
