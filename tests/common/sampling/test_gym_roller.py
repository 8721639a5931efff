"""Others' environments: branches start exactly where they should, restored or replayed."""

from importlib import import_module

import gymnasium
import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.classic_gym import ClassicGym
from tdpo_baselines.common.sampling.gym_roller import GymEnvironment, GymRoller
from tdpo_baselines.harness import registry
from tdpo_baselines.tdpo import devine, tdpo
from tdpo_baselines.tdpo.blocks import Blocks

RESTORED = {"InvertedPendulum-v5": True, "Swimmer-v5": True, "Hopper-v5": True, "Ant-v5": False, "Pendulum-v1": False}


def make(name, **options):
    return registry.make_environment(name, registry.resolve_options(name, options))


def roller_for(environment, gamma=0.99):
    return GymRoller(environment, (8,), gamma)


def policy(roller, gain=1.0):
    return mlp.initial_parameters(roller.layer_sizes, np.random.default_rng(0), gain)


@pytest.mark.parametrize("name", RESTORED)
def test_branch_from_a_state_equals_the_whole_trajectory_bit_for_bit(name):
    environment = make(name, max_episode_steps="40")
    assert environment.is_restored == RESTORED[name]
    roller = roller_for(environment)
    theta, rng = policy(roller), np.random.default_rng(1)
    starts = roller.start_states(rng.random((2, 1)))
    times = np.array([[0, 3, 7], [1, 2, 9]])
    main = roller.rollouts(theta, starts, save_steps=times)
    for b in range(2):
        for i, t in enumerate(times[b]):
            if t >= main.lengths[b]:
                continue
            offsets = 0.1 * rng.standard_normal((1, 2, environment.action_size))
            state = main.saved_states[b : b + 1, i]
            branch = roller.rollouts(theta, state, num_steps=np.array([40 - t]), offsets=offsets)
            delayed = np.concatenate([np.zeros((1, t, environment.action_size)), offsets], axis=1)
            whole = roller.rollouts(theta, starts[b : b + 1], offsets=delayed)
            length = branch.lengths[0]
            assert length == whole.lengths[0] - t
            for key in ("observations", "actions", "rewards"):
                assert np.array_equal(getattr(branch, key)[0, :length], getattr(whole, key)[0, t : t + length])
            assert np.array_equal(main.rewards[b, :t], whole.rewards[0, :t])
            assert branch.replayed_steps[0] == (0 if RESTORED[name] else t)


def test_vines_from_restored_and_from_replayed_states_are_the_same_bit_for_bit():
    restored, replayed = make("Swimmer-v5", max_episode_steps="30"), make("Swimmer-v5", max_episode_steps="30")
    replayed.is_restored = False
    config = tdpo.Config(num_trajectories=3, num_branches=2, exploration_std=0.1, held_steps=2)
    law = devine.TimeLaw("uniform", gamma=0.99, horizon=30, held_steps=2)
    plan = devine.draw_plan(config, generator(0, "plan", 0), np.full(2, 0.1), horizon=30, start_size=1)
    vines = []
    for environment in (restored, replayed):
        roller = roller_for(environment)
        vines.append(devine.roll_vines(config, roller, law, policy(roller), plan))
    for name in set(devine.Vines._fields) - {"num_steps", "even_advantages"}:
        assert np.array_equal(getattr(vines[0], name), getattr(vines[1], name)), name
    assert np.all(vines[1].num_steps > vines[0].num_steps)  # replayed prefixes are counted


def test_exhaustive_devine_is_the_gradient_of_a_mujoco_task():
    environment = make("Swimmer-v5", max_episode_steps="12")
    roller = roller_for(environment)
    config = tdpo.Config(num_trajectories=2, branch_times="all", gamma=0.99, hidden_sizes=(8,), exploration_std=1e-4)
    theta, std = policy(roller, gain=0.3), np.full(2, 1e-4)
    law = devine.TimeLaw("all", gamma=0.99, horizon=12, held_steps=1)
    plan = devine.draw_plan(config, generator(0, "plan", 0), std, horizon=12, start_size=1)
    blocks = Blocks(2, devine.num_branches(config, 12, 2), roller.layer_sizes, Comm())
    g = tdpo.policy_gradient(devine.roll_vines(config, roller, law, theta, plan), theta, std, blocks)
    starts, weights = roller.start_states(plan.starts), devine.discounts(0.99, 12)

    def payoff(parameters):
        return (roller.rollouts(parameters, starts).rewards @ weights).mean()

    expected = np.array([(payoff(theta + e) - payoff(theta - e)) / 2e-4 for e in 1e-4 * np.eye(len(theta))])
    assert np.linalg.norm(g - expected) / np.linalg.norm(expected) < 1e-4


def test_actions_are_limited_and_recorded_as_executed():
    environment = make("Pendulum-v1")
    roller = roller_for(environment)
    theta = policy(roller)
    theta[-1] = 100.0  # output bias
    rollouts = roller.rollouts(theta, roller.start_states(np.array([[0.5]])))
    assert np.all(rollouts.actions == 2.0) and rollouts.lengths[0] == 200


class Unseeded(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        return np.random.random(1), {}  # not from self.np_random

    def step(self, action):
        return np.random.random(1), 0.0, False, False, {}


def test_environment_that_is_not_reproducible_is_refused():
    gymnasium.register("test/Unseeded-v0", entry_point=Unseeded, max_episode_steps=5)
    with pytest.raises(ValueError, match="must draw all its randomness"):
        make("test/Unseeded-v0")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("CartPole-v1", {}, "actions must be a vector of continuous numbers"),
        ("Swimer-v5", {}, "did you mean 'Swimmer-v5'"),
        ("no_such_module:Env-v0", {}, "unknown environment"),
        ("Swimmer-v5", {"fricton": "1"}, "cannot be made with"),
        ("Pendulum-v1", {"max_episode_steps": "none"}, "max_episode_steps"),
    ],
)
def test_what_cannot_run_is_refused_with_a_reason(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


def test_our_own_environments_are_compiled_by_their_gymnasium_id_too():
    assert not isinstance(make("envs:tdpo/PendulumNLR-v0"), GymEnvironment)


def test_classic_gym_is_rolled_out_like_gymnasium():
    """The two libraries' Pendulum-v1 differ in nothing but who maintains it."""
    theta = None
    returns = []
    for name in ("gym:Pendulum-v1", "Pendulum-v1"):
        roller = roller_for(make(name, max_episode_steps=40))
        theta = policy(roller) if theta is None else theta
        returns.append(roller.rollouts(theta, roller.start_states(np.array([[0.3], [0.7]]))).returns)
    np.testing.assert_array_equal(*returns)


def test_environment_of_the_oldest_gym_interface_is_rolled_out():
    registry.check_environment("gym:old_gym:Slide-v0")
    environment = make("gym:old_gym:Slide-v0")
    assert environment.horizon == 25 and not environment.is_restored
    assert make("gym:old_gym:Slide-v0", delay_steps=2).horizon == 25
    roller = roller_for(environment)
    rollouts = roller.rollouts(policy(roller), roller.start_states(np.linspace(0, 0.9, 10)[:, None]))
    assert len(set(rollouts.returns)) == 10 and 1 < rollouts.lengths.min() < rollouts.lengths.max() == 25
    bare = ClassicGym(import_module("old_gym").Slide())
    observation, info = bare.reset(seed=3)
    assert np.array_equal(observation, bare.reset(seed=3)[0]) and info == {}
    assert bare.step(np.zeros(1))[2:] == (False, False, {})


def test_unknown_or_discrete_classic_environments_are_refused():
    with pytest.raises(ValueError, match="unknown environment 'gym:Nope-v1'"):
        registry.check_environment("gym:Nope-v1")
    with pytest.raises(ValueError, match=r"actions must be a vector .* got Discrete\(2\)"):
        make("gym:CartPole-v1")


def test_mujoco_warns_on_standard_error_and_leaves_no_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    environment = registry.make_environment("HalfCheetah-v5", registry.resolve_options("HalfCheetah-v5", {}))
    for num_steps in (1, 3):  # at two times, which it tells
        environment.reset(0)
        for _ in range(num_steps):
            environment.step(np.zeros(environment.action_size))
        environment._env.unwrapped.data.qpos[:] = np.nan
        environment.step(np.zeros(environment.action_size))
    assert capfd.readouterr().err.count("Nan, Inf or huge value") == 1
    assert list(tmp_path.iterdir()) == []


def test_state_loaded_after_another_is_that_state():
    environment = registry.make_environment("HalfCheetah-v5", registry.resolve_options("HalfCheetah-v5", {}))
    environment.reset(1)
    other = environment.save()
    environment.reset(2)
    saved = environment.save()
    environment.load(other)
    environment.load(saved)
    assert np.array_equal(environment.save(), saved)
