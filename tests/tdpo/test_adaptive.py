"""What the learners of the adaptive variant share: the estimate, the memory, checkpoints."""

import linear_quadratic
import numpy as np
import pytest

from envs.control.mechanics import birotor_kernel, double_well_kernel
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, Learner, adaptive, search, tdpo
from tdpo_baselines.tdpo.adaptive import draw_held_steps, spread_rows


def make_learner(kernel, seed=0, **options):
    config = Config(**options).fit(kernel)
    return Learner(config, registry.make_roller(kernel, config), Comm(), seed)


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


def test_gradient_is_the_payoffs_where_every_perturbation_lasts_one_step(monkeypatch):
    """Many small perturbations of single steps, no clipping: the remembered rows give the gradient."""
    monkeypatch.setattr(search, "HELD_FRACTION", 0.0)
    monkeypatch.setattr(adaptive, "ADVANTAGE_CLIP", None)
    monkeypatch.setattr(search, "PERTURBATIONS", (1e-4, 1e-4))
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


def test_only_rows_of_weight_zero_are_dropped_and_the_others_keep_their_order():
    rng = np.random.default_rng(0)
    weights = rng.random((3, 20, 1)) * (rng.random((3, 20, 1)) < 0.5)
    memory = tdpo.Rows(rng.standard_normal((3, 20, 4)), weights * rng.standard_normal((3, 20, 2)), weights)
    kept = adaptive.drop_repetitions(memory)
    assert kept.weights.shape[1] == max(np.count_nonzero(weights, axis=1)) < 20
    for before, after, counts in zip(zip(*memory), zip(*kept), weights[..., 0] > 0):
        for part, kept_part in zip(before, after):
            assert np.array_equal(kept_part[: counts.sum()], part[counts])
