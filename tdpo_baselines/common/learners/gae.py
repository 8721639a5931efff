"""Advantages of steps that were taken, from a value function."""

import numpy as np
from numba import njit


def generalised_advantages(segments, values: np.ndarray, next_values: np.ndarray, *, gamma: float, lam: float):
    """GAE(lambda), [n, L]: discounted sums of TD errors within an episode.

    Only an environment that ended by itself has no future; one that a time limit or a segment cut off is
    continued by its value.
    """
    errors = segments.rewards + gamma * next_values * ~segments.is_terminal - values
    return _discounted_sums(errors, gamma * lam * ~segments.is_last)


@njit(cache=True)
def _discounted_sums(errors, factors):
    """out[t] = errors[t] + factors[t] out[t + 1], along the last axis."""
    out = np.zeros_like(errors)
    for n in range(errors.shape[0]):
        total = 0.0
        for t in range(errors.shape[1] - 1, -1, -1):
            total = errors[n, t] + factors[n, t] * total
            out[n, t] = total
    return out
