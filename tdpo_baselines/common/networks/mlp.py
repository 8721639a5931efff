"""The policy network as compiled code: what acts in rollouts, without TensorFlow.

Parameters are one flat vector theta: for each layer its weights [in, out] row by row, then its
biases [out]. Hidden layers are tanh and the output is linear unless a `Style` says otherwise. The
network acts for up to LANES observations at once, because streaming the weights through the processor costs
as much as the arithmetic; a lane's action does not depend on the others'. All arithmetic is IEEE double
in a fixed order (explicit fused multiply-add, an own tanh), so an action is the same to the bit wherever
it is computed.

    activations = [observations | hidden layer 1 | ... | actions], each part [LANES, width] in a row,
                  filled with zeros to a multiple of 2 CHUNKs
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from .simd import expm1_of, fma, load, load_repeated, quotient, reduced, store, tanh_of
from .templates import compile_template

LANES = 4
FEW_LANES = 2  # as many or fewer observations take about half the time
CHUNK = 16  # units that tanh works on together


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


def layers(theta, sizes: tuple[int, ...], reshape=np.reshape) -> list[tuple]:
    """Weights [in, out] and biases [out] of each layer; `reshape` is that of theta's kind."""
    parts, start = [], 0
    for n, m in zip(sizes, sizes[1:]):
        end = start + n * m
        parts.append((reshape(theta[start:end], (n, m)), theta[end : end + m]))
        start = end + m
    return parts


def initial_parameters(sizes: tuple[int, ...], rng: np.random.Generator, output_gain: float) -> np.ndarray:
    """Xavier-uniform weights, the output layer's scaled by `output_gain`; biases zero."""
    parts = []
    for layer, (n, m) in enumerate(zip(sizes, sizes[1:])):
        bound = np.sqrt(6.0 / (n + m)) * (output_gain if layer == len(sizes) - 2 else 1.0)
        parts += [rng.uniform(-bound, bound, n * m), np.zeros(m)]
    return np.concatenate(parts)  # [P]


def compile_act(sizes: tuple[int, ...], style: Style = PLAIN):
    """act(theta, activations, num) for these layer sizes: reads `num` observations, fills all the rest for them."""
    num_layers = len(sizes) - 1
    weights_at = [num_parameters(sizes[: k + 1]) for k in range(num_layers)]
    units_at = [num_activations(sizes[:k]) for k in range(num_layers + 1)]
    act = _compile_output(style, FIRST=units_at[-1], M=sizes[-1])
    for k in reversed(range(num_layers)):
        n, m = sizes[k], sizes[k + 1]
        layer = _compile_affine(WEIGHTS=weights_at[k], IN=units_at[k], OUT=units_at[k + 1], N=n, M=m)
        if k == num_layers - 1:
            act = layer if act is None else compile_template(_both, layer=layer, rest=act)
        else:
            template = {"tanh": _tanh, "relu": _relu}[style.hidden]
            hidden = compile_template(template, FIRST=units_at[k + 1], M=m)
            act = compile_template(_in_sequence, layer=layer, activation=hidden, rest=act)
    return act


def _compile_affine(**where):
    """A layer without its activation; a large one for few lanes and for many."""
    many = _compile_affine_of(LANES, **where)
    if where["N"] * where["M"] < 1024:
        return many
    return compile_template(_affine, few=_compile_affine_of(FEW_LANES, **where), many=many)


def _compile_affine_of(num_lanes: int, **where):
    """Eight outputs or more are summed one input after the other."""
    where["NUM"], m = num_lanes, where["M"]
    if m < 8:
        return compile_template(_narrow, **where)
    where["WIDTH"] = min(32 // num_lanes, m - m % 8)  # so that the sums of all lanes fit into the registers
    return compile_template(_wide, columns=compile_template(_columns, **where), **where)


def _compile_output(style: Style, **where):
    """What is done to the outputs, or None for plain ones."""
    if not style.is_squashed and not style.scale:
        return None
    num = where["M"]
    centre, scale = style.centre or (0.0,) * num, style.scale or (1.0,) * num
    return compile_template(_output, IS_SQUASHED=style.is_squashed, CENTRE=centre, SCALE=scale, **where)


def num_activations(sizes: tuple[int, ...]) -> int:
    """Length of the activations of these layers, and so where the next layer's begin."""
    return sum(-(-LANES * width // (2 * CHUNK)) * 2 * CHUNK for width in sizes)


def act_once(act, sizes: tuple[int, ...], theta: np.ndarray, observation: np.ndarray) -> np.ndarray:
    """One action for one observation, with a compiled `act`."""
    activations = np.zeros(num_activations(sizes))
    activations[: sizes[0]] = observation
    act(theta, activations, 1)
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


@njit(cache=True, error_model="numpy")
def aligned_copy(theta):
    """A copy that begins where a line of the processor's cache does."""
    memory = np.empty(theta.size + 8)
    first = -(memory.ctypes.data // 8) % 8
    memory[first : first + theta.size] = theta
    return memory[first : first + theta.size]


# Templates: names in capitals and functions that are called are bound when they are compiled.
# ruff: noqa: F821


def _forward(theta, rows, outputs):
    """LANES rows at a time; fewer at the end."""
    theta, activations = theta.copy(), np.zeros(ACTIVATIONS)
    num_rows, num_inputs, num_outputs = rows.shape[0], rows.shape[1], outputs.shape[1]
    for first in range(0, num_rows, LANES):
        num = min(LANES, num_rows - first)
        for lane in range(num):
            for i in range(num_inputs):
                activations[lane * num_inputs + i] = rows[first + lane, i]
        act(theta, activations, num)
        for lane in range(num):
            for i in range(num_outputs):
                outputs[first + lane, i] = activations[OUTPUTS + lane * num_outputs + i]


def _in_sequence(theta, activations, num):
    layer(theta, activations, num)
    activation(activations, num)
    rest(theta, activations, num)


def _both(theta, activations, num):
    layer(theta, activations, num)
    rest(activations, num)


def _output(activations, num):
    for lane in range(num):
        for j in range(M):
            x = activations[FIRST + lane * M + j]
            activations[FIRST + lane * M + j] = CENTRE[j] + SCALE[j] * (tanh_of(x) if IS_SQUASHED else x)


def _relu(activations, num):
    for j in range(FIRST, FIRST + num * M):
        activations[j] = max(activations[j], 0.0)


def _tanh(activations, num):
    """Three chunks at a time, each at another stage, so that the processor need not wait for results."""
    last = FIRST + max(num * M - 1, CHUNK) // CHUNK * CHUNK
    rounded, r = reduced(load(activations, FIRST, 0, 1, CHUNK))
    e = expm1_of(rounded, r)
    rounded, r = reduced(load(activations, FIRST + CHUNK, 0, 1, CHUNK))
    for j in range(FIRST, last - CHUNK, CHUNK):
        store(activations, j, 0, 1, quotient(e, load(activations, j, 0, 1, CHUNK)))
        next_rounded, next_r = reduced(load(activations, j + 2 * CHUNK, 0, 1, CHUNK))
        e = expm1_of(rounded, r)
        rounded, r = next_rounded, next_r
    store(activations, last - CHUNK, 0, 1, quotient(e, load(activations, last - CHUNK, 0, 1, CHUNK)))
    store(activations, last, 0, 1, quotient(expm1_of(rounded, r), load(activations, last, 0, 1, CHUNK)))


def _affine(theta, activations, num):
    if num <= FEW_LANES:
        few(theta, activations, num)
    else:
        many(theta, activations, num)


def _wide(theta, activations, num):
    """out = x W + b, WIDTH outputs and eight inputs at a time; the last outputs may overlap those before."""
    for begin in range(0, N, 8):
        for j in range(0, M - M % WIDTH, WIDTH):
            columns(theta, activations, j, begin, min(begin + 8, N))
    if M % WIDTH > 0:
        columns(theta, activations, M - WIDTH, 0, N)


def _columns(theta, activations, j, begin, end):
    """WIDTH outputs from the j-th on: add what inputs begin, ..., end - 1 contribute. Sums are in registers."""
    bias = WEIGHTS + N * M + j
    sums = load(theta, bias, 0, NUM, WIDTH) if begin == 0 else load(activations, OUT + j, M, NUM, WIDTH)
    for i in range(begin, end):
        x, w = load_repeated(activations, IN + i, N, NUM, WIDTH), load(theta, WEIGHTS + i * M + j, 0, NUM, WIDTH)
        sums = fma(x, w, sums)
    store(activations, OUT + j, M, NUM, sums)


def _narrow(theta, activations, num):
    """out = x W + b for few outputs, four inputs at a time."""
    for j in range(M):
        total = load(theta, WEIGHTS + N * M + j, 0, NUM, 1)
        for i in range(0, N - N % 4, 4):
            w = WEIGHTS + i * M + j
            x0, x1 = load(activations, IN + i, N, NUM, 1), load(activations, IN + i + 1, N, NUM, 1)
            x2, x3 = load(activations, IN + i + 2, N, NUM, 1), load(activations, IN + i + 3, N, NUM, 1)
            first, second = fma(x1, theta[w + M], x0 * theta[w]), fma(x3, theta[w + 3 * M], x2 * theta[w + 2 * M])
            total = total + (first + second)
        for i in range(N - N % 4, N):
            total = fma(load(activations, IN + i, N, NUM, 1), theta[WEIGHTS + i * M + j], total)
        store(activations, OUT + j, M, NUM, total)
