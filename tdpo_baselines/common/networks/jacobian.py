"""Jacobians of a tanh network with respect to its parameters, as factors that many products share.

The Jacobian J has a row for every output of every observation and a column for every parameter. It is never formed:
a layer's part of a row is the outer product of the layer's inputs (with a one for the biases) and its slopes, the
derivatives of the output with respect to the layer's outputs before the tanh. Inputs and slopes are computed once;
a product with J or its transpose is then two matrix products per layer.

Observations come in groups, and every group is computed by itself: sums over the groups are the same to the bit
however the groups are distributed over ranks.

Shapes: n groups of L observations, O observation, A action, P parameters, R = L A rows of a single group.
"""

import numpy as np

from . import mlp, simd


class Jacobian:
    """The Jacobian of the actions at observations [n, L, O] with respect to theta [P]."""

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...], dtype=np.float64):
        self._sizes, self._dtype = sizes, dtype
        tanh = simd.tanh if dtype is np.float64 else np.tanh
        *hidden, output = self._matrices(theta)
        inputs = [append_row(np.ascontiguousarray(observations.swapaxes(1, 2), dtype), 1)]  # per layer [n, in + 1, L]
        for matrix in hidden:
            inputs.append(append_row(tanh(matrix.T @ inputs[-1]), 1))
        self._output = self._with_linear_part(inputs[-1], inputs[0][:, :-1], output)
        self._hidden: list[list[tuple[np.ndarray, np.ndarray]]] = []  # per hidden layer: terms (inputs, slopes)
        slopes, above = np.eye(sizes[-1], dtype=dtype)[:, :, None], output
        for k in reversed(range(len(hidden))):
            slopes = (above[: sizes[k + 1]] @ slopes) * (1 - inputs[k + 1][:, None, :-1] ** 2)  # [n, A, out, L]
            self._hidden.insert(0, [(inputs[k], slopes)])
            above = hidden[k]

    @staticmethod
    def _with_linear_part(inputs: np.ndarray, observations: np.ndarray, output: np.ndarray) -> np.ndarray:
        """Return the inputs [n, in + 1, L] of all output weights, whose slopes are the identity."""
        return inputs if len(output) == inputs.shape[1] else np.concatenate([inputs, observations], axis=1)

    def jvp(self, vector: np.ndarray) -> np.ndarray:
        """Return J v, the change [n, L, A] of the outputs if theta changes by `vector` [P]."""
        *hidden, output = self._matrices(vector)
        change = output.T @ self._output  # [n, A, L]
        for matrix, terms in zip(hidden, self._hidden):
            for inputs, slopes in terms:
                change += np.einsum("naml,nml->nal", slopes, matrix.T @ inputs)
        return change.swapaxes(1, 2)

    def vjp(self, cotangents: np.ndarray) -> np.ndarray:
        """Return J^T c for each group, [n, P], with `cotangents` c [n, L, A]."""
        c = np.ascontiguousarray(cotangents.swapaxes(1, 2), self._dtype)
        parts = []
        for terms in self._hidden:
            outer = [inputs @ np.einsum("naml,nal->nml", slopes, c).swapaxes(1, 2) for inputs, slopes in terms]
            parts.append(outer[0] if len(outer) == 1 else outer[0] + outer[1])
        parts.append(self._output @ c.swapaxes(1, 2))
        flat = [part.reshape(len(c), part.shape[1] * part.shape[2]) for part in parts]  # no group leaves -1 undefined
        return np.concatenate(flat, axis=1, dtype=np.float64)

    def squared_norms(self) -> np.ndarray:
        """Return the squared norm of every row, [n, L, A]."""
        total = np.square(self._output).sum(axis=1)[:, None] + np.zeros((1, self._sizes[-1], 1))  # [n, A, L]
        for ((inputs, slopes),) in self._hidden:
            total = total + np.square(inputs).sum(axis=1)[:, None] * np.square(slopes).sum(axis=2)
        return total.swapaxes(1, 2)

    def gram(self) -> np.ndarray:
        """Return J J^T, [R, R], of a single group; a row is an observation's action coordinate."""
        L, A = self._output.shape[2], self._sizes[-1]
        total = np.zeros((A, L, A, L))
        for a in range(A):
            total[a, :, a] = self._output[0].T @ self._output[0]
        for ((inputs, slopes),) in self._hidden:
            flat = slopes[0].transpose(1, 0, 2).reshape(-1, A * L)
            total += (flat.T @ flat).reshape(A, L, A, L) * (inputs[0].T @ inputs[0])[:, None, :]
        return total.transpose(1, 0, 3, 2).reshape(L * A, L * A)

    def _matrices(self, theta: np.ndarray) -> list[np.ndarray]:
        """Return each layer's weights and then its biases, [in + 1, out]; the linear part belongs to the last layer."""
        theta = theta.astype(self._dtype, copy=False)
        *hidden, output = mlp.layer_slices(self._sizes)
        parts = [*(theta[part] for part in hidden), theta[output.start :]]
        return [part.reshape(-1, m) for part, m in zip(parts, self._sizes[1:])]


class SensitivityJacobian(Jacobian):
    """The Jacobian of the sensitivities da/ds, [O, A] for each observation, with respect to theta [P].

    Outputs are [n, L O, A]. A tangent x' of every layer's inputs is carried along with the inputs x, for each
    observation coordinate: x' = e_o at first, then (1 - x^2) z' with z' = W^T x'. The derivative of da/ds_o with
    respect to a layer is the sum of two outer products: of x' with the slopes of the action, and of x with the slopes
    of da/ds_o with respect to the layer's outputs z before the tanh.
    """

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...], dtype=np.float64):
        n, L, O = observations.shape
        repeated = np.repeat(observations, O, axis=1)  # [n, L O, O]: a row for each coordinate
        super().__init__(theta, repeated, sizes, dtype)
        *hidden, output = self._matrices(theta)
        tangents = np.broadcast_to(np.tile(np.eye(O, dtype=dtype), L), (n, O, L * O))
        inputs = [append_row(tangents, 0)]  # x' of every layer; the biases' input is constant
        changes = []  # z' of every hidden layer
        outputs = [terms[0][0][:, :-1] for terms in self._hidden[1:]] + [self._output[:, : sizes[-2]]]  # tanh of z
        for matrix, x in zip(hidden, outputs):
            changes.append(matrix.T @ inputs[-1])
            inputs.append(append_row((1 - x**2) * changes[-1], 0))
        second = np.zeros((1, sizes[-1], sizes[-1], 1), dtype)  # slopes of da/ds_o with respect to z of the layer above
        first = np.eye(sizes[-1], dtype=dtype)[:, :, None]  # slopes of the action there
        above = [*hidden[1:], output]
        for k in reversed(range(len(hidden))):
            x, change = outputs[k][:, None], changes[k][:, None]
            weights = above[k][: sizes[k + 1]]
            second = (1 - x**2) * (weights @ second - 2 * x * change * (weights @ first))
            ((layer_inputs, first),) = self._hidden[k]
            self._hidden[k] = [(inputs[k], first), (layer_inputs, second)]
        self._output = self._with_linear_part(inputs[-1], inputs[0][:, :-1], output)


def compile_jacobian() -> None:
    """Compile what a `Jacobian` in double precision needs."""
    Jacobian(np.zeros(4), np.zeros((1, 1, 1)), (1, 1, 1))


def append_row(columns: np.ndarray, value: float) -> np.ndarray:
    """Append a constant row to [n, width, L]: one for biases, zero for their tangents."""
    n, width, L = columns.shape
    rows = np.full((n, width + 1, L), value, columns.dtype)
    rows[:, :-1] = columns
    return rows
