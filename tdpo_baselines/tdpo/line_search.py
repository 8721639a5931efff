"""The advanced variant's line search: Algorithm 1, line 7 of arXiv 2205.15379."""

from typing import NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..harness.contracts import Roller


class LineSearch(NamedTuple):
    """The step coefficient that was found, and the steps simulated to find it."""

    coefficient: float = 1.0
    num_steps: int = 0


def step_coefficients(size: int, span: float) -> np.ndarray:
    """Return ascending coefficients: 0, then geometrically from the span to 1."""
    return np.append(0.0, np.geomspace(1.0, span, size - 1)[::-1])


def search_line(
    roller: Roller, comm: Comm, coefficients: np.ndarray, theta: np.ndarray, step: np.ndarray, starts: np.ndarray
) -> LineSearch:
    """Return the coefficient c with the best mean discounted return of theta + c step over the same starts.

    The ranks share the starts. Ties go to the smaller coefficient.
    """
    num_replicates = len(starts)
    states = roller.start_states(starts[comm.share(num_replicates)])
    tried = [roller.rollouts(theta + c * step, states, num_recorded=0) for c in coefficients]
    pairs = [np.stack([t.discounted_returns, t.lengths], axis=1) for t in tried]
    mine = np.stack(pairs, axis=1)  # [R of this rank, C, 2]
    everyone = comm.gather(mine, num_replicates)
    means = everyone[:, :, 0].mean(axis=0)
    best = int(np.argmax(np.where(np.isnan(means), -np.inf, means)))  # the first of equals
    return LineSearch(float(coefficients[best]), int(everyone[:, :, 1].sum()))
