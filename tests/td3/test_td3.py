"""TD3 and DDPG: targets, losses and updates against NumPy, the replay against a list, and that they learn."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.dpg import Networks, compile_gradients, followed
from tdpo_baselines.common.learners.replay_learner import action_range
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.replay import Columns, Replay
from tdpo_baselines.ddpg import ddpg
from tdpo_baselines.td3 import td3

SMALL = {"hidden_sizes": (5,), "batch_size": 12, "buffer_size": 1000, "random_timesteps": 60, "steps_per_round": 30}
SHORT = {"updates_per_round": 7, "rounds_per_iteration": 2}


def make_learner(algorithm=td3, kernel=None, **options):
    config = algorithm.Config.from_values({**SMALL, **SHORT, **options})
    kernel = kernel or linear_quadratic.kernel()
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma, config.network_style(kernel))
    return algorithm.Learner(config, roller, Comm(), seed=1)


def in_numpy(learner):
    """Forward passes of the learner's networks, with actions in units of their range."""
    O, *hidden, A = learner._roller.layer_sizes
    actor = mlp.Forward((O, *hidden, A), mlp.Style("relu", learner.config.use_tanh_output))
    critic = mlp.Forward((O + A, *hidden, 1), mlp.Style("relu"))

    def values(critics, observations, actions):
        inputs = np.concatenate([observations, actions], axis=1)
        return [critic(one, inputs)[:, 0] for one in np.split(critics, learner._tricks.num_critics)]

    return actor, values


def random_problem(learner):
    rng = np.random.default_rng(0)
    now = learner._now.networks
    networks = Networks(*(value + rng.normal(size=value.shape) for value in now))
    rows = rng.normal(size=(12, learner._columns.width))
    rows[:, learner._columns.is_terminal] = rng.random(12) < 0.3
    noise = np.clip(rng.normal(size=(12, learner._roller.layer_sizes[-1])), -0.5, 0.5)
    return networks, rows, noise


@pytest.mark.parametrize("use_tanh", [True, False])
@pytest.mark.parametrize("is_limited", [True, False])
@pytest.mark.parametrize("algorithm", [td3, ddpg])
def test_targets_and_losses_equal_plain_formulas(algorithm, is_limited, use_tanh):
    tf = load_tensorflow()
    kernel = linear_quadratic.limited_kernel() if is_limited else linear_quadratic.kernel()
    learner = make_learner(algorithm, kernel, use_tanh_output=use_tanh, gamma=0.9)
    networks, rows, noise = random_problem(learner)
    actor, values = in_numpy(learner)
    columns, formulas = learner._columns, learner._formulas
    after = rows[:, columns.next_observation]
    actions = actor(networks.target_actor, after)
    assert use_tanh or np.abs(actions).max() > 1
    actions += noise if algorithm is td3 else 0
    actions = np.clip(actions, -1, 1) if is_limited else actions
    least = np.min(values(networks.target_critics, after, actions), axis=0)
    targets = rows[:, columns.reward] + 0.9 * (1 - rows[:, columns.is_terminal]) * least
    tensors = Networks(*map(tf.constant, networks)), tf.constant(rows), tf.constant(noise)
    assert formulas.targets(*tensors).numpy() == pytest.approx(targets, rel=1e-9)
    before = rows[:, columns.observation]
    errors = [value - targets for value in values(networks.critics, before, rows[:, columns.action])]
    assert len(errors) == (2 if algorithm is td3 else 1)
    loss = formulas.critic_loss(tensors[0].critics, *tensors).numpy()
    assert loss == pytest.approx(sum(np.mean(error**2) for error in errors), rel=1e-9)
    value = values(networks.critics, before, actor(networks.actor, before))[0]
    assert formulas.actor_loss(tensors[0].actor, tensors[0].critics, tensors[1]).numpy() == pytest.approx(-value.mean())


def test_gradients_equal_finite_differences():
    tf = load_tensorflow()
    learner = make_learner(ddpg, critic_l2=0.05)
    formulas = learner._formulas
    networks, rows, noise = random_problem(learner)
    tensors = Networks(*map(tf.constant, networks)), tf.constant(rows), tf.constant(noise)
    critic_gradient, actor_gradient = compile_gradients(formulas)
    losses = {
        "critics": (lambda at: formulas.critic_loss(at, *tensors), critic_gradient(*tensors)),
        "actor": (
            lambda at: formulas.actor_loss(at, tensors[0].critics, tensors[1]),
            actor_gradient(*tensors[:2]),
        ),
    }
    rng, h = np.random.default_rng(1), 1e-6
    for name, (loss, gradient) in losses.items():
        at = getattr(networks, name)
        v = rng.normal(size=at.shape)
        slope = (loss(tf.constant(at + h * v)) - loss(tf.constant(at - h * v))).numpy() / (2 * h)
        assert slope == pytest.approx(gradient.numpy() @ v, rel=1e-5)


def test_targets_follow_their_networks():
    networks = followed(Networks(np.full(3, 2.0), np.full(4, 5.0), np.zeros(3), np.ones(4)), 0.25)
    assert np.all(networks.target_actor == 0.5) and np.all(networks.target_critics == 2.0)
    assert np.all(networks.actor == 2.0) and np.all(networks.critics == 5.0)


@pytest.mark.parametrize("algorithm", [td3, ddpg])
def test_updates_at_once_equal_updates_step_by_step(algorithm):
    """The first in one float32 loop, the second a gradient at a time: as near as float32 is."""
    learner, other = make_learner(algorithm, random_timesteps=0), make_learner(algorithm, random_timesteps=0)
    learner.iterate(0, 0)
    other.load_state(learner.state())
    minibatches = learner._minibatches(5, 0)
    at_once = learner._all_at_once(*minibatches)
    other._compiled = None
    other._step_by_step([minibatches])
    tf = load_tensorflow()
    for mine, its in zip(tf.nest.flatten(at_once), tf.nest.flatten(other._now)):
        assert np.asarray(mine) == pytest.approx(np.asarray(its), rel=1e-3, abs=1e-4)
    assert at_once.critic_adam.count == learner._now.critic_adam.count + 7


def test_actor_and_targets_wait_for_the_policy_delay():
    learner = make_learner(td3, policy_delay=4, updates_per_round=3, rounds_per_iteration=1, random_timesteps=0)
    first = learner._now.networks
    learner.iterate(0, 0)  # 3 updates
    assert np.array_equal(np.float32(first.actor), learner.theta)
    assert np.array_equal(np.float32(first.target_critics), learner._now.networks.target_critics)
    assert not np.array_equal(np.float32(first.critics), learner._now.networks.critics)
    learner.iterate(1, 30)  # 6
    assert learner._now.actor_adam.count == 1 and not np.array_equal(np.float32(first.actor), learner.theta)


def test_actor_and_critics_learn_at_their_own_rates():
    """Adam's first step is its learning rate, in every parameter with a gradient that is not tiny."""
    options = {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-2, "updates_per_round": 1, "batch_size": 60}
    learner = make_learner(ddpg, rounds_per_iteration=1, random_timesteps=0, steps_per_round=60, **options)
    before = learner._now.networks
    learner.iterate(0, 0)
    for name, rate in {"actor": 1e-3, "critics": 1e-2}.items():
        step = np.abs(getattr(learner._now.networks, name) - getattr(before, name))
        assert np.max(step) == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("noise", ["gaussian", "ou", "pink"])
def test_noise_of_evaluation_is_that_of_training(noise):
    kernel = linear_quadratic.limited_kernel()
    config = td3.Config(noise=noise, noise_std=0.3, noise_bandwidth=0.5)
    drawn = td3.exploration(config, kernel, {}, np.random.default_rng(0), (4000, 3, 2))
    assert drawn.shape == (4000, 3, 2)
    np.testing.assert_allclose(drawn.std(axis=(0, 1)), 0.3 * action_range(kernel)[1], rtol=0.05)


def test_replay_keeps_the_latest_transitions_of_every_stream():
    replay, kept = Replay(2, 10, 3), []
    rng = np.random.default_rng(0)
    for length in (4, 7, 3, 25, 6):
        rows = rng.normal(size=(2, length, 3)).astype(np.float32)
        replay.add(rows)
        kept = [*kept, *rows.transpose(1, 0, 2)][-10:]
        assert replay.num_filled == len(kept)
        for stream in range(2):
            everything = replay.sample(stream, np.arange(len(kept)))
            assert sorted(map(tuple, everything)) == sorted(tuple(row[stream]) for row in kept)
        np.testing.assert_array_equal(replay.latest(3), np.array(kept[-3:]).transpose(1, 0, 2))


def test_transitions_have_the_ends_of_the_environment_and_executed_actions_in_units_of_their_range():
    learner = make_learner(
        td3, linear_quadratic.limited_kernel(), random_timesteps=0, noise_std=2.0, updates_per_round=0
    )
    for i in range(10):
        learner.iterate(i, 10**6)
    columns = learner._columns
    rows = learner._replay.filled[0].astype(np.float64)
    actions = rows[:, columns.action]
    assert np.abs(actions).max() == 1 and np.mean(np.abs(actions) == 1) > 0.2  # large noise, limited
    low, high = linear_quadratic.LOW, linear_quadratic.HIGH
    cost = linear_quadratic.cost(rows[:, columns.observation], (low + high) / 2 + (high - low) / 2 * actions)
    assert rows[:, columns.reward] == pytest.approx(-cost, rel=1e-4, abs=1e-5)
    is_terminal = rows[:, columns.is_terminal] == 1
    is_outside = np.abs(rows[:, columns.next_observation]).max(axis=1) > 1.2
    np.testing.assert_array_equal(is_terminal, is_outside)
    assert 5 < is_terminal.sum() < len(rows) / 2


def test_exploration_is_noise_in_units_of_the_range_and_random_actions_fill_it():
    learner = make_learner(td3, linear_quadratic.limited_kernel(), noise_std=0.3, steps_per_round=4000)
    scale = (linear_quadratic.HIGH - linear_quadratic.LOW) / 2
    theta, offsets = learner._exploration(0, False)
    assert np.array_equal(theta, learner.theta) and offsets[0].std(axis=0) == pytest.approx(0.3 * scale, rel=0.1)
    theta, offsets = learner._exploration(0, True)
    assert not theta.any() and np.abs(offsets[0]).max(axis=0) == pytest.approx(scale, rel=0.01)


def test_no_update_is_made_while_actions_are_random_or_transitions_too_few():
    learner = make_learner(td3, random_timesteps=119)
    assert [learner.iterate(i, 60 * i)["num_updates"] for i in range(3)] == [0, 7, 21]
    learner = make_learner(td3, random_timesteps=0, batch_size=100)
    assert [learner.iterate(i, 60 * i)["num_updates"] for i in range(2)] == [0, 7]


def test_minibatches_are_of_the_whole_replay_with_clipped_noise():
    learner = make_learner(
        td3, updates_per_round=100, target_noise_std=0.4, target_noise_clip=0.5, random_timesteps=10**6
    )
    for i in range(3):
        learner.iterate(i, 0)
    rows, noise = learner._minibatches(0, 0)
    kept = [tuple(row) for row in learner._replay.filled[0]]
    drawn = [kept.index(tuple(row)) for row in rows.reshape(-1, rows.shape[2])]
    assert np.bincount(drawn, minlength=180).max() < 25 and len(set(drawn)) > 170  # 1200 draws of 180
    assert np.abs(noise).max() == 0.5 and 0.25 < noise.std() < 0.36


def test_targets_go_their_part_of_the_way_after_every_update_of_the_actor():
    learner = make_learner(ddpg, random_timesteps=0, target_rate=0.25, rounds_per_iteration=1, updates_per_round=1)
    before = learner._now.networks
    learner.iterate(0, 0)
    after = learner._now.networks
    for target, network in (("target_actor", "actor"), ("target_critics", "critics")):
        old, new = getattr(before, target), getattr(after, network)
        assert getattr(after, target) == pytest.approx(old + 0.25 * (new - old), rel=1e-4, abs=1e-6)
        assert not np.array_equal(np.float32(old), new)


def test_transitions_are_those_of_the_segments_with_time_limits_not_terminal():
    learner = make_learner(td3, use_tanh_output=False, random_timesteps=10**6, noise="gaussian")
    learner.iterate(0, 0)
    O, A = learner._roller.layer_sizes[0], learner._roller.layer_sizes[-1]
    columns = Columns.of(O, A)
    rows = learner._replay.filled[0].astype(np.float64)
    assert len(rows) == 60 and np.all(rows[:, columns.is_terminal] == 0)
    goes_on = np.all(rows[1:, columns.observation] == rows[:-1, columns.next_observation], axis=1)
    num_ends = 60 // learner._roller.horizon
    assert (~goes_on).sum() in (num_ends, num_ends - 1)
    scale = np.array(learner._roller.style.scale)
    cost = linear_quadratic.cost(rows[:, columns.observation], rows[:, columns.action] * scale)
    assert rows[:, columns.reward] == pytest.approx(-cost, rel=1e-5)
    assert np.abs(rows[:, columns.action]).max() <= 1 and rows[:, columns.action].std() == pytest.approx(3**-0.5, 0.15)


@pytest.mark.parametrize(("algorithm", "options"), [(td3, {"noise": "ou"}), (ddpg, {"parameter_noise_std": 0.3})])
def test_continued_from_its_state_a_run_is_the_same(algorithm, options):
    learner, other = make_learner(algorithm, **options), make_learner(algorithm, **options)
    rows = [learner.iterate(i, 60 * i) for i in range(2)]
    saved = {name: np.array(value) for name, value in learner.state().items()}
    rows += [learner.iterate(i, 60 * i) for i in range(2, 4)]
    other.load_state(saved)
    assert [other.iterate(i, 60 * i) for i in range(2, 4)] == rows[2:]
    np.testing.assert_array_equal(learner.theta, other.theta)


def test_parameter_noise_adapts_until_actions_change_as_much_as_asked_for():
    learner = make_learner(ddpg, parameter_noise_std=0.05, rounds_per_iteration=100, updates_per_round=0)
    for i in range(4):
        learner.iterate(i, 10**6)
    observations = learner._replay.latest(30)[..., learner._columns.observation].astype(np.float64)
    changes = []
    for number in range(1000, 1020):
        perturbed, offsets = learner._exploration(number, False)
        change = learner._forward(perturbed, observations) - learner._forward(learner.theta, observations)
        changes.append(np.sqrt(np.mean((change / learner._roller.style.scale) ** 2)))
        assert not offsets.any()
    assert np.median(changes) == pytest.approx(0.05, rel=0.4)


@pytest.mark.parametrize("algorithm", [td3, ddpg])
def test_it_approaches_the_optimum_of_the_linear_quadratic_toy(algorithm):
    options = {"hidden_sizes": (32,), "batch_size": 64, "gamma": 0.95, "use_tanh_output": False}
    learner = make_learner(algorithm, **options, updates_per_round=30, rounds_per_iteration=20, noise_std=0.3)
    for i in range(15):
        learner.iterate(i, 600 * i)
    starts = learner._roller.start_states(np.random.default_rng(5).random((400, 2)))
    mean_cost = -learner._roller.rollouts(learner.theta, starts).rewards.sum(axis=1).mean()
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert mean_cost < 1.3 * best < linear_quadratic.mean_cost(np.zeros((2, 2)))
