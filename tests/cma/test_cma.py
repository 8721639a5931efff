"""CMA-ES: that it finds the optimum, resumes from payoffs alone, restarts, and searches only free parameters."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.cma import cma
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


def make_learner(**options) -> cma.Learner:
    config, kernel = cma.Config(**options), linear_quadratic.kernel()
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma, config.network_style(kernel))
    return cma.Learner(config, roller, Comm(), seed=1)


@pytest.mark.parametrize("covariance", ["full", "separable"])
def test_gain_approaches_the_optimum(covariance):
    learner = make_learner(covariance=covariance)
    for iteration in range(60):
        learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert best <= linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.02 * best


def test_search_is_repeated_from_its_payoffs_through_restarts():
    def run(num_updates: int) -> cma.Search:
        search = cma.Search(cma.Config(), num_coordinates=2, seed=3)
        for _ in range(num_updates):
            search.tell(-np.sum((search.ask() - 0.3) ** 2, axis=1))
        return search

    whole, again = run(60), cma.Search(cma.Config(), num_coordinates=2, seed=3)
    again.repeat(np.concatenate(whole.payoffs))
    assert whole.num_restarts >= 1 and len(whole.payoffs[-1]) == 16 * 2**whole.num_restarts
    assert np.array_equal(whole.mean, again.mean) and np.array_equal(whole.ask(), again.ask())


def test_global_generator_is_left_alone():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    make_learner().iterate(0, 0)
    assert np.array_equal(before, np.random.get_state()[1])


def test_restored_learner_continues_as_if_nothing_had_happened():
    one, other = make_learner(), make_learner()
    for iteration in range(40):
        one.iterate(iteration, 0)
    other.load_state(one.state())
    assert one.iterate(40, 0) == other.iterate(40, 0) and np.array_equal(one.theta, other.theta)


def test_kept_policy_remains_while_it_is_better():
    learner = make_learner()
    learner.iterate(0, 0)
    best = np.append(linear_quadratic.best_gain().ravel(), [0.0, 0.0])
    learner.kept = learner.theta = best  # as after a restart
    learner.iterate(1, 0)
    assert np.array_equal(learner.theta, best)


def test_actions_see_only_their_inputs():
    learner = make_learner(action_inputs="0;0,1")
    for iteration in range(3):
        learner.iterate(iteration, 0)
    weights, biases = learner.theta[:4].reshape(2, 2), learner.theta[4:]
    assert weights[1, 0] == 0 and np.all(weights[[0, 0, 1], [0, 1, 1]] != 0) and np.all(biases != 0)


@pytest.mark.parametrize("text", ["0", "0;2", "0;x", "0;-1", "0;1;1"])
def test_bad_inputs_are_refused(text):
    with pytest.raises(ValueError, match="action_inputs must be 2 lists"):
        cma.check(cma.Config(action_inputs=text), linear_quadratic.kernel(), 1)


def test_unsuitable_policies_are_refused():
    kernel = linear_quadratic.kernel()
    with pytest.raises(ValueError, match="needs a linear policy"):
        cma.check(cma.Config(action_inputs="0;1", hidden_sizes=(4,)), kernel, 1)
    with pytest.raises(ValueError, match="covariance=separable"):
        cma.check(cma.Config(hidden_sizes=(64, 64)), kernel, 1)
    cma.check(cma.Config(hidden_sizes=(64, 64), covariance="separable"), kernel, 1)
