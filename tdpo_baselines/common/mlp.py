"""The policy network as compiled code: what acts in rollouts, without TensorFlow.

Parameters are one flat vector theta: for each layer its weights [in, out] row by row, then its
biases [out]. Hidden layers are tanh and the output is linear unless a `Style` says otherwise. The
network acts for LANES observations at once, because streaming the weights through the processor costs
as much as the arithmetic; a lane's action does not depend on the other's. All arithmetic is IEEE double
in a fixed order (explicit fused multiply-add, an own tanh), so an action is the same to the bit wherever
it is computed.

    activations = [observations | hidden layer 1 | ... | actions], each part [LANES, width] in a row,
                  starting at a multiple of 64 bytes
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from .compiled import compile_template

LANES = 2

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # ln 2 in two parts: the product with a small integer is exact
LN2_LOW = 1.9082149292705877e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits


class Style(NamedTuple):
    """What follows the layers."""

    hidden: str = "tanh"  # or "relu"
    is_squashed: bool = False  # outputs are a tanh
    centre: tuple[float, ...] = ()  # outputs are centre + scale times that, or as they are if these are empty
    scale: tuple[float, ...] = ()


PLAIN = Style()


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


def compile_act(sizes: tuple[int, ...], style: Style = PLAIN):
    """act(theta, activations) for these layer sizes: reads the observations, fills all the rest."""
    num_layers = len(sizes) - 1
    weights_at = [num_parameters(sizes[: k + 1]) for k in range(num_layers)]
    units_at = [num_activations(sizes[:k]) for k in range(num_layers + 1)]
    act = _compile_output(style, FIRST=units_at[-1], M=sizes[-1])
    for k in reversed(range(num_layers)):
        n, m = sizes[k], sizes[k + 1]
        layer = compile_template(_affine, WEIGHTS=weights_at[k], IN=units_at[k], OUT=units_at[k + 1], N=n, M=m)
        if k == num_layers - 1:
            act = layer if act is None else compile_template(_both, layer=layer, rest=act)
        else:
            template = {"tanh": _tanh, "relu": _relu}[style.hidden]
            hidden = compile_template(template, FIRST=units_at[k + 1], LAST=units_at[k + 1] + LANES * m)
            act = compile_template(_in_sequence, layer=layer, activation=hidden, rest=act)
    return act


def _compile_output(style: Style, **where):
    """What is done to the outputs, or None for plain ones."""
    if not style.is_squashed and not style.scale:
        return None
    num = where["M"]
    centre, scale = style.centre or (0.0,) * num, style.scale or (1.0,) * num
    return compile_template(_output, IS_SQUASHED=style.is_squashed, CENTRE=centre, SCALE=scale, **where)


def num_activations(sizes: tuple[int, ...]) -> int:
    """Length of the activations of these layers, and so where the next layer's begin."""
    return sum(-(-LANES * width // 8) * 8 for width in sizes)


def act_once(act, sizes: tuple[int, ...], theta: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """One action for one observation, with a compiled `act`."""
    activations = np.zeros(num_activations(sizes))
    activations[: sizes[0]] = observation
    act(theta, activations)
    start = num_activations(sizes[:-1])
    return activations[start : start + sizes[-1]].copy()


class Forward:
    """The network for many observations at once: forward(theta, observations [..., O]) -> outputs [..., A]."""

    def __init__(self, sizes: tuple[int, ...], style: Style = PLAIN):
        self._sizes = sizes
        self._compiled = compile_template(
            _forward,
            act=compile_act(sizes, style),
            ACTIVATIONS=num_activations(sizes),
            OUTPUTS=num_activations(sizes[:-1]),
        )
        self(np.zeros(num_parameters(sizes)), np.zeros((1, sizes[0])))  # compiles now

    def __call__(self, theta: np.ndarray, observations: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(observations).reshape(-1, self._sizes[0])
        outputs = np.empty((len(rows), self._sizes[-1]))
        self._compiled(theta, rows, outputs)
        return outputs.reshape(*observations.shape[:-1], self._sizes[-1])


@intrinsic
def fma(typing_context, a, b, c):
    """a * b + c, rounded once."""

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def power_of_two(typing_context, rounded):
    """2^k, where `rounded` is k + ROUND: the low bits of the one become the exponent of the other."""

    def generate(context, builder, signature, arguments):
        integer = context.get_value_type(types.int64)
        bits = builder.add(builder.bitcast(arguments[0], integer), integer(1023))
        return builder.bitcast(builder.shl(bits, integer(52)), context.get_value_type(types.float64))

    return types.float64(types.float64), generate


@njit(cache=True, error_model="numpy")
def tanh_of(x):
    """tanh to about one unit in the last place, in a form that the compiler vectorises.

    With y = -2|x| = k ln 2 + r: expm1(y) = 2^k expm1(r) + (2^k - 1), tanh|x| = -expm1(y) / (2 + expm1(y)).
    """
    y = -2.0 * min(abs(x), 20.0)
    rounded = fma(y, LOG2_E, ROUND)
    k = rounded - ROUND
    r = fma(k, -LN2_LOW, fma(k, -LN2_HIGH, y))
    r2 = r * r
    r4 = r2 * r2
    p0 = fma(fma(r, 1.0 / 120.0, 1.0 / 24.0), r2, fma(r, 1.0 / 6.0, 0.5))  # Taylor's 1/2!, ..., 1/13! in pairs:
    p4 = fma(fma(r, 1.0 / 362880.0, 1.0 / 40320.0), r2, fma(r, 1.0 / 5040.0, 1.0 / 720.0))  # short chains
    p8 = fma(fma(r, 1.0 / 6227020800.0, 1.0 / 479001600.0), r2, fma(r, 1.0 / 39916800.0, 1.0 / 3628800.0))
    p = fma(fma(p8, r4 * r4, fma(p4, r4, p0)), r2, r)
    power = power_of_two(rounded)
    e = fma(power, p, power - 1.0)
    return np.copysign(e / (2.0 + e), x)


# Templates: names in capitals, `layer`, `activation` and `rest` are bound when they are compiled.
# ruff: noqa: F821


def _forward(theta, rows, outputs):
    """Two rows at a time; the last may be alone."""
    theta, activations = theta.copy(), np.zeros(ACTIVATIONS)
    num_rows, num_inputs, num_outputs = rows.shape[0], rows.shape[1], outputs.shape[1]
    for first in range(0, num_rows, 2):
        for lane in range(min(2, num_rows - first)):
            for i in range(num_inputs):
                activations[lane * num_inputs + i] = rows[first + lane, i]
        act(theta, activations)
        for lane in range(min(2, num_rows - first)):
            for i in range(num_outputs):
                outputs[first + lane, i] = activations[OUTPUTS + lane * num_outputs + i]


def _in_sequence(theta, activations):
    layer(theta, activations)
    activation(activations)
    rest(theta, activations)


def _both(theta, activations):
    layer(theta, activations)
    rest(activations)


def _output(activations):
    for lane in range(LANES):
        for j in range(M):
            x = activations[FIRST + lane * M + j]
            activations[FIRST + lane * M + j] = CENTRE[j] + SCALE[j] * (tanh_of(x) if IS_SQUASHED else x)


def _relu(activations):
    for j in range(FIRST, LAST):
        activations[j] = max(activations[j], 0.0)


def _tanh(activations):
    for j in range(FIRST, LAST):
        activations[j] = tanh_of(activations[j])


def _affine(theta, activations):
    """out = x W + b for both lanes, four inputs at a time; a narrow output keeps its sums short."""
    for j in range(M):
        bias = theta[WEIGHTS + N * M + j]
        activations[OUT + j] = bias
        activations[OUT + M + j] = bias
    for i in range(0, N - N % 4, 4):
        x0, y0 = activations[IN + i], activations[IN + N + i]
        x1, y1 = activations[IN + i + 1], activations[IN + N + i + 1]
        x2, y2 = activations[IN + i + 2], activations[IN + N + i + 2]
        x3, y3 = activations[IN + i + 3], activations[IN + N + i + 3]
        for j in range(M):
            w = WEIGHTS + i * M + j
            w0, w1, w2, w3 = theta[w], theta[w + M], theta[w + 2 * M], theta[w + 3 * M]
            if M < 8:
                activations[OUT + j] += fma(x1, w1, x0 * w0) + fma(x3, w3, x2 * w2)
                activations[OUT + M + j] += fma(y1, w1, y0 * w0) + fma(y3, w3, y2 * w2)
            else:
                x_sum, y_sum = activations[OUT + j], activations[OUT + M + j]
                activations[OUT + j] = fma(x3, w3, fma(x2, w2, fma(x1, w1, fma(x0, w0, x_sum))))
                activations[OUT + M + j] = fma(y3, w3, fma(y2, w2, fma(y1, w1, fma(y0, w0, y_sum))))
    for i in range(N - N % 4, N):
        x, y = activations[IN + i], activations[IN + N + i]
        for j in range(M):
            w = theta[WEIGHTS + i * M + j]
            activations[OUT + j] = fma(x, w, activations[OUT + j])
            activations[OUT + M + j] = fma(y, w, activations[OUT + M + j])
