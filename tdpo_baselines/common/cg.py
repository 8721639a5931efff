"""Conjugate gradient for a symmetric positive definite operator given by its products."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .checks import NotFinite


class Solution(NamedTuple):
    x: np.ndarray
    residual: np.ndarray  # b - (A + damping) x
    num_iterations: int


def itself(vector: np.ndarray) -> np.ndarray:
    return vector


def solve(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    *,
    max_iterations: int,
    tolerance: float,
    damping: float = 0.0,
    metric: Callable[[np.ndarray], np.ndarray] = itself,
) -> Solution:
    """Solve (A + damping) x = b from x = 0 until |b - (A + damping) x| <= tolerance |b|, or the iterations are used up.

    Arrays may be coefficients of the vectors that they stand for: `metric` is u -> M u, M the matrix of the scalar
    product u^T M v, in which A is symmetric, and product(M u) is A u.
    """
    x, residual, direction = np.zeros_like(b), b.copy(), b.copy()
    direction_image = metric(direction)  # M times direction
    residual_squared = residual @ direction_image
    stop_at = tolerance**2 * residual_squared
    iteration = 0
    while iteration < max_iterations and residual_squared > stop_at:
        image = product(direction_image) + damping * direction
        curvature = direction_image @ image
        if not math.isfinite(curvature):
            raise NotFinite(f"curvature is {curvature}")
        if curvature <= 0:  # round-off: what was solved so far stands
            break
        step = residual_squared / curvature
        x += step * direction
        residual -= step * image
        residual_image = metric(residual)
        previous, residual_squared = residual_squared, residual @ residual_image
        ratio = residual_squared / previous
        direction = residual + ratio * direction
        direction_image = residual_image + ratio * direction_image
        iteration += 1
    return Solution(x, residual, iteration)
