"""Shared options: invalid ones are named with a remedy, and exploration noise is that of the options."""

from types import SimpleNamespace

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners import settings
from tdpo_baselines.common.learners.settings import OffPolicySettings, OnPolicySettings
from tdpo_baselines.common.parallel import launcher


def environment(low=-1.0, high=3.0):
    return SimpleNamespace(
        observation_size=3, action_size=2, action_low=np.array([low, -1.0]), action_high=np.array([high, 1.0])
    )


def test_range_of_actions_is_that_of_the_environment_or_the_unit_interval():
    centre, scale = settings.action_range(environment())
    assert centre.tolist() == [1.0, 0.0] and scale.tolist() == [2.0, 1.0]
    centre, scale = settings.action_range(environment(high=np.inf))
    assert centre.tolist() == [0.0, 0.0] and scale.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "num_ranks", "message"),
    [
        ({}, 2, "num_trajectories must be at least the number of ranks"),
        (
            {"num_trajectories": 3},
            1,
            "multiples of num_trajectories .3., .* pass --set batch_size=255 buffer_size=999999",
        ),
        ({"buffer_size": 9}, 1, "buffer_size must be at least batch_size .256., got 9; pass --set buffer_size=256"),
        ({"buffer_size": 10**11}, 1, "transitions of buffer_size need about"),
    ],
)
def test_off_policy_options_that_cannot_run_are_refused_with_a_remedy(options, num_ranks, message):
    with pytest.raises(ValueError, match=message):
        settings.check_off_policy(OffPolicySettings(**options), environment(), num_ranks)


def test_ranks_share_the_memory_of_the_replay(monkeypatch):
    memory = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 2 * 4 * 10 * 3 * 10**6}  # rows of 10 columns, three copies
    monkeypatch.setattr("os.sysconf", memory.get)
    config = OffPolicySettings(buffer_size=10**6, num_trajectories=4, updates_per_round=1)
    settings.check_off_policy(config, environment(), 1)
    with pytest.raises(ValueError, match="transitions of buffer_size need about"):
        settings.check_off_policy(OffPolicySettings(buffer_size=10**6 + 4), environment(), 1)
    monkeypatch.setattr(launcher, "num_local_ranks", lambda: 4)
    settings.check_off_policy(config, environment(), 4)


def test_tanh_output_needs_limited_actions():
    unlimited = environment(high=np.inf)
    with pytest.raises(ValueError, match="pass --set use_tanh_output=false"):
        settings.check_off_policy(OffPolicySettings(), unlimited, 1)
    settings.check_off_policy(OffPolicySettings(use_tanh_output=False), unlimited, 1)


def test_on_policy_minibatch_must_not_exceed_the_batch():
    config = OnPolicySettings(num_trajectories=2, steps_per_trajectory=10)
    settings.check_on_policy(config, environment(), 2, minibatch_size=20)
    with pytest.raises(
        ValueError, match="minibatch_size must be at most .* .20., got 21; pass --set minibatch_size=20"
    ):
        settings.check_on_policy(config, environment(), 2, minibatch_size=21)
    with pytest.raises(ValueError, match="run on 2 ranks"):
        settings.check_on_policy(config, environment(), 3)


def test_a_run_of_random_steps_only_is_remarked():
    config = OffPolicySettings(random_timesteps=100)
    assert config.remarks(environment(), 101) == []
    assert "random_timesteps (100) is not less than num_timesteps" in config.remarks(environment(), 100)[0]


def test_network_style_maps_the_output_onto_the_range():
    style = OffPolicySettings(activation="tanh").network_style(environment())
    assert style == ("tanh", True, (1.0, 0.0), (2.0, 1.0), False)


@pytest.mark.parametrize("noise", ["gaussian", "ou", "pink"])
def test_coloured_noise_of_evaluation_has_the_deviation_of_training(noise):
    kernel = linear_quadratic.limited_kernel()
    config = OffPolicySettings(noise=noise, noise_std=0.3, noise_bandwidth=0.5)
    drawn = settings.coloured_exploration(config, kernel, {}, np.random.default_rng(0), (4000, 3, 2))
    assert drawn.shape == (4000, 3, 2)
    np.testing.assert_allclose(drawn.std(axis=(0, 1)), 0.3 * settings.action_range(kernel)[1], rtol=0.05)


def test_gaussian_noise_of_evaluation_has_the_deviation_of_the_checkpoint_if_it_tells_one():
    state = {"policy": {"theta": np.zeros(3), "log_std": np.log([0.5, 2.0])}}
    drawn = settings.gaussian_exploration(None, None, state, np.random.default_rng(0), (400, 30, 2))
    np.testing.assert_allclose(drawn.std(axis=(0, 1)), [0.5, 2.0], rtol=0.05)
    without = {"policy": {"theta": np.zeros(3)}}
    assert settings.gaussian_exploration(None, None, without, np.random.default_rng(0), (4, 3, 2)) is None
