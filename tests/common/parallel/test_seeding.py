import numpy as np
import pytest

from tdpo_baselines.common.parallel.seeding import PURPOSES, generator, stratified


def test_streams_differ_by_seed_purpose_iteration_and_item():
    names = [(0, "plan", 0), (1, "plan", 0), (0, "starts", 0), (0, "plan", 1), (0, "plan", 0, 1), (0, "plan", 0, 2)]
    draws = [tuple(generator(*name).integers(2**62, size=2)) for name in names]
    assert len(set(draws)) == len(names)
    assert tuple(generator(0, "plan", 0).integers(2**62, size=2)) == draws[0]


def test_numbers_of_the_purposes_never_change():
    assert list(PURPOSES.items())[:10] == [
        ("weights", 0), ("plan", 1), ("evaluation", 2), ("line_search", 3), ("actions", 4), ("starts", 5),
        ("minibatches", 6), ("value_weights", 7), ("noise", 8), ("selection", 9),
    ]  # fmt: skip
    assert len(set(PURPOSES.values())) == len(PURPOSES)


def test_stratified_points_have_one_point_per_stratum_in_every_dimension():
    points = stratified(np.random.default_rng(0), 10, 3)
    for column in points.T:
        assert sorted(np.floor(column * 10)) == list(range(10))


def test_unknown_purpose_is_named():
    with pytest.raises(ValueError, match="unknown purpose 'mine'; add it to PURPOSES"):
        generator(0, "mine")
