"""A network to first order: products with its Jacobian and with the transposed one, for many rows at once.

Conjugate gradient asks for many products at the same parameters. What they share is computed once: the inputs of
every layer, and the slopes, the derivatives of the network's outputs with respect to the outputs of a layer before
its tanh. A product is then two matrix products per layer, where differentiating anew would take five.

Single precision. Sums over rows are made trajectory by trajectory, so they are the same on any number of ranks.

Shapes: n trajectories of L rows each, O observation, A action, P parameters.
"""

import numpy as np


class Tangent:
    """J [n L A, P], the Jacobian of a network with tanh layers at theta, for observations [n, L, O]."""

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...]):
        self._sizes = sizes
        *hidden, output = self._matrices(theta)
        columns = np.ascontiguousarray(observations.swapaxes(1, 2), np.float32)
        self._inputs = [with_ones(columns)]  # per layer [n, width + 1, L]
        for matrix in hidden:
            self._inputs.append(with_ones(np.tanh(matrix.T @ self._inputs[-1])))
        self._slopes: list[np.ndarray] = []  # per hidden layer [n, A, width, L]
        slopes = np.eye(sizes[-1], dtype=np.float32)[:, :, None]
        for matrix, outputs in zip([output, *reversed(hidden)], reversed(self._inputs[1:])):
            slopes = (matrix[:-1] @ slopes) * (1 - outputs[:, None, :-1] ** 2)
            self._slopes.insert(0, slopes)

    def image(self, vector: np.ndarray) -> np.ndarray:
        """J v: what the outputs change by if theta changes by v. [n, L, A]"""
        *hidden, output = self._matrices(vector)
        total = output.T @ self._inputs[-1]  # [n, A, L]
        for matrix, inputs, slopes in zip(hidden, self._inputs, self._slopes):
            total += np.einsum("naml,nml->nal", slopes, matrix.T @ inputs)
        return total.swapaxes(1, 2)

    def pulled_back(self, cotangents: np.ndarray) -> np.ndarray:
        """J^T c of each trajectory, for c [n, L, A]. [n, P]"""
        c = np.ascontiguousarray(cotangents.swapaxes(1, 2), np.float32)
        by_layer = [np.einsum("naml,nal->nml", slopes, c) for slopes in self._slopes] + [c]
        parts = [inputs @ slopes.swapaxes(1, 2) for inputs, slopes in zip(self._inputs, by_layer)]
        return np.concatenate([part.reshape(len(c), -1) for part in parts], axis=1, dtype=np.float64)

    def _matrices(self, theta: np.ndarray) -> list[np.ndarray]:
        """Of every layer its weights and below them its biases, [in + 1, out]."""
        ends = np.cumsum([(n + 1) * m for n, m in zip(self._sizes, self._sizes[1:])])
        return [part.reshape(-1, m) for part, m in zip(np.split(theta.astype(np.float32), ends), self._sizes[1:])]


def with_ones(columns: np.ndarray) -> np.ndarray:
    """[n, width, L] with a row of ones, which biases are multiplied by."""
    return np.concatenate([columns, np.ones_like(columns[:, :1])], axis=1)
