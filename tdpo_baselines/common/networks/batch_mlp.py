"""The network of mlp.py for minibatches, with derivatives: single precision, compiled, without TensorFlow.

Parameters are flat, as in mlp.py. Every sum has a fixed order, so results are the same to the bit on every processor.

Shapes: M rows of a minibatch, O inputs, A outputs, n inputs and m outputs of a layer, P parameters.
"""

import numpy as np
from numba import njit

from . import mlp
from .products import multiply
from .templates import compile_template

ZERO, ONE = np.float32(0), np.float32(1)
NO_PARAMETERS, NO_INPUTS = np.empty(0, np.float32), np.empty((0, 0), np.float32)  # where no derivative is asked for


def float32s(*numbers: float) -> tuple[np.float32, ...]:
    """Return numbers in single precision."""
    return tuple(map(np.float32, numbers))


# tanh(x) = x p(x^2) / q(x^2) up to the limit, 1 to the last digit beyond it; coefficients of Eigen and TensorFlow
(LIMIT,) = float32s(7.90531110763549805)
P = float32s(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
             1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)  # fmt: skip
Q = float32s(1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)


class BatchMlp:
    """A network, as functions of its flat parameters [P] and a minibatch [M, O]."""

    def __init__(self, sizes: tuple[int, ...], style: mlp.Style = mlp.PLAIN):
        """Compile a network of these layer sizes. It has no linear part, and its outputs are not scaled."""
        self.sizes, self._style = np.array(sizes), (style.hidden == "tanh", style.is_squashed)
        self.num_parameters = mlp.num_parameters(sizes)
        self._forward, self._backward = map(compile_template, (run_forward, run_backward))

    def __call__(self, theta: np.ndarray, inputs: np.ndarray) -> "Pass":
        """Run the network forward."""
        inputs = np.ascontiguousarray(inputs, np.float32)
        return Pass(self, theta, inputs, self._forward(theta, self.sizes, inputs, *self._style))

    def backward(self, forward: "Pass", cotangents: np.ndarray, gradient: np.ndarray, slopes: np.ndarray) -> None:
        """Write the products of cotangents [M, A] with the Jacobians into arrays, unless they are empty."""
        cotangents = np.ascontiguousarray(cotangents, np.float32)
        self._backward(
            forward.theta, self.sizes, forward.inputs, forward.units, cotangents, gradient, slopes, *self._style
        )


class Pass:
    """A forward pass of a network, and its derivatives."""

    def __init__(self, network: BatchMlp, theta: np.ndarray, inputs: np.ndarray, units: np.ndarray):
        self._network, self.theta, self.inputs, self.units = network, theta, inputs, units

    @property
    def outputs(self) -> np.ndarray:
        """Outputs of the network. [M, A]"""
        M, A = len(self.inputs), self._network.sizes[-1]
        return self.units[len(self.units) - M * A :].reshape(M, A)

    def parameter_vjp(self, cotangents: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the gradient [P] of sum(cotangents * outputs) with respect to the parameters, in `out` if given."""
        gradient = np.empty_like(self.theta) if out is None else out
        self._network.backward(self, cotangents, gradient, NO_INPUTS)
        return gradient

    def input_vjp(self, cotangents: np.ndarray) -> np.ndarray:
        """Return the gradient [M, O] of sum(cotangents * outputs) with respect to the inputs."""
        slopes = np.empty_like(self.inputs)
        self._network.backward(self, cotangents, NO_PARAMETERS, slopes)
        return slopes


@njit(error_model="numpy")
def run_forward(theta, sizes, inputs, is_tanh=True, is_squashed=False):
    """Return the outputs of all layers, one layer after the other; the network's are the last."""
    M, at, last = inputs.shape[0], 0, len(sizes) - 2
    before, all_units = inputs, np.empty(inputs.shape[0] * np.sum(sizes[1:]), np.float32)
    units = all_units
    for k in range(last + 1):
        n, m = sizes[k], sizes[k + 1]
        after, units = units[: M * m].reshape(M, m), units[M * m :]
        multiply(before, theta[at : at + n * m].reshape(n, m), after)
        activate(
            after, theta[at + n * m : at + (n + 1) * m], k < last and not is_tanh, is_tanh if k < last else is_squashed
        )
        before, at = after, at + (n + 1) * m
    return all_units


@njit(error_model="numpy")
def run_backward(theta, sizes, inputs, units, cotangents, gradient, slopes, is_tanh=True, is_squashed=False):
    """Write the gradient with respect to the parameters and to the inputs, unless their arrays are empty."""
    M, at, last = inputs.shape[0], theta.size, len(sizes) - 2
    below, unit = cotangents.copy(), units.size
    for k in range(last, -1, -1):
        n, m = sizes[k], sizes[k + 1]
        at, unit = at - (n + 1) * m, unit - M * m
        above = below
        apply_slopes(
            above,
            units[unit : unit + M * m].reshape(M, m),
            k < last and not is_tanh,
            is_tanh if k < last else is_squashed,
        )
        before = units[unit - M * n : unit].reshape(M, n) if k > 0 else inputs
        if gradient.size > 0:
            multiply(before.T, above, gradient[at : at + n * m].reshape(n, m))
            sum_rows(above, gradient[at + n * m : at + (n + 1) * m])
        if k > 0 or slopes.size > 0:
            below = slopes if k == 0 else np.empty((M, n), np.float32)
            multiply(above, theta[at : at + n * m].reshape(n, m).T, below)


@njit(error_model="numpy")
def differentiate_parameters(theta, sizes, inputs, units, cotangents, gradient):
    """Write the gradient with respect to the parameters of a network with tanh layers and linear outputs."""
    run_backward(theta, sizes, inputs, units, cotangents, gradient, np.empty((0, 0), np.float32))


@njit(error_model="numpy")
def activate(rows, biases, is_relu, is_tanh):
    """Add the biases and apply the activation, in place; NaN stays NaN."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(row.size):
            row[j] += biases[j]
        if is_relu:
            for j in range(row.size):
                row[j] = ZERO if row[j] < ZERO else row[j]
        elif is_tanh:
            for j in range(row.size):
                row[j] = tanh(row[j])


@njit(error_model="numpy")
def apply_slopes(cotangents, outputs, is_relu, is_tanh):
    """Multiply cotangents by the slope of the activation, in place."""
    cotangents, outputs = cotangents.reshape(-1), outputs.reshape(-1)
    if is_relu:
        for j in range(outputs.size):
            cotangents[j] *= ONE if outputs[j] > ZERO else ZERO
    elif is_tanh:
        for j in range(outputs.size):
            cotangents[j] *= ONE - outputs[j] * outputs[j]


@njit(error_model="numpy")
def sum_rows(rows, total):
    """Write the sum over the rows."""
    total[:] = ZERO
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


@njit(error_model="numpy", forceinline=True)
def tanh(x):
    """Return the tanh of a number in single precision, which the compiler vectorises."""
    x = LIMIT if x > LIMIT else x
    x = -LIMIT if x < -LIMIT else x
    y = x * x
    p = (((((P[0] * y + P[1]) * y + P[2]) * y + P[3]) * y + P[4]) * y + P[5]) * y + P[6]
    return x * p / (((Q[0] * y + Q[1]) * y + Q[2]) * y + Q[3])
