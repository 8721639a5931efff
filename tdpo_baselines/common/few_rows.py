"""Linear algebra of few rows, in the space of the rows instead of that of the parameters.

Let J [R, P] be the Jacobian of all rows' actions, a row for every action coordinate. The gradient is J^T c and
the Hessian J^T W J, so every vector that conjugate gradient meets is J^T u, and its R coefficients u stand for it:

    Hessian:          u -> W G u, with the Gram matrix G = J J^T
    scalar product:   (u, v) -> u^T G v

J is kept in factors, from which G and the step J^T u are made. R numbers are worked with instead of P, TensorFlow is
not called (a call would cost as much as all the rest), and no message is sent.
"""

import numpy as np

from . import mlp

MAX_FEW_ROWS = 256  # G costs R^2 times the units of the network, products of vectors R times its parameters


class Jacobian:
    """Of the actions of a network with tanh layers with respect to theta, for observations [R, O].

    A layer's part of it is the outer product of the layer's inputs [R, n], and 1 for its biases, with the actions'
    derivatives with respect to its outputs, its slopes [R, A, m].
    """

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...]):
        parts = mlp.layers(theta, sizes)
        inputs = [observations]
        for weights, biases in parts[:-1]:
            inputs.append(np.tanh(inputs[-1] @ weights + biases))
        R, A = len(observations), sizes[-1]
        slopes = [np.tile(np.eye(A), (R, 1, 1))]
        for (weights, _), x in zip(parts[:0:-1], inputs[:0:-1]):
            before = (slopes[-1].reshape(R * A, -1) @ weights.T).reshape(R, A, -1)
            slopes.append(before * (1.0 - x * x)[:, None, :])
        self._layers = list(zip(inputs, reversed(slopes)))

    def gram_matrix(self) -> np.ndarray:
        """J J^T: of every layer the products of inputs times those of slopes."""
        R, A, _ = self._layers[0][1].shape
        total = np.zeros((R, A, R, A))
        for inputs, slopes in self._layers:
            rows = slopes.reshape(R * A, -1)
            part = (rows @ rows.T).reshape(R, A, R, A)
            part *= (inputs @ inputs.T + 1.0)[:, None, :, None]
            total += part
        return total.reshape(R * A, R * A)

    def to_parameters(self, u: np.ndarray) -> np.ndarray:
        """J^T u [P]."""
        parts = []
        for inputs, slopes in self._layers:
            biases = np.einsum("ra,ram->rm", u.reshape(slopes.shape[:2]), slopes)  # of each row
            parts += [(inputs.T @ biases).ravel(), biases.sum(axis=0)]
        return np.concatenate(parts)
