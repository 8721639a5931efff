"""Line search in the environment: Algorithm 1, line 7 of arXiv 2205.15379."""

from typing import NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..contracts import Roller


class LineSearch(NamedTuple):
    """Result of a line search."""

    coefficient: float = 1.0  # of the step
    gain: float = 0.0  # of the mean discounted return over that of the first coefficient
    num_steps: int = 0  # simulated


def step_coefficients(size: int, span: float) -> np.ndarray:
    """Return ascending coefficients: 0, then geometrically from the span to 1."""
    return np.append(0.0, np.geomspace(1.0, span, size - 1)[::-1])


def search_line(
    roller: Roller, comm: Comm, coefficients: np.ndarray, theta: np.ndarray, step: np.ndarray, starts: np.ndarray
) -> LineSearch:
    """Return the coefficient c with the best mean discounted return of theta + c step over the same starts.

    The ranks share the rollouts. Ties go to the smaller coefficient.
    """
    C, R = len(coefficients), len(starts)
    which, start = np.divmod(np.arange(C * R)[comm.share(C * R)], R)  # of this rank's rollouts
    mine = np.empty((len(which), 2))
    for c in np.unique(which):
        tried = roller.rollouts(
            theta + coefficients[c] * step, roller.start_states(starts[start[which == c]]), num_recorded=0
        )
        mine[which == c] = np.stack([tried.discounted_returns, tried.lengths], axis=1)
    everyone = comm.gather(mine, C * R).reshape(C, R, 2)
    means = everyone[:, :, 0].mean(axis=1)
    means[np.isnan(means)] = -np.inf
    best = int(np.argmax(means))  # the first of equals
    return LineSearch(float(coefficients[best]), float(means[best] - means[0]), int(everyone[:, :, 1].sum()))
