"""Random streams keyed by what they are for, never by who draws them.

A stream is named by (seed, purpose, iteration). Every rank can draw the plan of the whole update and
keep its own rows, so the numbers of trajectory i do not depend on how many ranks there are, and a
resumed run needs no generator state.
"""

import numpy as np

PURPOSES = (
    "weights",
    "plan",
    "evaluation",
    "line_search",
    "actions",
    "starts",
    "minibatches",
    "value_weights",
    "noise",
)


def generator(seed: int, purpose: str, iteration: int = 0, *items: int) -> np.random.Generator:
    """`items` tell streams of one iteration apart: a trajectory, an episode of it."""
    return np.random.default_rng([seed, PURPOSES.index(purpose), iteration, *items])


def stratified(rng: np.random.Generator, num: int, dimensions: int) -> np.ndarray:
    """Latin hypercube: in every dimension, one point in each of `num` equal strata. [num, dimensions]"""
    strata = rng.permuted(np.broadcast_to(np.arange(num)[:, None], (num, dimensions)), axis=0)
    return (strata + rng.random((num, dimensions))) / num
