from importlib import import_module

import gymnasium
import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling import classic_gym
from tdpo_baselines.common.sampling.gym_roller import GymRoller
from tdpo_baselines.options import registry


def make(name, **options):
    return registry.make_environment(name, registry.resolve_options(name, options))


def returns(environment, starts):
    roller = GymRoller(environment, (8,), 0.99)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), 1.0)
    return roller.rollouts(theta, roller.start_states(starts))


def test_classic_gym_is_rolled_out_like_gymnasium():
    """The two libraries have the same Pendulum-v1."""
    starts = np.array([[0.3], [0.7]])
    ours, theirs = (returns(make(name, max_episode_steps=40), starts) for name in ("gym:Pendulum-v1", "Pendulum-v1"))
    np.testing.assert_array_equal(ours.discounted_returns, theirs.discounted_returns)


def test_environment_of_the_oldest_gym_interface_is_rolled_out():
    registry.check_environment("gym:old_gym:Slide-v0")
    environment = make("gym:old_gym:Slide-v0")
    assert environment.horizon == 25 and not environment.is_restored
    assert make("gym:old_gym:Slide-v0", delay_steps=2).horizon == 25
    rollouts = returns(environment, np.linspace(0, 0.9, 10)[:, None])
    assert len(set(rollouts.discounted_returns)) == 10 and 1 < rollouts.lengths.min() < rollouts.lengths.max() == 25


def test_old_interface_is_translated_to_gymnasiums():
    env = classic_gym.ClassicGym(import_module("old_gym").Slide())
    observation, info = env.reset(seed=3)
    assert np.array_equal(observation, env.reset(seed=3)[0]) and info == {}
    assert env.step(np.zeros(1))[2:] == (False, False, {})
    assert isinstance(env.action_space, gymnasium.spaces.Box)


def test_unknown_or_discrete_classic_environments_are_refused():
    with pytest.raises(ValueError, match="unknown environment 'gym:Nope-v1'"):
        registry.check_environment("gym:Nope-v1")
    with pytest.raises(ValueError, match=r"actions must be a vector .* got Discrete\(2\)"):
        make("gym:CartPole-v1")


def test_missing_gym_names_the_remedy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gym", None)
    with pytest.raises(ValueError, match=r'need classic gym; pip install "gym>=0.25"'):
        classic_gym.spec("Pendulum-v1")
