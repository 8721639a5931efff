"""Conjugate gradient for a symmetric positive definite operator given by its products."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..parallel.checks import NotFinite


class Solution(NamedTuple):
    """An approximate solution of (A + damping) x = b."""

    x: np.ndarray
    num_iterations: int
    b_squared: float
    b_x: float  # b^T x
    curvature: float  # x^T A x
    residual_squared: float  # of b - (A + damping) x


def solve(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    *,
    max_iterations: int,
    tolerance: float,
    damping: float = 0.0,
    metric: Callable[[np.ndarray], np.ndarray] = lambda vector: vector,
) -> Solution:
    """Solve (A + damping) x = b from x = 0 until the residual is at most tolerance |b| or iterations are used up.

    `metric` is the matrix G of the scalar product u^T G v, for vectors given by coefficients; `product` is applied to
    G u. By default G is the identity.
    """
    x, residual, direction = np.zeros_like(b), b.copy(), b.copy()
    b_image = residual_image = direction_image = metric(b)  # an image is G times a vector
    b_squared = residual_squared = b @ b_image
    stop_at = tolerance**2 * residual_squared
    iteration = 0
    while iteration < max_iterations and residual_squared > stop_at:
        image = product(direction_image) + damping * direction
        curvature = direction_image @ image
        if not math.isfinite(curvature):
            raise NotFinite(f"curvature is {curvature}")
        if curvature <= 0:  # round-off: keep what was solved so far
            break
        step = residual_squared / curvature
        x += step * direction
        residual = residual - step * image
        residual_image = metric(residual)
        previous, residual_squared = residual_squared, residual @ residual_image
        direction = residual + residual_squared / previous * direction
        direction_image = residual_image + residual_squared / previous * direction_image
        iteration += 1
    curvature = x @ (b_image - residual_image - damping * metric(x))
    return Solution(x, iteration, b_squared, b_image @ x, max(curvature, 0.0), max(residual_squared, 0.0))
