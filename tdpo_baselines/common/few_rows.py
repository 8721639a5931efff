"""Linear algebra of few rows, in the space of the rows instead of that of the parameters.

Let J [R, P] be the Jacobian of all rows' actions, a row for every action coordinate. The gradient is J^T c and
the Hessian J^T W J, so every vector that conjugate gradient meets is J^T u, and its R coefficients u stand for it:

    Hessian:          u -> W G u, with the Gram matrix G = J J^T
    scalar product:   (u, v) -> u^T G v

J is kept in factors, from which G and the step J^T u are made. R numbers are worked with instead of P, TensorFlow is
not called (a call would cost as much as all the rest), and no message is sent.
"""

from itertools import accumulate

import numpy as np

from . import mlp
from .compiled import compile_template
from .mlp import TILE, store

MAX_FEW_ROWS = 256  # G costs R^2 times the units of the network, products of vectors R times its parameters


class Jacobian:
    """Of the actions of a network with tanh layers with respect to theta, for observations [., O].

    A layer's part of it is, row by row, the outer product of the layer's inputs [n, R], and 1 for its biases, with the
    action's derivatives with respect to its outputs, its slopes [m, R].
    """

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...]):
        layers, A = mlp.layers(theta, sizes), sizes[-1]
        self._num_rows = len(observations) * A
        padded = -(-self._num_rows // TILE) * TILE
        self._ends = list(accumulate(width for n, m in zip(sizes, sizes[1:]) for width in (m, n)))
        self._factors = np.zeros((self._ends[-1], padded))
        parts = [self._factors[begin:end] for begin, end in zip([0, *self._ends], self._ends)]
        self._slopes, self._inputs = slopes, inputs = parts[::2], parts[1::2]
        inputs[0][:, : self._num_rows] = np.repeat(observations, A, axis=0).T
        for (weights, biases), x, y in zip(layers, inputs, inputs[1:]):
            np.matmul(weights.T, x, out=y)
            y += biases[:, None]
            np.tanh(y, out=y)
        for a in range(A):
            slopes[-1][a, a::A] = 1.0
        for k in reversed(range(1, len(layers))):
            np.matmul(layers[k][0], slopes[k], out=slopes[k - 1])
            slopes[k - 1] *= 1.0 - inputs[k] ** 2

    def gram_matrix(self) -> np.ndarray:
        """J J^T: of every layer the products of slopes times those of inputs. [R, R]"""
        padded = self._factors.shape[1]
        total = np.empty((padded, padded))
        fill_tiles(self._factors.ravel(), np.array(self._ends), total)
        return total[: self._num_rows, : self._num_rows]

    def to_parameters(self, u: np.ndarray) -> np.ndarray:
        """J^T u [P]."""
        parts, num = [], self._num_rows
        for slopes, inputs in zip(self._slopes, self._inputs):
            slopes, inputs = slopes[:, :num], inputs[:, :num]
            parts += [(inputs @ (slopes * u).T).ravel(), slopes @ u]
        return np.concatenate(parts)


# Templates: names in capitals and functions that are called are bound when they are compiled.
# ruff: noqa: F821


def _fill_tiles(factors, ends, total):
    """Fill `total` [R, R], which is symmetric, from the layers' slopes and inputs: [., R] each, all in a row, of which
    `ends` tells where they end. R must be a multiple of TILE."""
    num_rows = total.shape[0]
    flat = total.reshape(-1)
    for i in range(0, num_rows, TILE):
        for j in range(0, i + 1, TILE):
            tile = layer_tile(factors, num_rows, i, j, 0, ends[0], ends[1])
            for k in range(2, len(ends), 2):
                tile = tile + layer_tile(factors, num_rows, i, j, ends[k - 1], ends[k], ends[k + 1])
            store(flat, i * num_rows + j, num_rows, TILE, tile)
            for row in range(i, i + TILE):
                for column in range(j, j + TILE):
                    total[column, row] = total[row, column]


def _layer_tile(factors, num_rows, i, j, first, middle, last):
    """Of rows i, i + 1, ... and columns j, j + 1, ...: products of slopes, times products of inputs and 1."""
    slopes = tile_of_products(factors, num_rows, i, j, first, middle, 0.0)
    return slopes * tile_of_products(factors, num_rows, i, j, middle, last, 1.0)


fill_tiles = compile_template(
    _fill_tiles, layer_tile=compile_template(_layer_tile, tile_of_products=mlp.tile_of_products), TILE=mlp.TILE
)
