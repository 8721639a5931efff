"""Rivals: when they begin, when they take the policy's place, and what is counted."""

import numpy as np
import pytest

from envs.control.mechanics import double_well_kernel
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator, stratified
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, rivals
from tdpo_baselines.tdpo.devine import discounts
from tdpo_baselines.tdpo.judged import JudgedLearner
from tdpo_baselines.tdpo.rivals import RivalLearner

OPTIONS = {"num_trajectories": 3, "num_branches": 1, "hidden_sizes": (8,)}


def make_learner(kernel):
    config = Config(**OPTIONS).fit(kernel)
    return RivalLearner(config, registry.make_roller(kernel, config), Comm(), 0)


@pytest.fixture
def collapses_at_once(monkeypatch):
    monkeypatch.setattr(rivals, "COLLAPSED", 1.0)


def payoffs(learner, thetas, iteration):
    """Return the payoffs of policies from the starts of an iteration."""
    roller, scale = learner.roller, discounts(learner.config.gamma, learner.roller.horizon)[0]
    points = stratified(generator(0, "plan", iteration), OPTIONS["num_trajectories"], roller.start_size)
    starts = roller.start_states(points)
    return [roller.rollouts(theta, starts).discounted_returns.mean() * scale for theta in thetas]


def test_policy_is_alone_until_its_trust_region_collapses():
    learner = make_learner(double_well_kernel())
    alone = JudgedLearner(learner.config, learner.roller, Comm(), 0)
    for iteration in range(3):
        row, expected = learner.iterate(iteration, 0), alone.iterate(iteration, 0)
        assert row.pop("num_rivals") == 0 and row == expected
    learner.trial = learner.trial._replace(radius=0.9 * rivals.COLLAPSED)
    assert learner.iterate(3, 0)["num_rivals"] == 1


def test_better_of_policy_and_rival_is_the_policy():
    learner = make_learner(double_well_kernel())
    learner.begin_rival()
    for iteration in range(12):
        row = learner.iterate(iteration, 0)
        if iteration > 0:  # the first update scales the policy to its observations
            best, other = payoffs(learner, [learner.theta, learner.rival["policy"]["theta"]], iteration)
            assert row["payoff"] == best >= other


def test_steps_of_the_rival_are_counted(collapses_at_once):
    learner, horizon = make_learner(double_well_kernel()), 300
    alone, both = learner.iterate(0, 0), learner.iterate(1, 0)
    assert alone["num_timesteps"] <= (3 + 6) * horizon < both["num_timesteps"]
    assert both["num_episodes"] == 2 * alone["num_episodes"]


def test_next_rival_begins_when_the_last_has_collapsed(collapses_at_once):
    learner = make_learner(double_well_kernel())
    assert [learner.iterate(iteration, 0)["num_rivals"] for iteration in range(4)] == [1, 2, 3, 4]
    fresh = learner.rival["policy"]["theta"]
    assert not np.array_equal(fresh, learner.theta) and learner.rival["trial"]["num_updates"] == 0


def test_resumed_learner_goes_on_the_same_with_its_rival():
    learner, again = (make_learner(double_well_kernel()) for _ in range(2))
    learner.begin_rival()
    for iteration in range(6):
        if iteration == 3:
            again.load_state(learner.state())
        if iteration >= 3:
            again.iterate(iteration, 0)
        learner.iterate(iteration, 0)
    assert np.array_equal(learner.theta, again.theta) and learner.num_rivals == again.num_rivals == 1
    assert np.array_equal(learner.rival["policy"]["theta"], again.rival["policy"]["theta"])
