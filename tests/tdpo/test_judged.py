"""Judged steps of the adaptive variant: which are kept, what they may gain, what is counted."""

import numpy as np

from envs.control.mechanics import double_well_kernel
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, judged
from tdpo_baselines.tdpo.judged import JudgedLearner, Trial


def make_learner(kernel, seed=0, **options):
    config = Config(**options).fit(kernel)
    return JudgedLearner(config, registry.make_roller(kernel, config), Comm(), seed)


def test_step_is_taken_back_only_if_it_lost_more_than_tolerated():
    trial = Trial(np.zeros(2), tolerated_loss=0.5, radius=0.1)
    assert [trial.judge(gain)[1] for gain in (1.0, -0.4, -0.6, np.nan, -np.inf)] == [True, True, False, False, False]
    radii = [trial.judge(gain)[0].radius for gain in (1.0, -0.4, -0.6)]
    assert radii[0] > 0.1 > radii[1] > radii[2]


def test_all_simulated_steps_are_counted_and_the_policy_is_compared_with_the_one_before():
    learner = make_learner(double_well_kernel(), num_trajectories=3, num_branches=1)
    horizon, first, second = 300, learner.iterate(0, 0), learner.iterate(1, 0)
    assert 3 * horizon < first["num_timesteps"] <= 3 * horizon + 6 * horizon
    assert 6 * horizon < second["num_timesteps"] <= 6 * horizon + 6 * horizon
    assert first["gain"] == 0 != second["gain"]


def test_predicted_gain_is_limited_by_the_size_of_the_rewards():
    learner = make_learner(double_well_kernel())
    row = learner.iterate(0, 0)
    assert 0 < row["predicted_gain"] <= judged.GAIN_CAP * abs(row["payoff"]) * 1.0001
    assert row["step_w"] <= learner.trial.radius * 1.0001
