"""Conjugate gradient for few rows, in the space of the rows instead of that of the parameters.

Let J [R, P] be the Jacobian of all rows' actions, a row for every action coordinate. The gradient is J^T c and
the Hessian J^T W J, so every vector that conjugate gradient meets is J^T u, and its R coefficients u stand for it:

    Hessian:          u -> W G u, with the Gram matrix G = J J^T
    scalar product:   (u, v) -> u^T G v

J is kept in factors, from which G and the solution J^T u are made. A layer's part of J is, row by row, the outer
product of the layer's inputs [n + 1, R], the last of which is 1 for its biases, with the action's derivatives with
respect to its outputs, its slopes [m, R]. R numbers are worked with instead of P, all is one compiled call (calling
TensorFlow would cost as much as all the rest), and no message is sent.

All products of matrices are of one kind, A^T B, by tiles of TILE x TILE whose sums stay in the processor's registers.
Matrices are parts of flat arrays. A tile at an edge reads on into what follows, and what comes of that is not stored;
so arrays have spare elements at their end.
"""

import math

import numpy as np

from ..common.networks.simd import TILE, fma, load, product_tile, store, store_tile, tanh_of, transpose, transposed
from ..common.networks.templates import compile_template
from ..common.optim.cg import Solution
from ..common.parallel.checks import NotFinite

MAX_FEW_ROWS = 256  # G costs R^2 times the units of the network, products of vectors R times its parameters


def solve(
    theta: np.ndarray,
    observations: np.ndarray,
    sizes: tuple[int, ...],
    weights: np.ndarray,
    c: np.ndarray,
    *,
    max_iterations: int,
    tolerance: float,
    damping: float,
) -> Solution:
    """What cg.solve gives for A = J^T W J and b = J^T c of a network with tanh layers, but for rounding.

    observations [., O], weights and c [R]: a row for every observation and action coordinate.
    """
    x = np.empty(len(theta))
    *scalars, num_iterations = solve_compiled(
        theta, observations, np.array(sizes), weights, c, max_iterations, tolerance, damping, x
    )
    b_squared, _, curvature, _ = scalars
    if math.isfinite(b_squared) and not math.isfinite(curvature):
        raise NotFinite(f"curvature is {curvature}")
    return Solution(x, num_iterations, *scalars)


def prepare() -> None:
    """Compile now."""
    nothing = np.zeros(1)
    solve(np.zeros(2), nothing[None], (1, 1), nothing, nothing, max_iterations=0, tolerance=0.0, damping=0.0)


# Templates: names in capitals and functions that are called are bound when they are compiled.
# ruff: noqa: F821


def _solve(theta, observations, sizes, weights, c, max_iterations, tolerance, damping, x):
    """Fill x [P]; the other fields of a Solution, the number of iterations last."""
    num_rows = (len(c) + TILE - 1) // TILE * TILE
    at = np.zeros(2 * len(sizes) - 1, np.int64)  # where slopes, inputs, slopes, ... of the layers begin
    for k in range(len(sizes) - 1):
        at[2 * k + 1] = at[2 * k] + num_rows * sizes[k + 1]
        at[2 * k + 2] = at[2 * k + 1] + num_rows * (sizes[k] + 1)
    factors, gram = np.empty(at[-1] + TILE * num_rows), np.empty((num_rows, num_rows))
    factorise(theta, observations, sizes, factors, at, num_rows)
    fill_gram_matrix(sizes, factors, at, gram)
    u, scalars = iterate(gram, weights, c, max_iterations, tolerance, damping)
    pull_back(sizes, factors, at, num_rows, u, x)
    return scalars


def _factorise(theta, observations, sizes, factors, at, num_rows):
    """Fill the layers' inputs, forward, then their slopes, backward. num_rows is a multiple of TILE."""
    parameters = np.zeros(len(theta) + TILE * (max(sizes) + 1))
    parameters[: len(theta)] = theta
    fill_both_ends(observations, sizes, factors, at, num_rows)
    begin = 0
    for k in range(len(sizes) - 2):
        fill_outputs(parameters, begin, sizes[k] + 1, sizes[k + 1], factors, at[2 * k + 1], at[2 * k + 3], num_rows)
        begin += (sizes[k] + 1) * sizes[k + 1]
    for k in range(len(sizes) - 2, 0, -1):
        y, slopes, slopes_before = at[2 * k + 1], at[2 * k], at[2 * k - 2]
        fill_slopes(parameters, begin, sizes[k], sizes[k + 1], factors, y, slopes, slopes_before, num_rows)
        begin -= (sizes[k - 1] + 1) * sizes[k]


def _fill_both_ends(observations, sizes, factors, at, num_rows):
    """The first layer's inputs, the ones among all inputs, and the last layer's slopes."""
    num_actions, last_row = sizes[-1], len(observations) * sizes[-1] - 1
    for r in range(num_rows):
        row = min(r, last_row) // num_actions  # the last one fills up
        for i in range(sizes[0]):
            factors[at[1] + i * num_rows + r] = observations[row, i]
        for k in range(len(sizes) - 1):
            factors[at[2 * k + 1] + sizes[k] * num_rows + r] = 1.0
        for a in range(num_actions):
            factors[at[-3] + a * num_rows + r] = 1.0 if r % num_actions == a else 0.0


def _fill_outputs(parameters, begin, n, m, factors, x, y, num_rows):
    """The inputs [m, R] at y of the next layer, from a layer's inputs [n, R] at x and parameters [n, m] at `begin`."""
    for i in range(0, m, TILE):
        for r in range(0, num_rows, TILE):
            outputs = tanh_of(product_tile(parameters, begin + i, m, factors, x + r, num_rows, n))
            store_tile(factors, y + i * num_rows + r, num_rows, m - i, TILE, outputs)


def _fill_slopes(parameters, begin, n, m, factors, y, slopes, slopes_before, num_rows):
    """The slopes [n, R] of the layer before, whose outputs are at y, from a layer's slopes [m, R]."""
    weights = np.empty(n * m + TILE)
    transpose(parameters, begin, m, n, m, weights)
    for i in range(0, n, TILE):
        for r in range(0, num_rows, TILE):
            outputs = load(factors, y + i * num_rows + r, num_rows, TILE, TILE)
            total = product_tile(weights, i, n, factors, slopes + r, num_rows, m) * fma(-outputs, outputs, 1.0)
            store_tile(factors, slopes_before + i * num_rows + r, num_rows, n - i, TILE, total)


def _fill_gram_matrix(sizes, factors, at, total):
    """Fill `total` [R, R], which is symmetric; R is a multiple of TILE."""
    num_rows = total.shape[0]
    flat = total.reshape(-1)
    for i in range(0, num_rows, TILE):
        for j in range(0, i + 1, TILE):
            tile = layer_tile(factors, at[0], sizes[1], at[1], sizes[0] + 1, num_rows, i, j)
            for k in range(1, len(sizes) - 1):
                tile = tile + layer_tile(factors, at[2 * k], sizes[k + 1], at[2 * k + 1], sizes[k] + 1, num_rows, i, j)
            store(flat, i * num_rows + j, num_rows, TILE, tile)
            store(flat, j * num_rows + i, num_rows, TILE, transposed(tile))


def _layer_tile(factors, slopes_at, m, inputs_at, n, num_rows, i, j):
    """Of rows i, i + 1, ... and columns j, j + 1, ...: products of slopes times products of inputs."""
    slopes = product_tile(factors, slopes_at + i, num_rows, factors, slopes_at + j, num_rows, m)
    return slopes * product_tile(factors, inputs_at + i, num_rows, factors, inputs_at + j, num_rows, n)


def _iterate(gram, weights, c, max_iterations, tolerance, damping):
    """Those of cg.solve; `..._image` is G times a vector. Coefficients u [R] of the solution, and what it is like."""
    num_rows = len(c)
    u, residual, direction = np.zeros(num_rows), c.copy(), c.copy()
    c_image = multiplied(gram, c)
    direction_image = c_image.copy()
    residual_image = direction_image.copy()
    c_squared = residual_squared = dot(c, c_image)
    stop_at = tolerance**2 * residual_squared
    iteration = 0
    while iteration < max_iterations and residual_squared > stop_at:
        image = weights * direction_image + damping * direction
        curvature = dot(direction_image, image)
        if not math.isfinite(curvature):
            return u, (c_squared, 0.0, curvature, residual_squared, iteration)
        if curvature <= 0.0:
            break
        step = residual_squared / curvature
        u += step * direction
        residual -= step * image
        residual_image = multiplied(gram, residual)
        previous, residual_squared = residual_squared, dot(residual, residual_image)
        ratio = residual_squared / previous
        direction = residual + ratio * direction
        direction_image = residual_image + ratio * direction_image
        iteration += 1
    curvature = dot(u, c_image - residual_image - damping * multiplied(gram, u))
    return u, (c_squared, dot(u, c_image), max(curvature, 0.0), max(residual_squared, 0.0), iteration)


def _multiplied(gram, u):
    """G u; G is symmetric and may have more rows."""
    total = np.zeros(len(u))
    for i in range(len(u)):
        for j in range(len(u)):
            total[j] += u[i] * gram[i, j]
    return total


def _dot(u, v):
    total = 0.0
    for i in range(len(u)):
        total += u[i] * v[i]
    return total


def _pull_back(sizes, factors, at, padded, u, result):
    """Fill `result` [P]: of every layer inputs times slopes, weighted by u [R] and summed over the rows."""
    num_rows, begin = len(u), 0
    for k in range(len(sizes) - 1):
        n, m = sizes[k] + 1, sizes[k + 1]
        inputs, slopes = np.empty(num_rows * n + TILE), np.empty(num_rows * m + TILE)
        transpose(factors, at[2 * k + 1], padded, n, num_rows, inputs)
        transpose(factors, at[2 * k], padded, m, num_rows, slopes)
        for r in range(num_rows):
            for j in range(m):
                slopes[r * m + j] *= u[r]
        for i in range(0, n, TILE):
            for j in range(0, m, TILE):
                store_tile(
                    result, begin + i * m + j, m, n - i, m - j, product_tile(inputs, i, n, slopes, j, m, num_rows)
                )
        begin += n * m


solve_compiled = compile_template(
    _solve,
    factorise=compile_template(
        _factorise,
        fill_both_ends=compile_template(_fill_both_ends),
        fill_outputs=compile_template(_fill_outputs),
        fill_slopes=compile_template(_fill_slopes),
    ),
    fill_gram_matrix=compile_template(_fill_gram_matrix, layer_tile=compile_template(_layer_tile)),
    iterate=compile_template(_iterate, multiplied=compile_template(_multiplied), dot=compile_template(_dot)),
    pull_back=compile_template(_pull_back),
)
