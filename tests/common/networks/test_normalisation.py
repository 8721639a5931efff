"""Statistics merged from parts, and networks that see normalised observations."""

import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks.normalisation import RunningStats, fold_normalisation, unfold_normalisation


def merged(parts, stats):
    sums, squares = (np.array([(part**power).sum(axis=0) for part in parts]) for power in (1, 2))
    return stats.merged(np.array([float(len(part)) for part in parts]), sums, squares)


def test_merged_statistics_are_those_of_all_observations():
    rng = np.random.default_rng(0)
    parts = [rng.normal([1.0, -5.0, 3.0], [0.1, 4.0, 0.0], (length, 3)) for length in (7, 1, 40, 12)]
    stats = merged(parts[2:], merged(parts[:2], RunningStats.of_size(3)))
    everything = np.concatenate(parts)
    assert stats.count == 60
    assert stats.mean == pytest.approx(everything.mean(axis=0))
    assert stats.std[:2] == pytest.approx(everything.std(axis=0)[:2])
    assert stats.std[2] == 1  # nothing varies


@pytest.mark.parametrize("style", [mlp.PLAIN, mlp.Style(has_linear_part=True)])
def test_folded_network_of_raw_observations_is_the_network_of_normalised_ones(style):
    rng, sizes = np.random.default_rng(1), (3, 5, 2)
    observations = rng.normal([1.0, -5.0, 3.0], [0.1, 4.0, 2.0], (50, 3))
    stats = merged([observations], RunningStats.of_size(3))
    theta = rng.standard_normal(mlp.num_parameters(sizes, style))
    forward = mlp.Forward(sizes, style)
    folded = fold_normalisation(theta, sizes, stats)
    expected = forward(theta, stats.normalise(observations))
    assert forward(folded, observations) == pytest.approx(expected, rel=1e-9)
    assert unfold_normalisation(folded, sizes, stats) == pytest.approx(theta, rel=1e-9)
