"""Linear algebra of few rows, in the space of the rows instead of that of the parameters.

Let J [R, P] be the Jacobian of all rows' actions, a row for every action coordinate. The gradient is J^T c and
the Hessian J^T W J, so every vector that conjugate gradient meets is J^T u, and its R coefficients u stand for it:

    Hessian:          u -> W G u, with the Gram matrix G = J J^T
    scalar product:   (u, v) -> u^T G v

One call of TensorFlow makes G and another the step J^T u; in between, R numbers are worked with instead of P, and
no message is sent.
"""

import numpy as np

from . import mlp
from .comm import Comm
from .tensorflow_setup import load_tensorflow, load_tensorflow_in_turn

MAX_FEW_ROWS = 256  # G costs R^2 times the units of the network, products of vectors R times its parameters


class FewRows:
    """The Jacobian of the actions of `num_rows` observations, by what is needed of it; on rank 0 alone."""

    def __init__(self, num_rows: int, layer_sizes: tuple[int, ...], comm: Comm):
        load_tensorflow_in_turn(comm, is_needed=comm.rank == 0)
        if comm.rank == 0:
            self._compile(num_rows, layer_sizes)

    def _compile(self, num_rows: int, layer_sizes: tuple[int, ...]) -> None:
        tf = load_tensorflow()
        from . import policy

        theta = tf.TensorSpec([mlp.num_parameters(layer_sizes)], tf.float64)
        observations = tf.TensorSpec([num_rows, layer_sizes[0]], tf.float64)
        cotangents = tf.TensorSpec([num_rows, layer_sizes[-1]], tf.float64)

        def compiled(function, *signature):
            made = tf.function(function, input_signature=signature, jit_compile=True, autograph=False)
            concrete = made.get_concrete_function()
            return lambda *arrays: concrete(*map(tf.constant, arrays)).numpy()

        def gradient(theta, observations, cotangents):
            return policy.weighted_gradient(lambda p: policy.actions(p, observations, layer_sizes), theta, cotangents)

        self._gram = compiled(lambda p, rows: policy.gram_matrix(p, rows, layer_sizes), theta, observations)
        self._gradient = compiled(gradient, theta, observations, cotangents)
        self._num_outputs = layer_sizes[-1]

    def gram_matrix(self, theta: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """J J^T."""
        return self._gram(theta, observations)

    def to_parameters(self, theta: np.ndarray, observations: np.ndarray, u: np.ndarray) -> np.ndarray:
        """J^T u [P]."""
        return self._gradient(theta, observations, u.reshape(-1, self._num_outputs))
