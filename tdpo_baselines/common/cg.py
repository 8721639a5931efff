"""Conjugate gradient for a symmetric positive definite operator given by its products."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .checks import require_finite


class Solution(NamedTuple):
    x: np.ndarray
    residual: np.ndarray  # b - A x
    num_iterations: int


def solve(
    product: Callable[[np.ndarray], np.ndarray],
    b: np.ndarray,
    *,
    max_iterations: int,
    tolerance: float,
    dot: Callable[[np.ndarray, np.ndarray], float] = np.dot,
) -> Solution:
    """Solve A x = b from x = 0 until |b - A x| <= tolerance |b|, or the iterations are used up.

    `dot` is the scalar product of the vectors that the arrays stand for, in which A is symmetric.
    """
    x = np.zeros_like(b)
    residual = b.copy()
    direction = b.copy()
    residual_squared = dot(residual, residual)
    stop_at = tolerance**2 * residual_squared
    iteration = 0
    while iteration < max_iterations and residual_squared > stop_at:
        image = product(direction)
        curvature = dot(direction, image)
        require_finite("curvature", np.asarray(curvature))
        if curvature <= 0:  # round-off: what was solved so far stands
            break
        step = residual_squared / curvature
        x += step * direction
        residual -= step * image
        previous, residual_squared = residual_squared, dot(residual, residual)
        direction = residual + (residual_squared / previous) * direction
        iteration += 1
    return Solution(x, residual, iteration)
