import gymnasium
import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.gym_roller import GymEnvironment, GymRoller
from tdpo_baselines.contracts import Roller
from tdpo_baselines.options import registry

IS_RESTORED = {
    "InvertedPendulum-v5": True,
    "Swimmer-v5": True,
    "Hopper-v5": True,
    "Ant-v5": True,
    "Humanoid-v5": True,
    "Pendulum-v1": False,
}


def make(name, **options):
    if name in registry.TWINS:
        options["compiled"] = "false"
    return registry.make_environment(name, registry.resolve_options(name, options))


def initial_policy(roller):
    return mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), 1.0)


@pytest.mark.parametrize("name", IS_RESTORED)
def test_branch_from_a_state_equals_the_whole_trajectory_bit_for_bit(name):
    environment = make(name, max_episode_steps="40")
    roller = GymRoller(environment, (8,), 0.99)
    theta, rng = initial_policy(roller), np.random.default_rng(1)
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
            assert branch.replayed_steps[0] == (0 if IS_RESTORED[name] else t)


def test_roller_satisfies_the_contract():
    assert isinstance(GymRoller(make("Pendulum-v1"), (8,), 0.9), Roller)


def test_actions_are_clipped_and_recorded_as_executed():
    roller = GymRoller(make("Pendulum-v1"), (8,), 0.99)
    theta = initial_policy(roller)
    theta[-1] = 100.0  # output bias
    rollouts = roller.rollouts(theta, roller.start_states(np.array([[0.5]])))
    assert np.all(rollouts.actions == 2.0) and rollouts.lengths[0] == 200
    assert rollouts.is_truncated[0] and not rollouts.is_terminal[0]


def test_rollouts_end_where_the_environment_ends_them():
    roller = GymRoller(make("InvertedPendulum-v5"), (8,), 0.9)
    rollouts = roller.rollouts(initial_policy(roller), roller.start_states(np.array([[0.1], [0.6]])), num_recorded=5)
    assert np.all(rollouts.is_terminal) and not np.any(rollouts.is_truncated)
    assert np.all((rollouts.lengths > 5) & (rollouts.lengths < 1000)) and rollouts.rewards.shape == (2, 5)


def test_returns_are_discounted_and_recording_can_be_limited():
    roller = GymRoller(make("Pendulum-v1", max_episode_steps="30"), (8,), 0.9)
    theta, starts = initial_policy(roller), roller.start_states(np.array([[0.2], [0.8]]))
    full, short = roller.rollouts(theta, starts), roller.rollouts(theta, starts, num_recorded=4)
    np.testing.assert_allclose(full.discounted_returns, full.rewards @ 0.9 ** np.arange(30))
    assert np.array_equal(short.discounted_returns, full.discounted_returns)
    assert np.array_equal(short.observations, full.observations[:, :4])


def test_observation_of_a_state_is_the_one_the_policy_sees():
    roller = GymRoller(make("Pendulum-v1"), (8,), 0.9)
    starts = roller.start_states(np.array([[0.2]]))
    rollouts = roller.rollouts(initial_policy(roller), starts, num_recorded=1)
    assert np.array_equal(roller.observe(starts[0]), rollouts.observations[0, 0])


@pytest.mark.parametrize("fault", ["", "random reward"])
def test_rollout_that_a_branch_cannot_repeat_is_an_error(fault):
    env = gymnasium.make("careless:Careless-v0", disable_env_checker=True, fault=fault, first=70)
    roller = GymRoller(GymEnvironment(env), (8,), 0.9)
    theta, starts, times = initial_policy(roller), roller.start_states(np.array([[0.2]])), np.array([[3, 40, 90]])
    if not fault:
        assert roller.rollouts(theta, starts, save_steps=times).lengths[0] == 100
        return
    with pytest.raises(ValueError, match="rewards after step 40 of an episode differ in a branch"):
        roller.rollouts(theta, starts, save_steps=times)
