"""Libraries that propose points, each run where it is installed."""

import numpy as np
import pytest

from tdpo_baselines.tuning.libraries import LIBRARIES, propose, require


def score(points):
    """Return values with orders of magnitude between them and the maximum in the inside."""
    return -np.exp(8 * np.sum((points - 0.37) ** 2, axis=1))


@pytest.fixture(params=LIBRARIES)
def library(request):
    pytest.importorskip(LIBRARIES[request.param][0])
    return request.param


def test_proposals_are_different_points_of_the_cube_and_depend_on_the_arguments_alone(library):
    points = np.random.default_rng(1).random((13, 3))
    proposed = propose(library, points, score(points), num=3, seed=5)
    assert proposed.shape == (3, 3) and proposed.min() >= 0 and proposed.max() <= 1
    assert len(np.unique(proposed, axis=0)) == 3
    assert np.array_equal(proposed, propose(library, points, score(points), num=3, seed=5))


def test_search_may_begin_with_nothing(library):
    assert propose(library, np.empty((0, 2)), np.empty(0), num=2, seed=0).shape == (2, 2)


def test_library_finds_better_points_than_it_was_given(library):
    if library == "random":
        pytest.skip("it does not learn")
    points = np.random.default_rng(1).random((13, 2))
    points = points[np.argsort(score(points))][:10]  # without the best
    before = score(points).max()
    for seed in range(4):
        points = np.vstack([points, propose(library, points, score(points), num=3, seed=seed)])
    assert score(points).max() > before
    distance = np.linalg.norm(points - 0.37, axis=1)
    assert distance[10:].min() < distance[:10].min()


def test_library_that_is_absent_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(LIBRARIES, "absent", ("no_such_module", "no-such-package", LIBRARIES["random"][2]))
    with pytest.raises(ValueError, match='--library absent is not installed; pip install "no-such-package"'):
        require("absent")
