"""The search of the adaptive variant: its scales, its line search, and what it learns without options."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, search
from tdpo_baselines.tdpo.search import SearchLearner, draw_scales


def make_learner(kernel, seed=0, **options):
    config = Config(**options).fit(kernel)
    return SearchLearner(config, registry.make_roller(kernel, config), Comm(), seed)


def test_scales_are_log_uniform():
    rng, low, high = np.random.default_rng(0), *search.PERTURBATIONS
    drawn = [draw_scales(rng, 8000) for _ in range(2000)]
    assert np.mean([s.perturbation < np.sqrt(low * high) for s in drawn]) == pytest.approx(0.5, abs=0.05)
    branches, holds = (np.array([getattr(s, name) for s in drawn]) for name in ("longest_branch", "longest_hold"))
    assert np.median(branches) == pytest.approx(np.sqrt(50 * 1000), rel=0.1) and branches.min() == 50
    assert holds.max() == 320 and np.all(holds <= branches / 3 + 0.5)
    short = [draw_scales(rng, 100).longest_branch for _ in range(2000)]
    assert min(short) == 1 and 90 <= max(short) <= 100


def test_reaches_the_optimum_of_the_linear_quadratic_toy_without_options():
    learner = make_learner(linear_quadratic.kernel(), hidden_sizes=(), gamma=1.0)
    for iteration in range(250):
        learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.02 * best


def test_search_from_a_single_start_never_loses_and_nears_the_optimum():
    kernel, iterations = linear_quadratic.fixed_start_kernel(), 50
    learner = make_learner(kernel, hidden_sizes=(), gamma=1.0)
    rows = [learner.iterate(iteration, 0) for iteration in range(iterations)]
    payoffs = [row["payoff"] for row in rows[1:]]  # the first policy is then scaled to its first observations
    assert np.all(np.diff(payoffs) >= 0)
    assert sum(row["gain"] for row in rows[2:]) == pytest.approx(payoffs[-1] - payoffs[0])
    best = learner.theta.copy()
    best[:4] = linear_quadratic.best_gain().ravel()
    best[4:] = 0
    start = learner.roller.start_states(np.zeros((1, 0)))
    assert payoffs[-1] > 1.05 * learner.roller.rollouts(best, start).rewards.mean()


def test_search_from_a_single_start_counts_its_rollouts():
    kernel, horizon, num_tried = linear_quadratic.fixed_start_kernel(), 30, search.NUM_RADII + 1
    learner = make_learner(kernel, num_trajectories=4, num_branches=2, max_branch_steps=5)
    first, second = (learner.iterate(iteration, 0) for iteration in range(2))
    assert first["num_episodes"] == 1 and horizon < first["num_timesteps"] <= horizon + 2 * 8 * 5
    rollouts = (num_tried + 1) * horizon
    assert rollouts < second["num_timesteps"] <= rollouts + 2 * 8 * 5
