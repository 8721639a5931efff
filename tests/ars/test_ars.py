"""ARS's estimate against the formula and against finite differences, and that it learns."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.ars import ars
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


def make_learner(**options) -> ars.Learner:
    config, kernel = ars.Config(**options), linear_quadratic.kernel()
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma, config.network_style(kernel))
    return ars.Learner(config, roller, Comm(), seed=1)


def test_best_directions_are_those_with_the_best_sign():
    payoffs = np.array([[1.0, 0.0], [0.0, 5.0], [3.0, 3.0], [-1.0, -2.0]])
    assert ars.best_directions(payoffs, 2).tolist() == [1, 2]
    assert ars.best_directions(payoffs, None).tolist() == [0, 1, 2, 3]


def test_estimate_is_algorithm_2():
    directions, payoffs = np.array([[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]]), np.array([[3.0, 1.0], [0.0, 4.0], [-9, -9]])
    estimate = ars.estimate_gradient(directions, payoffs, ars.Config(num_top=2))
    deviation = np.std([3.0, 1.0, 0.0, 4.0])
    assert estimate == pytest.approx(np.array([2.0, -8.0]) / (2 * deviation))
    assert not ars.estimate_gradient(directions, np.ones((3, 2)), ars.Config()).any()  # nothing to choose from


def test_ranks_are_centred_and_ties_share_theirs():
    ranks = ars.centred_ranks(np.array([[10.0, -3.0], [7.0, 7.0]]))
    assert ranks == pytest.approx(np.array([[0.5, -0.5], [0.0, 0.0]]))


@pytest.mark.parametrize("options", [{}, {"shaping": "rank", "use_adam": True, "num_top": None}])
def test_gain_approaches_the_optimum(options):
    learner = make_learner(num_starts=4, learning_rate=0.05, direction_std=0.05, **options)
    for iteration in range(300):
        learner.iterate(iteration, 0)
    gain = learner.theta[:4].reshape(2, 2)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert best <= linear_quadratic.mean_cost(gain) < 1.03 * best < 0.5 * linear_quadratic.mean_cost(np.zeros((2, 2)))


def test_restored_learner_continues_as_if_nothing_had_happened():
    one, other = make_learner(use_adam=True), make_learner(use_adam=True)
    for iteration in range(3):
        one.iterate(iteration, 0)
    other.load_state(one.state())
    assert one.iterate(3, 0) == other.iterate(3, 0) and np.array_equal(one.theta, other.theta)


def test_more_top_directions_than_directions_are_refused():
    with pytest.raises(ValueError, match="num_top must be at most num_trajectories"):
        ars.check(ars.Config(num_trajectories=4, num_top=5), linear_quadratic.kernel(), 1)
