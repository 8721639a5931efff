"""Conjugate gradient for a symmetric positive definite operator given by its products.

`common/few_rows.py` has the same iterations where vectors are given by few coefficients.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..parallel.checks import NotFinite


class Solution(NamedTuple):
    """Of (A + damping) x = b."""

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
) -> Solution:
    """Solve (A + damping) x = b from x = 0 until the residual is at most tolerance |b| or iterations are used up."""
    x, residual, direction = np.zeros_like(b), b.copy(), b.copy()
    b_squared = residual_squared = b @ b
    stop_at = tolerance**2 * residual_squared
    iteration = 0
    while iteration < max_iterations and residual_squared > stop_at:
        image = product(direction) + damping * direction
        curvature = direction @ image
        if not math.isfinite(curvature):
            raise NotFinite(f"curvature is {curvature}")
        if curvature <= 0:  # round-off: what was solved so far stands
            break
        step = residual_squared / curvature
        x += step * direction
        residual -= step * image
        previous, residual_squared = residual_squared, residual @ residual
        direction = residual + residual_squared / previous * direction
        iteration += 1
    curvature = x @ (b - residual - damping * x)
    return Solution(x, iteration, b_squared, b @ x, max(curvature, 0.0), residual_squared)
