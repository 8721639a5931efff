"""The advanced variant's line search: one step at several lengths, each tried in the environment."""

from typing import NamedTuple

import numpy as np

from ..common.parallel.comm import Comm


class LineSearch(NamedTuple):
    coefficient: float
    num_steps: int


def step_coefficients(size: int, span: float) -> np.ndarray:
    """Ascending: 0, then geometrically from the span to 1."""
    return np.append(0.0, np.geomspace(1.0, span, size - 1)[::-1])


def search_line(
    roller, comm: Comm, coefficients: np.ndarray, theta: np.ndarray, step: np.ndarray, starts: np.ndarray
) -> LineSearch:
    """The coefficient c of best mean return of theta + c step over the same starts; the ranks share the starts."""
    num_replicates = len(starts)
    states = roller.start_states(starts[comm.share(num_replicates)])
    tried = [roller.rollouts(theta + c * step, states, num_recorded=0) for c in coefficients]
    mine = np.stack([np.stack([t.returns, t.lengths], axis=1) for t in tried], axis=1)  # [R of this rank, C, 2]
    everyone = comm.gather(mine, num_replicates)
    means = everyone[:, :, 0].mean(axis=0)
    best = int(np.argmax(np.where(np.isnan(means), -np.inf, means)))  # the first, so the smallest of equals
    return LineSearch(float(coefficients[best]), int(everyone[:, :, 1].sum()))
