"""PPO's loss against plain formulas in TensorFlow and their gradients, and that it learns."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.actor_critic import Batch
from tdpo_baselines.common.networks import mlp, tf_mlp
from tdpo_baselines.common.networks.templates import compile_template
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.ppo1 import ppo1
from tdpo_baselines.storage import checkpoint

SIZES = (4, 6, 2)


VALUE_SIZES = (4, 6, 1)
NUM_PARAMETERS = mlp.num_parameters(SIZES) + 2 + mlp.num_parameters(VALUE_SIZES)


def loss_in_tensorflow(parameters, rows, config):
    """Return the mean loss."""
    tf, P = load_tensorflow(), mlp.num_parameters(SIZES)
    theta, log_std, value_theta = parameters[:P], parameters[P : P + 2], parameters[P + 2 :]
    observations, taken, old, advantages, targets = np.split(rows, [4, 6, 7, 8], axis=1)
    z = (taken - tf_mlp.apply(theta, observations, SIZES)) / tf.exp(log_std)
    ratio = tf.exp(tf.reduce_sum(-(z**2) / 2 - log_std, axis=1) - old[:, 0])
    clipped = tf.clip_by_value(ratio, 1 - config.clip, 1 + config.clip)
    gain = tf.minimum(ratio * advantages[:, 0], clipped * advantages[:, 0])
    error = tf_mlp.apply(value_theta, observations, VALUE_SIZES)[:, 0] - targets[:, 0]
    terms = -gain + config.value_coefficient * error**2 - config.entropy_coefficient * tf.reduce_sum(log_std)
    return tf.reduce_mean(terms)


def differentiate(parameters, rows, config, decay=1.0):
    """Return our mean loss and gradient."""
    gradient = np.empty(len(parameters), np.float32)
    single = np.float32(parameters), np.float32(rows)
    loss = compile_template(ppo1.differentiate)(*single, decay, ppo1.make_problem(config, SIZES), gradient)
    return loss, gradient


def test_loss_and_its_gradient_are_those_of_plain_formulas():
    tf = load_tensorflow()
    config = ppo1.Config(entropy_coefficient=0.1, clip=0.3)
    rng = np.random.default_rng(0)
    policy = mlp.init_parameters(SIZES, rng, 1.0)
    value = mlp.init_parameters(VALUE_SIZES, rng, 1.0)
    parameters = np.concatenate([policy, np.log([0.5, 2.0]), value])
    rows = rng.normal(size=(200, 9))
    rows[:, 6] = -0.5 * rng.random(200) * 4 - 0.5  # log probabilities near enough: some ratios clipped, some not
    with tf.GradientTape() as tape:
        at = tf.constant(parameters)
        tape.watch(at)
        expected = loss_in_tensorflow(at, rows, config)
    slopes = tape.gradient(expected, at).numpy()
    loss, gradient = differentiate(parameters, rows, config)
    assert loss == pytest.approx(expected.numpy(), rel=1e-5)
    assert np.linalg.norm(gradient - slopes) < 1e-5 * np.linalg.norm(slopes)


def test_clipped_ratios_give_no_gradient_to_the_policy():
    config = ppo1.Config(value_coefficient=0.0)
    rows = np.zeros((1, 9))
    for old, advantage, is_clipped in ((-1.0, 1.0, True), (-1.0, -1.0, False), (1.0, -1.0, True), (1.0, 1.0, False)):
        rows[0, 4:8] = 0.1, 0.1, old, advantage  # new log probability -0.01: ratio e or 1/e
        _, gradient = differentiate(np.zeros(NUM_PARAMETERS), rows, config)
        assert np.all(gradient[: mlp.num_parameters(SIZES)] == 0) == is_clipped


def test_clip_decays_with_is_clip_decayed():
    rows = np.zeros((1, 9))
    rows[0, 4:8] = 0.1, 0.1, -0.16, 1.0  # ratio e^0.15
    configs = ppo1.Config(), ppo1.Config(is_clip_decayed=True, decay_timesteps=9)
    gains = [-differentiate(np.zeros(NUM_PARAMETERS), rows, config, decay=0.5)[0] for config in configs]
    assert gains == pytest.approx([np.exp(0.15), 1.1])


def make_learner(kernel=None, **options):
    values = {"num_trajectories": 3, "steps_per_trajectory": 40, "hidden_sizes": (6,), "minibatch_size": 30}
    config = ppo1.Config.from_values({**values, **options})
    roller = KernelRoller(kernel or linear_quadratic.kernel(), config.hidden_sizes, config.gamma)
    return ppo1.Learner(config, roller, Comm(), seed=1)


def test_old_log_probabilities_are_those_of_the_gaussian_but_for_a_constant():
    offsets, std = np.random.default_rng(0).normal(size=(2, 3, 2)), np.array([0.5, 2.0])
    batch = Batch(None, None, offsets, None, None)
    density = np.exp(-0.5 * (offsets / std) ** 2) / std
    assert np.exp(ppo1.old_log_probabilities(batch, np.log(std))) == pytest.approx(density.prod(axis=2))


def test_schedules_follow_the_global_count_of_timesteps():
    learner = make_learner(decay_timesteps=1000)
    assert [ppo1.decay_at(steps, learner.config) for steps in (0, 250, 1000, 2000)] == [1.0, 0.75, 0.0, 0.0]
    assert ppo1.decay_at(10**9, ppo1.Config()) == 1.0
    learner.iterate(0, 0)
    assert learner.iterate(1, 900)["step_norm"] > 0
    assert learner.iterate(2, 1000)["step_norm"] == pytest.approx(0, abs=1e-5)  # float32


def test_ppo1_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"num_trajectories": 8, "steps_per_trajectory": 90, "hidden_sizes": (), "gamma": 0.95, "output_gain": 0.0}
    learner = make_learner(**options, initial_std=0.5, minibatch_size=90, learning_rate=3e-3)
    for i in range(120):
        learner.iterate(i, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.25 * best


def test_continued_from_a_checkpoint_before_the_first_step_of_adam_a_run_is_the_same(tmp_path):
    """Use minibatches that are shared in blocks."""
    learner, other = (make_learner(steps_per_trajectory=110, minibatch_size=300) for _ in range(2))
    learner.iterate(0, 0)
    checkpoint.save(tmp_path, 1, learner.state(), keep=1)
    other.load_state(checkpoint.load_newest(tmp_path))
    rows = [[one.iterate(i, 0) for i in range(1, 3)] for one in (learner, other)]
    assert rows[0] == rows[1] and np.array_equal(learner.theta, other.theta)


def test_first_ratios_are_one():
    """The first gradient of an update is that of the advantages alone: old and new probabilities agree."""
    learner = make_learner(num_epochs=1, minibatch_size=120, learning_rate=1e-12, value_coefficient=0.0)
    learner.iterate(0, 0)
    row = learner.iterate(1, 0)
    assert row["loss"] == pytest.approx(0.0, abs=1e-5)  # minus the mean of standardised advantages
    assert row["kl"] == pytest.approx(0.0, abs=1e-9) and row["surrogate_gain"] == pytest.approx(0.0, abs=1e-6)


def test_minibatches_are_given_by_their_size_or_their_number():
    assert ppo1.Config().steps_per_gradient == 64
    by_number = ppo1.Config(num_trajectories=3, steps_per_trajectory=100, num_minibatches=7)
    assert by_number.steps_per_gradient == 42 and ppo1.Config(**by_number.to_values()) == by_number
    with pytest.raises(ValueError, match="exclude each other, got 64 and 7; pass --set minibatch_size=none or --set"):
        ppo1.Config(minibatch_size=64, num_minibatches=7)
    learner = make_learner(minibatch_size=None, num_minibatches=7, num_epochs=2)  # of 120 steps
    for i in range(2):
        learner.iterate(i, 0)
    assert learner.adam.count == 14


def test_large_clip_never_clips():
    rows = np.zeros((1, 9))
    rows[0, 4:8] = 0.1, 0.1, -5.0, 1.0  # ratio e^4.99
    loss, _ = differentiate(np.zeros(NUM_PARAMETERS), rows, ppo1.Config(clip=200))
    assert -loss == pytest.approx(np.exp(4.99))


def test_decaying_clip_needs_its_end():
    with pytest.raises(ValueError, match="is_clip_decayed needs decay_timesteps; pass --set decay_timesteps"):
        ppo1.check(ppo1.Config(is_clip_decayed=True), linear_quadratic.kernel(), 1)


def test_run_that_outlasts_the_learning_rate_is_remarked():
    config = ppo1.Config(decay_timesteps=1e5)
    assert config.remarks(None, 10**5) == []
    assert "pass --set decay_timesteps=200000" in config.remarks(None, 2 * 10**5)[0]
