import gymnasium
import numpy as np
import pytest

from envs.action_delay import ActionDelay, delay_actions
from envs.leg import kernels
from envs.pendulum import long, nlr
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.gym_roller import GymRoller
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.options import registry


def test_no_delay_is_the_kernel_itself():
    kernel = long.long_kernel()
    assert delay_actions(kernel, 0) is kernel


@pytest.mark.parametrize("delay", [1, 3])
@pytest.mark.parametrize("make", [nlr.nlr_kernel, kernels.simple_kernel])
def test_delayed_kernel_takes_each_action_late(make, delay):
    plain = make()
    late = delay_actions(plain, delay)
    states = [np.zeros(kernel.state_size) for kernel in (plain, late)]
    start = np.full(plain.start_size, 0.3)
    for kernel, state in zip((plain, late), states):
        kernel.reset(kernel.params, start, state)
    actions = np.random.default_rng(0).normal(0, 30, (20, plain.action_size))
    shifted = np.concatenate([np.zeros((delay, plain.action_size)), actions])
    for action, old in zip(actions, shifted):
        expected = plain.step(plain.params, states[0], old.copy())
        assert late.step(late.params, states[1], action.copy()) == expected
        assert np.array_equal(states[0], states[1][: plain.state_size])


def test_delayed_kernel_clips_the_action_it_records():
    late = delay_actions(nlr.nlr_kernel(), 2)
    state, action = np.zeros(late.state_size), np.array([1000.0])
    late.reset(late.params, np.zeros(2), state)
    late.step(late.params, state, action)
    assert action[0] == nlr.MAX_TORQUE


def test_branch_of_a_delayed_kernel_equals_the_replay_bit_for_bit():
    kernel = registry.make_environment("pendulum-20hz", registry.resolve_options("pendulum-20hz", {"delay_steps": "4"}))
    roller = KernelRoller(kernel, (8,), gamma=0.99)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), 0.5)
    starts = roller.start_states(np.array([[0.2, 0.7]]))
    offsets = np.zeros((1, 61, 1))
    offsets[0, 60] = 0.7
    main = roller.rollouts(theta, starts, save_steps=np.array([[60]]))
    branch = roller.rollouts(theta, main.saved_states[:, 0], num_steps=np.array([140]), offsets=offsets[:, 60:])
    whole = roller.rollouts(theta, starts, offsets=offsets)
    assert np.array_equal(branch.rewards[0, :140], whole.rewards[0, 60:])
    assert not np.array_equal(main.rewards, whole.rewards)


@pytest.mark.parametrize("delay", [0, 2])
def test_wrapper_delays_any_environment_as_the_kernel_does(delay):
    theirs = ActionDelay(gymnasium.make("Pendulum-v1"), delay)
    ours = gymnasium.make("envs:tdpo/PendulumLong-v0", delay_steps=delay)
    theirs.reset(seed=3)
    ours.reset(seed=3)
    for action in np.random.default_rng(1).uniform(-2, 2, (50, 1)):
        _, reward, *_ = theirs.step(action)
        _, expected, *_ = ours.step(action)
        assert reward == pytest.approx(expected, abs=1e-9)


def test_branch_of_a_delayed_mujoco_environment_equals_the_whole_trajectory():
    options = registry.resolve_options("InvertedPendulum-v5", {"delay_steps": "2", "compiled": "false"})
    environment = registry.make_environment("InvertedPendulum-v5", options)
    roller = GymRoller(environment, (8,), 0.99)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), 1.0)
    starts = roller.start_states(np.array([[0.5]]))
    main = roller.rollouts(theta, starts, save_steps=np.array([[5]]))
    branch = roller.rollouts(theta, main.saved_states[:, 0])
    assert branch.lengths[0] == main.lengths[0] - 5
    assert np.array_equal(branch.rewards[0, : branch.lengths[0]], main.rewards[0, 5 : main.lengths[0]])
    assert np.array_equal(branch.observations[0, : branch.lengths[0]], main.observations[0, 5 : main.lengths[0]])


def test_delay_of_a_range_is_drawn_with_the_start():
    plain, late = long.long_kernel(), delay_actions(long.long_kernel(), (1, 3))
    assert late.start_size == plain.start_size + 1
    for u, delay in ((0.0, 1), (0.34, 2), (0.99, 3), (1.0, 3)):
        fixed = delay_actions(plain, delay)
        start = np.full(plain.start_size, 0.3)
        states = [np.zeros(kernel.state_size) for kernel in (fixed, late)]
        fixed.reset(fixed.params, start, states[0])
        late.reset(late.params, np.append(start, u), states[1])
        for action in np.random.default_rng(0).normal(size=(20, 1)):
            rewards = [k.step(k.params, state, action.copy()) for k, state in zip((fixed, late), states)]
            assert rewards[0] == rewards[1]


def test_gymnasium_environment_takes_no_range():
    with pytest.raises(ValueError, match="only compiled environments take a range"):
        ActionDelay(gymnasium.make("Pendulum-v1"), (0, 2))


def test_bad_delay_names_the_field():
    for delay in (-1, 1.5, True):
        with pytest.raises(ValueError, match="delay_steps must be a (whole )?number"):
            delay_actions(long.long_kernel(), delay)
        with pytest.raises(ValueError, match="delay_steps must be a (whole )?number"):
            ActionDelay(gymnasium.make("Pendulum-v1"), delay)
