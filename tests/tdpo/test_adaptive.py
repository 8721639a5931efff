"""The adaptive variant: its estimate, its judgement of steps, and what it learns without options."""

import linear_quadratic
import numpy as np
import pytest

from envs.control.mechanics import birotor_kernel, double_well_kernel
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, adaptive, tdpo
from tdpo_baselines.tdpo.adaptive import AdaptiveLearner, Trial, draw_held_steps, draw_search_scales, spread_rows


def make_learner(kernel, seed=0, **options):
    config = Config(**options).fit(kernel)
    return AdaptiveLearner(config, registry.make_roller(kernel, config), Comm(), seed)


def test_perturbations_are_held_from_one_step_to_the_longest_hold():
    held = draw_held_steps(np.random.default_rng(0), (50, 4), 40)
    assert held.shape == (50, 4) and held.min() == 1 and 35 <= held.max() <= 40
    assert np.mean(held <= 6) == pytest.approx(0.5, abs=0.05)  # log-uniform: half below the square root
    assert draw_held_steps(np.random.default_rng(0), (5, 4), 1).max() == 1


def test_rows_are_spread_over_the_perturbed_steps():
    steps, weights = spread_rows(np.array([[1, 3, 4, 40]]))
    assert weights.sum(axis=2) == pytest.approx(1)
    chosen = [sorted(set(s[w > 0].tolist())) for s, w in zip(steps[0], weights[0])]
    assert chosen == [[0], [0, 1, 2], [0, 1, 2, 3], [5, 15, 25, 35]]


def test_step_is_taken_back_only_if_it_lost_more_than_tolerated():
    trial = Trial(np.zeros(2), tolerated_loss=0.5, radius=0.1)
    assert [trial.judge(gain)[1] for gain in (1.0, -0.4, -0.6, np.nan, -np.inf)] == [True, True, False, False, False]
    radii = [trial.judge(gain)[0].radius for gain in (1.0, -0.4, -0.6)]
    assert radii[0] > 0.1 > radii[1] > radii[2]


def test_gradient_is_the_payoffs_where_every_perturbation_lasts_one_step(monkeypatch):
    """Many small perturbations of single steps, no clipping: the remembered rows give the gradient."""
    monkeypatch.setattr(adaptive, "HELD_FRACTION", 0.0)
    monkeypatch.setattr(adaptive, "ADVANTAGE_CLIP", None)
    monkeypatch.setattr(adaptive, "SEARCH_PERTURBATIONS", (1e-4, 1e-4))
    options = {"num_trajectories": 400, "num_branches": 8, "max_branch_steps": 30, "hidden_sizes": (), "gamma": 0.95}
    learner = make_learner(linear_quadratic.kernel(), **options)
    theta = learner.theta
    learner.iterate(0, 0)
    observations, gradients, _ = (part[0] for part in learner.memory)
    weights = observations.T @ gradients  # d payoff / d weights of the linear policy
    expected = np.zeros((2, 2))
    starts = learner.roller.start_states(np.random.default_rng(1).random((4000, 2)))
    for index in np.ndindex(2, 2):
        payoffs = []
        for sign in (1e-4, -1e-4):
            changed = theta.copy()
            changed[index[0] * 2 + index[1]] += sign
            payoffs.append(
                learner.roller.rollouts(changed, starts).discounted_returns.mean() / sum(0.95 ** np.arange(30))
            )
        expected[index] = (payoffs[0] - payoffs[1]) / 2e-4
    assert np.linalg.norm(weights - expected) < 0.1 * np.linalg.norm(expected)


def test_reaches_the_optimum_of_the_linear_quadratic_toy_without_options():
    learner = make_learner(linear_quadratic.kernel(), hidden_sizes=(), gamma=1.0)
    for iteration in range(250):
        learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.02 * best


@pytest.mark.parametrize("kernel", [birotor_kernel, double_well_kernel])  # a search, and judged steps
def test_resumed_learner_goes_on_the_same(kernel):
    learner, again = (make_learner(kernel(), hidden_sizes=(8,)) for _ in range(2))
    for iteration in range(6):
        if iteration == 3:
            again.load_state(learner.state())
        if iteration >= 3:
            again.iterate(iteration, 0)
        learner.iterate(iteration, 0)
    assert np.array_equal(learner.theta, again.theta) and np.array_equal(learner.memory.weights, again.memory.weights)


def test_all_simulated_steps_are_counted_and_the_policy_is_compared_with_the_one_before():
    learner = make_learner(double_well_kernel(), num_trajectories=3, num_branches=1)
    horizon, first, second = 300, learner.iterate(0, 0), learner.iterate(1, 0)
    assert 3 * horizon < first["num_timesteps"] <= 3 * horizon + 6 * horizon
    assert 6 * horizon < second["num_timesteps"] <= 6 * horizon + 6 * horizon
    assert first["gain"] == 0 != second["gain"]


def test_scales_of_a_search_are_log_uniform():
    rng, low, high = np.random.default_rng(0), *adaptive.SEARCH_PERTURBATIONS
    drawn = [draw_search_scales(rng, 8000) for _ in range(2000)]
    assert np.mean([s.perturbation < np.sqrt(low * high) for s in drawn]) == pytest.approx(0.5, abs=0.05)
    branches, holds = (np.array([getattr(s, name) for s in drawn]) for name in ("longest_branch", "longest_hold"))
    assert np.median(branches) == pytest.approx(np.sqrt(50 * 1000), rel=0.1) and branches.min() == 50
    assert holds.max() == 320 and np.all(holds <= branches / 3 + 0.5)
    short = [draw_search_scales(rng, 100).longest_branch for _ in range(2000)]
    assert min(short) == 1 and 90 <= max(short) <= 100


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
    kernel, horizon, num_tried = linear_quadratic.fixed_start_kernel(), 30, adaptive.NUM_RADII + 1
    learner = make_learner(kernel, num_trajectories=4, num_branches=2, max_branch_steps=5)
    first, second = (learner.iterate(iteration, 0) for iteration in range(2))
    assert first["num_episodes"] == 1 and horizon < first["num_timesteps"] <= horizon + 2 * 8 * 5
    rollouts = (num_tried + 1) * horizon
    assert rollouts < second["num_timesteps"] <= rollouts + 2 * 8 * 5


def test_predicted_gain_is_limited_by_the_size_of_the_rewards():
    learner = make_learner(double_well_kernel())
    row = learner.iterate(0, 0)
    assert 0 < row["predicted_gain"] <= adaptive.GAIN_CAP * abs(row["payoff"]) * 1.0001
    assert row["step_w"] <= learner.trial.radius * 1.0001


def test_only_rows_of_weight_zero_are_dropped_and_the_others_keep_their_order():
    rng = np.random.default_rng(0)
    weights = rng.random((3, 20, 1)) * (rng.random((3, 20, 1)) < 0.5)
    memory = tdpo.Rows(rng.standard_normal((3, 20, 4)), weights * rng.standard_normal((3, 20, 2)), weights)
    kept = adaptive.drop_repetitions(memory)
    assert kept.weights.shape[1] == max(np.count_nonzero(weights, axis=1)) < 20
    for before, after, counts in zip(zip(*memory), zip(*kept), weights[..., 0] > 0):
        for part, kept_part in zip(before, after):
            assert np.array_equal(kept_part[: counts.sum()], part[counts])
