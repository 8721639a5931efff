"""Linear algebra of few rows, in the space of the rows instead of that of the parameters.

Let J [R, P] be the Jacobian of all rows' actions, a row for every action coordinate. The gradient is J^T c and
the Hessian J^T W J, so every vector that conjugate gradient meets is J^T u, and its R coefficients u stand for it:

    Hessian:          u -> W G u, with the Gram matrix G = J J^T
    scalar product:   (u, v) -> u^T G v

One call of TensorFlow gives J in factors, from which G and the step J^T u are made. R numbers are worked with
instead of P, and no message is sent.
"""

import numpy as np

from . import mlp
from .comm import Comm
from .tensorflow_setup import load_tensorflow, load_tensorflow_in_turn

MAX_FEW_ROWS = 256  # G costs R^2 times the units of the network, products of vectors R times its parameters


class Jacobian:
    """J by its layers: inputs [R, n], and derivatives of the actions with respect to the outputs [R, A, m]."""

    def __init__(self, factors: list[np.ndarray]):
        self._layers = list(zip(factors[::2], factors[1::2]))

    def gram_matrix(self) -> np.ndarray:
        """J J^T: of every layer the products of inputs times those of derivatives."""
        R, A, _ = self._layers[0][1].shape
        total = np.zeros((R, A, R, A))
        for inputs, slopes in self._layers:
            rows = slopes.reshape(R * A, -1)
            total += (inputs @ inputs.T + 1.0)[:, None, :, None] * (rows @ rows.T).reshape(R, A, R, A)
        return total.reshape(R * A, R * A)

    def to_parameters(self, u: np.ndarray) -> np.ndarray:
        """J^T u [P]."""
        parts = []
        for inputs, slopes in self._layers:
            biases = np.einsum("ra,ram->rm", u.reshape(slopes.shape[:2]), slopes)  # of each row
            parts += [(inputs.T @ biases).ravel(), biases.sum(axis=0)]
        return np.concatenate(parts)


class FewRows:
    """Makes the Jacobian of the actions of `num_rows` observations; on rank 0 alone."""

    def __init__(self, num_rows: int, layer_sizes: tuple[int, ...], comm: Comm):
        load_tensorflow_in_turn(comm, is_needed=comm.rank == 0)
        if comm.rank == 0:
            self._compile(num_rows, layer_sizes)

    def _compile(self, num_rows: int, layer_sizes: tuple[int, ...]) -> None:
        tf = load_tensorflow()
        from . import policy

        theta = tf.TensorSpec([mlp.num_parameters(layer_sizes)], tf.float64)
        observations = tf.TensorSpec([num_rows, layer_sizes[0]], tf.float64)
        factors = tf.function(
            lambda p, rows: policy.jacobian_factors(p, rows, layer_sizes),
            input_signature=[theta, observations],
            jit_compile=True,
            autograph=False,
        )
        concrete = factors.get_concrete_function()  # called directly: half of a call's cost is finding it
        self._factors = lambda *arrays: [factor.numpy() for factor in concrete(*map(tf.constant, arrays))]

    def jacobian(self, theta: np.ndarray, observations: np.ndarray) -> Jacobian:
        return Jacobian(self._factors(theta, observations))
