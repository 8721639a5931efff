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
from .code_cache import cached_jit


class Jacobian:
    """The Jacobian of the actions at observations [n, L, O] with respect to theta [P].

    Its products are Algorithm 3 of arXiv 2205.15379.
    """

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...], dtype=np.float64):
        self._sizes, self._dtype = sizes, dtype
        tanh = simd.tanh if dtype is np.float64 else np.tanh
        *hidden, output = self._matrices(theta)
        inputs = [append_ones(np.ascontiguousarray(observations.swapaxes(1, 2), dtype))]  # per layer [n, in + 1, L]
        for matrix in hidden:
            inputs.append(append_ones(tanh(matrix.T @ inputs[-1])))
        self._output = self._with_linear_part(inputs[-1], inputs[0][:, :-1], output)
        self._hidden: list[tuple[np.ndarray, np.ndarray]] = []  # per hidden layer: inputs and slopes [n, A, out, L]
        slopes, above = np.eye(sizes[-1], dtype=dtype)[:, :, None], output
        for k in reversed(range(len(hidden))):
            slopes = (above[: sizes[k + 1]] @ slopes) * (1 - inputs[k + 1][:, None, :-1] ** 2)
            self._hidden.insert(0, (inputs[k], slopes))
            above = hidden[k]

    @staticmethod
    def _with_linear_part(inputs: np.ndarray, observations: np.ndarray, output: np.ndarray) -> np.ndarray:
        """Return the inputs [..., in + 1, L] of all output weights, whose slopes are the identity."""
        return inputs if len(output) == inputs.shape[-2] else np.concatenate([inputs, observations], axis=-2)

    def jvp(self, vector: np.ndarray) -> np.ndarray:
        """Return J v, the change [n, L, A] of the outputs if theta changes by `vector` [P]."""
        *hidden, output = self._matrices(vector)
        change = output.T @ self._output  # [n, A, L]
        for matrix, (inputs, slopes) in zip(hidden, self._hidden):
            change += sum_over_units(slopes, matrix.T @ inputs)
        return change.swapaxes(1, 2)

    def vjp(self, cotangents: np.ndarray) -> np.ndarray:
        """Return J^T c for each group, [n, P], with `cotangents` c [n, L, A]."""
        c = np.ascontiguousarray(cotangents.swapaxes(1, 2), self._dtype)
        parts = [inputs @ sum_over_outputs(slopes, c).swapaxes(1, 2) for inputs, slopes in self._hidden]
        return self._flat([*parts, self._output @ c.swapaxes(1, 2)])

    def squared_norms(self) -> np.ndarray:
        """Return the squared norm of every row, [n, L, A]."""
        total = np.square(self._output).sum(axis=1)[:, None] + np.zeros((1, self._sizes[-1], 1))  # [n, A, L]
        for inputs, slopes in self._hidden:
            total = total + np.square(inputs).sum(axis=1)[:, None] * np.square(slopes).sum(axis=2)
        return total.swapaxes(1, 2)

    def gram(self) -> np.ndarray:
        """Return J J^T, [R, R], of a single group; a row is an observation's action coordinate."""
        L, A = self._output.shape[2], self._sizes[-1]
        total = np.zeros((A, L, A, L))
        for a in range(A):
            total[a, :, a] = self._output[0].T @ self._output[0]
        for inputs, slopes in self._hidden:
            flat = slopes[0].transpose(1, 0, 2).reshape(-1, A * L)
            total += (flat.T @ flat).reshape(A, L, A, L) * (inputs[0].T @ inputs[0])[:, None, :]
        return total.transpose(1, 0, 3, 2).reshape(L * A, L * A)

    def _matrices(self, theta: np.ndarray) -> list[np.ndarray]:
        """Return each layer's weights and then its biases, [in + 1, out]; the linear part belongs to the last layer."""
        theta = theta.astype(self._dtype, copy=False)
        *hidden, output = mlp.layer_slices(self._sizes)
        parts = [*(theta[part] for part in hidden), theta[output.start :]]
        return [part.reshape(-1, m) for part, m in zip(parts, self._sizes[1:])]

    @staticmethod
    def _flat(matrices: list[np.ndarray]) -> np.ndarray:
        """Return the layers' matrices [n, in + 1, out] as parameters [n, P]."""
        flat = [matrix.reshape(len(matrix), matrix.shape[1] * matrix.shape[2]) for matrix in matrices]
        return np.concatenate(flat, axis=1, dtype=np.float64)


class SensitivityJacobian(Jacobian):
    """The Jacobian of the actions and of their sensitivities da/ds with respect to theta [P].

    Its products are Algorithms 3 and 4 of arXiv 2205.15379.
    Outputs are [n, L (1 + O), A]: for each observation its action, then the derivatives by each of its coordinates o.
    A tangent x' of every layer's inputs x is carried along: x' = e_o at first, then (1 - x^2) z' with z' = W^T x'. The
    derivative of da/ds_o with respect to a layer is the sum of two outer products: of x with the slopes of da/ds_o,
    and of x' with the slopes of the action. So all outputs share the products of the layer with x and with the latter.
    """

    def __init__(self, theta: np.ndarray, observations: np.ndarray, sizes: tuple[int, ...], dtype=np.float64):
        super().__init__(theta, observations, sizes, dtype)
        n, L, O = observations.shape
        *hidden, output = self._matrices(theta)
        outputs = [inputs[:, :-1] for inputs, _ in self._hidden[1:]] + [self._output[:, : sizes[-2]]]  # tanh of z
        tangents = [np.broadcast_to(np.eye(O, dtype=dtype)[..., None], (n, O, O, L)).copy()]
        self._all_slopes: list[np.ndarray] = []  # per hidden layer [n, 1 + O, A, out, L]
        steepness, bends = [], []  # 1 - x^2 and the change of its logarithm, -2 x z'
        for matrix, x in zip(hidden, outputs):
            change = matrix[:-1].T @ tangents[-1]  # z' [n, O, out, L]
            steepness.append(1 - x**2)
            bends.append(-2 * x[:, None] * change)
            tangents.append(steepness[-1][:, None] * change)
        self._tangents = tangents[:-1]  # per hidden layer x', [n, O, in, L]
        for k in reversed(range(len(hidden))):
            first = self._hidden[k][1][:, None]
            second = bends[k][:, :, None] * first  # slopes of da/ds_o
            if self._all_slopes:
                second += steepness[k][:, None, None] * (hidden[k + 1][:-1] @ self._all_slopes[0][:, 1:])
            self._all_slopes.insert(0, np.concatenate([first, second], axis=1))
        self._all_outputs = np.zeros((n, 1 + O, *self._output.shape[1:]), dtype)  # [n, 1 + O, in + 1, L]
        self._all_outputs[:, 0] = self._output
        self._all_outputs[:, 1:, : sizes[-2]] = tangents[-1]
        if len(output) > 1 + sizes[-2]:  # linear part
            self._all_outputs[:, 1:, 1 + sizes[-2] :] = tangents[0]

    def jvp(self, vector: np.ndarray) -> np.ndarray:
        """Return J v, the change [n, L (1 + O), A] of the outputs if theta changes by `vector` [P]."""
        *hidden, output = self._matrices(vector)
        change = output.T @ self._all_outputs  # [n, 1 + O, A, L]
        n, num, A, L = change.shape
        for k, matrix in enumerate(hidden):
            inputs, first = self._hidden[k]
            change += sum_over_units(self._flat_slopes(k), matrix.T @ inputs).reshape(change.shape)
            for a in range(A):
                change[:, 1:, a] += sum_over_units(self._tangents[k], matrix[:-1] @ first[:, a])
        return change.transpose(0, 3, 1, 2).reshape(n, L * num, A)

    def vjp(self, cotangents: np.ndarray) -> np.ndarray:
        """Return J^T c for each group, [n, P], with `cotangents` c [n, L (1 + O), A]."""
        n, num, _, L = self._all_outputs.shape
        A = self._sizes[-1]
        c = np.ascontiguousarray(cotangents.reshape(n, L, num, A).transpose(0, 2, 3, 1), self._dtype)
        parts = []
        for k, (inputs, first) in enumerate(self._hidden):
            part = inputs @ sum_over_outputs(self._flat_slopes(k), c.reshape(n, num * A, L)).swapaxes(1, 2)
            for a in range(A):
                weighted = sum_over_outputs(self._tangents[k], np.ascontiguousarray(c[:, 1:, a]))
                part[:, :-1] += weighted @ first[:, a].swapaxes(1, 2)
            parts.append(part)
        return self._flat([*parts, (self._all_outputs @ c.swapaxes(2, 3)).sum(axis=1)])

    def _flat_slopes(self, k: int) -> np.ndarray:
        """Return the slopes of all outputs with respect to hidden layer k, [n, (1 + O) A, out, L]."""
        n, num, A, *rest = self._all_slopes[k].shape
        return self._all_slopes[k].reshape(n, num * A, *rest)


@cached_jit(error_model="numpy")
def sum_over_units(slopes, change):
    """Return the change [n, k, L] of k outputs, sum_m slopes[n, k, m, L] change[n, m, L]."""
    n, num, M, L = slopes.shape
    total = np.zeros((n, num, L), slopes.dtype)
    for i in range(n):
        for k in range(num):
            for m in range(M):
                for j in range(L):
                    total[i, k, j] += slopes[i, k, m, j] * change[i, m, j]
    return total


@cached_jit(error_model="numpy")
def sum_over_outputs(slopes, cotangents):
    """Return the cotangents [n, m, L] of m units, sum_k slopes[n, k, m, L] cotangents[n, k, L]."""
    n, num, M, L = slopes.shape
    total = np.zeros((n, M, L), slopes.dtype)
    for i in range(n):
        for k in range(num):
            for m in range(M):
                for j in range(L):
                    total[i, m, j] += slopes[i, k, m, j] * cotangents[i, k, j]
    return total


def compile_jacobian(dtype=np.float64) -> None:
    """Compile what Jacobians of this precision need."""
    jacobian = Jacobian(np.zeros(4), np.zeros((1, 1, 1)), (1, 1, 1), dtype)
    jacobian.vjp(jacobian.jvp(np.zeros(4)))


def append_ones(columns: np.ndarray) -> np.ndarray:
    """Append the biases' input to [n, width, L]."""
    n, width, L = columns.shape
    rows = np.ones((n, width + 1, L), columns.dtype)
    rows[:, :-1] = columns
    return rows
