import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.contracts import Environment, Roller


@pytest.fixture(scope="module")
def roller():
    return KernelRoller(linear_quadratic.kernel(), (5,), gamma=0.9)


@pytest.fixture(scope="module")
def theta(roller):
    return mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), output_gain=1.0)


def test_a_rollout_does_not_depend_on_its_companions(roller, theta):
    rng = np.random.default_rng(1)
    states, num_steps = roller.start_states(rng.random((7, 2))), np.array([30, 1, 0, 17, 30, 2, 5])
    offsets = rng.standard_normal((7, 3, 2))
    together = roller.rollouts(theta, states, num_steps=num_steps, offsets=offsets)
    for b in range(7):
        alone = roller.rollouts(theta, states[b : b + 1], num_steps=num_steps[b : b + 1], offsets=offsets[b : b + 1])
        for name in ("observations", "actions", "rewards", "discounted_returns", "lengths", "final_states"):
            assert np.array_equal(getattr(together, name)[b], getattr(alone, name)[0]), name
    assert together.lengths.tolist() == num_steps.tolist()


def test_returns_are_discounted_and_recording_can_be_limited(roller, theta):
    states = roller.start_states(np.random.default_rng(2).random((3, 2)))
    full, short = roller.rollouts(theta, states), roller.rollouts(theta, states, num_recorded=4)
    np.testing.assert_allclose(full.discounted_returns, full.rewards @ 0.9 ** np.arange(30))
    assert np.array_equal(short.discounted_returns, full.discounted_returns)
    assert np.array_equal(short.observations, full.observations[:, :4])


def test_states_are_saved_before_the_steps_asked_for(roller, theta):
    states = roller.start_states(np.random.default_rng(3).random((2, 2)))
    rollouts = roller.rollouts(theta, states, save_steps=np.array([[0, 5, 5], [1, 2, 29]]))
    assert np.array_equal(rollouts.saved_states[0, 0], states[0])
    assert np.array_equal(rollouts.saved_states[0, 1], rollouts.saved_states[0, 2])
    assert np.array_equal(rollouts.saved_states[1, 2], rollouts.observations[1, 29])  # the toy observes its state


def test_states_given_are_not_changed(roller, theta):
    states = roller.start_states(np.full((1, 2), 0.9))
    before = states.copy()
    roller.rollouts(theta, states)
    assert np.array_equal(states, before)


def test_no_rollouts_are_no_work(roller, theta):
    assert roller.rollouts(theta, np.zeros((0, 2))).discounted_returns.shape == (0,)


def test_kernel_and_roller_satisfy_their_contracts(roller):
    assert isinstance(roller, Roller) and isinstance(roller.environment, Environment)


def test_rollout_that_leaves_the_box_is_terminal_and_stops_there(theta):
    roller = KernelRoller(linear_quadratic.ending_kernel(), (5,), gamma=0.9)
    rollouts = roller.rollouts(theta, roller.start_states(np.array([[0.5, 0.5], [1.0, 1.0]])))
    assert rollouts.is_terminal.tolist() == (rollouts.lengths < 30).tolist() == [False, True]
    length = rollouts.lengths[1]
    assert np.abs(rollouts.final_states[1]).max() > 1.2 and np.all(np.abs(rollouts.observations[1]) <= 1.2)
    assert rollouts.rewards[1, :length].all() and not rollouts.rewards[1, length:].any()


def test_observation_of_a_state_is_the_one_the_policy_sees(roller, theta):
    states = roller.start_states(np.full((1, 2), 0.9))
    assert np.array_equal(roller.observe(states[0]), roller.rollouts(theta, states).observations[0, 0])


def test_policies_act_in_their_own_rollouts_as_if_alone(roller):
    rng = np.random.default_rng(4)
    thetas, states = rng.normal(size=(3, roller.num_parameters)), roller.start_states(rng.random((6, 2)))
    num_steps = np.array([30, 4, 30, 1, 7, 30])
    together = roller.rollouts(thetas, states, num_steps=num_steps)
    for n in range(3):
        pair = slice(2 * n, 2 * n + 2)
        alone = roller.rollouts(thetas[n], states[pair], num_steps=num_steps[pair])
        assert np.array_equal(together.actions[pair], alone.actions)
        assert np.array_equal(together.discounted_returns[pair], alone.discounted_returns)
    with pytest.raises(ValueError, match="5 rollouts cannot be shared equally among 3 policies"):
        roller.rollouts(thetas, states[:5])
