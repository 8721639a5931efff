"""PPO's loss against a plain formula and finite differences, and that it learns."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.actor_critic import Batch
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.ppo1 import ppo1
from tdpo_baselines.storage import checkpoint

SIZES = (4, 6, 2)


def loss_in_numpy(parameters, rows, config):
    P = mlp.num_parameters(SIZES)
    theta, log_std, value_theta = parameters[:P], parameters[P : P + 2], parameters[P + 2 :]
    observations, taken, old, advantages, targets = np.split(rows, [4, 6, 7, 8], axis=1)
    z = (taken - mlp.Forward(SIZES)(theta, observations)) / np.exp(log_std)
    ratio = np.exp(np.sum(-(z**2) / 2 - log_std, axis=1) - old[:, 0])
    clipped = np.clip(ratio, 1 - config.clip, 1 + config.clip)
    gain = np.minimum(ratio * advantages[:, 0], clipped * advantages[:, 0])
    error = mlp.Forward((4, 6, 1))(value_theta, observations)[:, 0] - targets[:, 0]
    return -gain + config.value_coefficient * error**2 - config.entropy_coefficient * log_std.sum()


def test_loss_and_its_gradient_equal_a_plain_formula_and_finite_differences():
    tf = load_tensorflow()
    config = ppo1.Config(entropy_coefficient=0.1, clip=0.3)
    rng = np.random.default_rng(0)
    policy = mlp.init_parameters(SIZES, rng, 1.0)
    value = mlp.init_parameters((4, 6, 1), rng, 1.0)
    parameters = np.concatenate([policy, np.log([0.5, 2.0]), value])
    rows = rng.normal(size=(200, 9))
    rows[:, 6] = -0.5 * rng.random(200) * 4 - 0.5  # log probabilities near enough: some ratios clipped, some not
    plain = loss_in_numpy(parameters, rows, config)
    with tf.GradientTape() as tape:
        at = tf.constant(parameters)
        tape.watch(at)
        losses = ppo1.loss(at, tf.constant(rows), 1.0, config=config, sizes=SIZES)
        mean = tf.reduce_mean(losses)
    assert losses.numpy() == pytest.approx(plain, rel=1e-9, abs=1e-9)
    gradient, h = tape.gradient(mean, at).numpy(), 1e-6
    for _ in range(4):
        v = rng.normal(size=len(parameters))
        up, down = (loss_in_numpy(parameters + sign * h * v, rows, config).mean() for sign in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(gradient @ v, rel=1e-4)


def test_clipped_ratios_give_no_gradient_to_the_policy():
    tf = load_tensorflow()
    config = ppo1.Config(value_coefficient=0.0)
    P = mlp.num_parameters(SIZES)
    parameters = np.zeros(P + 2 + mlp.num_parameters((4, 6, 1)))
    rows = np.zeros((1, 9))
    for old, advantage, is_clipped in ((-1.0, 1.0, True), (-1.0, -1.0, False), (1.0, -1.0, True), (1.0, 1.0, False)):
        rows[0, 4:8] = 0.1, 0.1, old, advantage  # new log probability -0.01: ratio e or 1/e
        with tf.GradientTape() as tape:
            at = tf.constant(parameters)
            tape.watch(at)
            total = tf.reduce_sum(ppo1.loss(at, tf.constant(rows), 1.0, config=config, sizes=SIZES))
        assert np.all(tape.gradient(total, at).numpy()[:P] == 0) == is_clipped


def test_clip_decays_with_is_clip_decayed():
    tf = load_tensorflow()
    rows = np.zeros((1, 9))
    rows[0, 4:8] = 0.1, 0.1, -0.16, 1.0  # ratio e^0.15
    parameters = tf.zeros(mlp.num_parameters(SIZES) + 2 + mlp.num_parameters((4, 6, 1)), tf.float64)
    gains = [
        -float(ppo1.loss(parameters, tf.constant(rows), tf.constant(0.5, tf.float64), config=config, sizes=SIZES)[0])
        for config in (ppo1.Config(), ppo1.Config(is_clip_decayed=True, decay_timesteps=9))
    ]
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
    """Use minibatches that are shared in blocks, where Adam is in double precision."""
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
    tf, rows = load_tensorflow(), np.zeros((1, 9))
    rows[0, 4:8] = 0.1, 0.1, -5.0, 1.0  # ratio e^4.99
    parameters = tf.zeros(mlp.num_parameters(SIZES) + 2 + mlp.num_parameters((4, 6, 1)), tf.float64)
    gain = -float(ppo1.loss(parameters, tf.constant(rows), 1.0, config=ppo1.Config(clip=200), sizes=SIZES)[0])
    assert gain == pytest.approx(np.exp(4.99))


def test_decaying_clip_needs_its_end():
    with pytest.raises(ValueError, match="is_clip_decayed needs decay_timesteps; pass --set decay_timesteps"):
        ppo1.check(ppo1.Config(is_clip_decayed=True), linear_quadratic.kernel(), 1)


def test_run_that_outlasts_the_learning_rate_is_remarked():
    config = ppo1.Config(decay_timesteps=1e5)
    assert config.remarks(None, 10**5) == []
    assert "pass --set decay_timesteps=200000" in config.remarks(None, 2 * 10**5)[0]
