"""The policy network as compiled code: what acts in rollouts, without TensorFlow.

Parameters are one flat vector theta: for each layer its weights [in, out] row by row, then its
biases [out]. Hidden layers are tanh, the output is linear. All arithmetic is plain IEEE in a fixed
order (no fast-math, an own tanh), so an action is the same to the bit wherever it is computed.
"""

import numpy as np
from numba import njit

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # ln 2 in two parts: the product with a small integer is exact
LN2_LOW = 1.9082149292705877e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits


def num_parameters(sizes: tuple[int, ...]) -> int:
    """Length of theta for layer sizes (observation, hidden..., action)."""
    return sum((n + 1) * m for n, m in zip(sizes, sizes[1:]))


def initial_parameters(sizes: tuple[int, ...], rng: np.random.Generator, output_gain: float) -> np.ndarray:
    """Xavier-uniform weights, the output layer's scaled by `output_gain`; biases zero."""
    parts = []
    for layer, (n, m) in enumerate(zip(sizes, sizes[1:])):
        bound = np.sqrt(6.0 / (n + m)) * (output_gain if layer == len(sizes) - 2 else 1.0)
        parts += [rng.uniform(-bound, bound, n * m), np.zeros(m)]
    return np.concatenate(parts)  # [P]


@njit(cache=True, error_model="numpy")
def tanh_in_place(x, scratch):
    """tanh to about one unit in the last place, in a form that the compiler vectorises.

    With y = -2|x| = k ln 2 + r: expm1(y) = 2^k expm1(r) + (2^k - 1), tanh|x| = -expm1(y) / (2 + expm1(y)).
    """
    bits = scratch.view(np.int64)
    for j in range(x.shape[0]):
        y = -2.0 * min(abs(x[j]), 20.0)
        scratch[j] = y * LOG2_E + ROUND
    for j in range(x.shape[0]):
        y = -2.0 * min(abs(x[j]), 20.0)
        k = scratch[j] - ROUND
        r = (y - k * LN2_HIGH) - k * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r * r + r
        bits[j] = (bits[j] + 1023) << 52
        power = scratch[j]  # 2^k
        e = power * p + (power - 1.0)
        x[j] = np.copysign(e / (2.0 + e), x[j])


@njit(cache=True, error_model="numpy")
def affine(weights, biases, x, out):
    """out = x W + b, eight inputs at a time; the order of additions does not depend on anything else."""
    n, m = weights.shape
    for j in range(m):
        out[j] = biases[j]
    i = 0
    while i + 8 <= n:
        w = weights[i : i + 8]
        x0, x1, x2, x3, x4, x5, x6, x7 = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        for j in range(m):
            low = (x0 * w[0, j] + x1 * w[1, j]) + (x2 * w[2, j] + x3 * w[3, j])
            high = (x4 * w[4, j] + x5 * w[5, j]) + (x6 * w[6, j] + x7 * w[7, j])
            out[j] += low + high
        i += 8
    while i < n:
        for j in range(m):
            out[j] += x[i] * weights[i, j]
        i += 1


@njit(cache=True, error_model="numpy")
def act(theta, sizes, observation, action, scratch):
    """action = policy(observation). `scratch` is [3, widest layer]."""
    x = observation
    start = 0
    last = len(sizes) - 2
    for layer in range(last + 1):
        n, m = sizes[layer], sizes[layer + 1]
        weights = theta[start : start + n * m].reshape(n, m)
        biases = theta[start + n * m : start + n * m + m]
        start += (n + 1) * m
        if layer == last:
            affine(weights, biases, x, action)
        else:
            hidden = scratch[layer % 2, :m]
            affine(weights, biases, x, hidden)
            tanh_in_place(hidden, scratch[2, :m])
            x = hidden
