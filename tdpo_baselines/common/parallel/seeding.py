"""Random streams keyed by their purpose, never by the rank that draws them.

A stream is named by (seed, purpose, iteration). Every rank can draw the plan of the whole update and keep its own
rows, so the numbers of trajectory i do not depend on the number of ranks, and a resumed run needs no generator state.
"""

import numpy as np

PURPOSES = {  # the numbers are part of every run's results: add new ones, change none
    "weights": 0,
    "plan": 1,
    "evaluation": 2,
    "line_search": 3,
    "actions": 4,
    "starts": 5,
    "minibatches": 6,
    "value_weights": 7,
    "noise": 8,
    "selection": 9,
}


def generator(seed: int, purpose: str, iteration: int = 0, *items: int) -> np.random.Generator:
    """Return the generator of a stream; `items` tell streams of one iteration apart: a trajectory, an episode."""
    if purpose not in PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}; add it to PURPOSES, which has {', '.join(PURPOSES)}")
    return np.random.default_rng([seed, PURPOSES[purpose], iteration, *items])


def stratified(rng: np.random.Generator, num: int, dimensions: int) -> np.ndarray:
    """Draw a Latin hypercube: in every dimension, one point in each of `num` equal strata. [num, dimensions]"""
    strata = rng.permuted(np.broadcast_to(np.arange(num)[:, None], (num, dimensions)), axis=0)
    return (strata + rng.random((num, dimensions))) / num
