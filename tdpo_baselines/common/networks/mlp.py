"""The policy network as compiled code, which acts in rollouts without TensorFlow.

Layout of the parameters: theta [P] is flat; it holds for each layer its weights [in, out] row by row, then its biases
[out]; then the weights [O, A] of the linear part, if the network has one. Layout of the activations: a flat array that
holds for each layer (observations, hidden layers, actions) its values [LANES, width], padded to a multiple of 2 CHUNKs.
`Workspace` has views of its ends.

The network acts on up to LANES observations at once, because loading the weights costs as much as the arithmetic. A
lane's action does not depend on the other lanes. All arithmetic is IEEE double precision in a fixed order, so an
action is the same to the bit wherever it is computed.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from .code_cache import cached_jit
from .simd import expm1, fma, load, load_repeated, reduce_argument, store, tanh_from_expm1, tanh_scalar
from .templates import compile_template

LANES = 4
FEW_LANES = 2  # a large layer takes about half the time for this many observations or fewer
CHUNK = 16  # units per vector of the tanh


class Style(NamedTuple):
    """Activation, linear part and output scaling of a network."""

    hidden: str = "tanh"  # or "relu"
    is_squashed: bool = False  # outputs pass through a tanh
    centre: tuple[float, ...] = ()  # outputs are centre + scale * output; unscaled if empty
    scale: tuple[float, ...] = ()
    has_linear_part: bool = False  # outputs are those of the layers plus a linear function of the observation


PLAIN = Style()


def num_parameters(sizes: tuple[int, ...], style: Style = PLAIN) -> int:
    """Return the length of theta for layer sizes (observation, hidden..., action)."""
    linear = sizes[0] * sizes[-1] if style.has_linear_part else 0
    return sum((n + 1) * m for n, m in zip(sizes, sizes[1:])) + linear


@cache
def layer_slices(sizes: tuple[int, ...]) -> list[slice]:
    """Return where each layer's parameters are in theta."""
    return [slice(*map(num_parameters, (sizes[:k], sizes[: k + 1]))) for k in range(1, len(sizes))]


def split_layers(theta, sizes: tuple[int, ...], reshape=np.reshape) -> list[tuple]:
    """Return the weights [in, out] and biases [out] of each layer; `reshape` belongs to theta's library."""
    layers = [theta[part] for part in layer_slices(sizes)]
    return [(reshape(layer[: n * m], (n, m)), layer[n * m :]) for layer, n, m in zip(layers, sizes, sizes[1:])]


def linear_part(theta, sizes: tuple[int, ...]):
    """Return the weights of the linear part, flat; empty if there is none."""
    return theta[num_parameters(sizes) :]


def init_parameters(
    sizes: tuple[int, ...], rng: np.random.Generator, output_gain: float, style: Style = PLAIN
) -> np.ndarray:
    """Return Xavier-uniform weights, the output layer's scaled by `output_gain`, and zeros for all else. [P]"""
    parts = []
    for layer, (n, m) in enumerate(zip(sizes, sizes[1:])):
        bound = np.sqrt(6.0 / (n + m)) * (output_gain if layer == len(sizes) - 2 else 1.0)
        parts += [rng.uniform(-bound, bound, n * m), np.zeros(m)]
    return np.concatenate([*parts, np.zeros(num_parameters(sizes, style) - num_parameters(sizes))])


class Workspace(NamedTuple):
    """The activations of a network, and views of its observations and actions."""

    activations: np.ndarray
    observations: np.ndarray  # [LANES, O]
    actions: np.ndarray  # [LANES, A]


def make_workspace(sizes: tuple[int, ...]) -> Workspace:
    """Return memory for a network of these layer sizes."""
    activations, first, num = np.zeros(num_activations(sizes)), num_activations(sizes[:-1]), LANES * sizes[-1]
    observations = activations[: LANES * sizes[0]].reshape(LANES, -1)
    return Workspace(activations, observations, activations[first : first + num].reshape(LANES, -1))


def num_activations(sizes: tuple[int, ...]) -> int:
    """Return the length of the activations of these layers, which is where those of the next layer begin."""
    return sum(-(-LANES * width // (2 * CHUNK)) * 2 * CHUNK for width in sizes)


def compile_act(sizes: tuple[int, ...], style: Style = PLAIN):
    """Return the compiled act(theta, activations, num): fill in the actions for the first `num` observations."""
    num_layers = len(sizes) - 1
    weights_at = [num_parameters(sizes[: k + 1]) for k in range(num_layers)]
    units_at = [num_activations(sizes[:k]) for k in range(num_layers + 1)]
    act = _compile_output(style, FIRST=units_at[-1], M=sizes[-1])
    if style.has_linear_part:
        where = {"WEIGHTS": num_parameters(sizes), "OUT": units_at[-1], "N": sizes[0], "M": sizes[-1]}
        act = compile_template(_add_linear_part, scale=act or _keep, **where)
    for k in reversed(range(num_layers)):
        n, m = sizes[k], sizes[k + 1]
        layer = _compile_affine(WEIGHTS=weights_at[k], IN=units_at[k], OUT=units_at[k + 1], N=n, M=m)
        if k == num_layers - 1:
            act = layer if act is None else compile_template(_run_output_layer, layer=layer, run_rest=act)
        else:
            template = {"tanh": _apply_tanh, "relu": _apply_relu}[style.hidden]
            hidden = compile_template(template, FIRST=units_at[k + 1], M=m)
            act = compile_template(_run_hidden_layer, layer=layer, activation=hidden, run_rest=act)
    return act


def _compile_affine(**where):
    """Return a layer without its activation; a large one has versions for few lanes and for many."""
    many = _compile_affine_for(LANES, **where)
    if where["N"] * where["M"] < 1024:
        return many
    return compile_template(_apply_affine, few=_compile_affine_for(FEW_LANES, **where), many=many)


def _compile_affine_for(num_lanes: int, **where):
    """Return a layer for a number of lanes; with at least eight outputs, vectors hold several of them."""
    where["NUM"], m = num_lanes, where["M"]
    if m < 8:
        return compile_template(_apply_narrow, **where)
    where["WIDTH"] = min(32 // num_lanes, m - m % 8)  # so that the sums of all lanes fit into the registers
    return compile_template(_apply_wide, add_columns=compile_template(_add_columns, **where), **where)


def _compile_output(style: Style, **where):
    """Return the output scaling, or None if there is none."""
    if not style.is_squashed and not style.scale:
        return None
    num = where["M"]
    centre, scale = style.centre or (0.0,) * num, style.scale or (1.0,) * num
    return compile_template(_scale_output, IS_SQUASHED=style.is_squashed, CENTRE=centre, SCALE=scale, **where)


class Forward:
    """The network for many observations at once: forward(theta, observations [..., O]) returns outputs [..., A]."""

    def __init__(self, sizes: tuple[int, ...], style: Style = PLAIN):
        self._sizes, self._workspace = sizes, tuple(make_workspace(sizes))
        self._compiled = compile_template(_run_forward, act=compile_act(sizes, style))
        self(np.zeros(num_parameters(sizes)), np.zeros((1, sizes[0])))  # compiles now

    def __call__(self, theta: np.ndarray, observations: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(observations).reshape(-1, self._sizes[0])
        outputs = np.empty((len(rows), self._sizes[-1]))
        self._compiled(theta, rows, self._workspace, outputs)
        return outputs.reshape(*observations.shape[:-1], self._sizes[-1])


@cached_jit(error_model="numpy")
def copy_aligned(theta):
    """Return a copy that begins on a cache line."""
    memory = np.empty(theta.size + 8)
    first = -(memory.ctypes.data // 8) % 8
    memory[first : first + theta.size] = theta
    return memory[first : first + theta.size]


# Templates: `compile_act` binds the names in capitals and the functions that they call. A layer has N inputs and M
# outputs; its weights begin at theta[WEIGHTS], its inputs and outputs at activations[IN] and activations[OUT].
# ruff: noqa: F821


def _run_forward(theta, rows, workspace, outputs):
    """Act on LANES rows at a time, fewer at the end."""
    theta, (activations, observations, actions) = theta.copy(), workspace
    for first in range(0, rows.shape[0], LANES):
        num = min(LANES, rows.shape[0] - first)
        for lane in range(num):
            for i in range(rows.shape[1]):
                observations[lane, i] = rows[first + lane, i]
        act(theta, activations, num)
        for lane in range(num):
            for i in range(outputs.shape[1]):
                outputs[first + lane, i] = actions[lane, i]


def _run_hidden_layer(theta, activations, num):
    layer(theta, activations, num)
    activation(activations, num)
    run_rest(theta, activations, num)


def _run_output_layer(theta, activations, num):
    layer(theta, activations, num)
    run_rest(theta, activations, num)


def _add_linear_part(theta, activations, num):
    for lane in range(num):
        for j in range(M):
            total = activations[OUT + lane * M + j]
            for i in range(N):
                total += theta[WEIGHTS + i * M + j] * activations[lane * N + i]
            activations[OUT + lane * M + j] = total
    scale(theta, activations, num)


@cached_jit()
def _keep(theta, activations, num):
    """Leave the outputs unscaled."""


def _scale_output(theta, activations, num):
    for lane in range(num):
        for j in range(M):
            x = activations[FIRST + lane * M + j]
            activations[FIRST + lane * M + j] = CENTRE[j] + SCALE[j] * (tanh_scalar(x) if IS_SQUASHED else x)


def _apply_relu(activations, num):
    for j in range(FIRST, FIRST + num * M):
        activations[j] = max(activations[j], 0.0)


def _apply_tanh(activations, num):
    """Apply tanh to three chunks at a time, each at another stage, so that the processor need not wait for results."""
    last = FIRST + max(num * M - 1, CHUNK) // CHUNK * CHUNK
    rounded, r = reduce_argument(load(activations, FIRST, 0, 1, CHUNK))
    e = expm1(rounded, r)
    rounded, r = reduce_argument(load(activations, FIRST + CHUNK, 0, 1, CHUNK))
    for j in range(FIRST, last - CHUNK, CHUNK):
        store(activations, j, 0, 1, tanh_from_expm1(e, load(activations, j, 0, 1, CHUNK)))
        next_rounded, next_r = reduce_argument(load(activations, j + 2 * CHUNK, 0, 1, CHUNK))
        e = expm1(rounded, r)
        rounded, r = next_rounded, next_r
    store(activations, last - CHUNK, 0, 1, tanh_from_expm1(e, load(activations, last - CHUNK, 0, 1, CHUNK)))
    store(activations, last, 0, 1, tanh_from_expm1(expm1(rounded, r), load(activations, last, 0, 1, CHUNK)))


def _apply_affine(theta, activations, num):
    if num <= FEW_LANES:
        few(theta, activations, num)
    else:
        many(theta, activations, num)


def _apply_wide(theta, activations, num):
    """Compute x W + b, WIDTH outputs and eight inputs at a time; the last outputs may overlap those before."""
    for begin in range(0, N, 8):
        for j in range(0, M - M % WIDTH, WIDTH):
            add_columns(theta, activations, j, begin, min(begin + 8, N))
    if M % WIDTH > 0:
        add_columns(theta, activations, M - WIDTH, 0, N)


def _add_columns(theta, activations, j, begin, end):
    """Add the contributions of inputs begin, ..., end - 1 to WIDTH outputs from the j-th on; sums are in registers."""
    bias = WEIGHTS + N * M + j
    sums = load(theta, bias, 0, NUM, WIDTH) if begin == 0 else load(activations, OUT + j, M, NUM, WIDTH)
    for i in range(begin, end):
        x, w = load_repeated(activations, IN + i, N, NUM, WIDTH), load(theta, WEIGHTS + i * M + j, 0, NUM, WIDTH)
        sums = fma(x, w, sums)
    store(activations, OUT + j, M, NUM, sums)


def _apply_narrow(theta, activations, num):
    """Compute x W + b for few outputs, four inputs at a time."""
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
