"""TRPO's derivatives against finite differences, its step and line search, and that it learns."""

import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.actor_critic import Policy, surrogate_and_kl
from tdpo_baselines.common.networks.templates import compile_template
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.trpo import trpo

GAMMA = 0.9


def make_learner(kernel, **options):
    values = {"num_trajectories": 3, "steps_per_trajectory": 40, "hidden_sizes": (6,), "output_gain": 1.0}
    config = trpo.Config.from_values({**values, "value_minibatch_size": 32, **options})
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma)
    return trpo.Learner(config, roller, Comm(), seed=1)


@pytest.mark.parametrize("is_normalised", [False, True])
def test_gradient_and_fisher_products_equal_finite_differences(is_normalised):
    options = {"use_observation_normalisation": is_normalised, "initial_std": 0.7, "entropy_coefficient": 0.3}
    learner = make_learner(linear_quadratic.kernel(), **options)
    learner.log_std = np.log(np.array([0.5, 2.0]))  # as different as it gets
    batch = learner.prepare(learner.collect(0)) or learner.prepare(learner.collect(1))
    old = learner.policy
    g, product = learner.derivatives(batch)

    def objective_and_constraint(change):
        moved = Policy(old.theta + change[: len(old.theta)], old.log_std + change[len(old.theta) :])
        surrogate, kl = surrogate_and_kl(batch, old, moved, learner.forward).mean(axis=0)
        entropy = np.sum(np.log(2 * np.pi * np.e * np.exp(2 * moved.log_std)) / 2)
        return surrogate + 0.3 * entropy, kl

    rng, h = np.random.default_rng(2), 1e-4
    for _ in range(3):
        v = rng.normal(size=len(g))
        up, down = objective_and_constraint(h * v), objective_and_constraint(-h * v)
        assert (up[0] - down[0]) / (2 * h) == pytest.approx(g @ v, rel=1e-4)
        assert (up[1] + down[1]) / h**2 == pytest.approx(v @ product(v), rel=1e-4)


def test_natural_step_solves_for_the_direction_and_reaches_the_trust_region():
    rng = np.random.default_rng(0)
    root, g = rng.normal(size=(5, 5)), rng.normal(size=5)
    fisher = root @ root.T + np.eye(5)
    config = trpo.Config(max_kl=0.03, cg_damping=0.2, cg_tolerance=1e-12)
    change, num_iterations = trpo.natural_step(lambda v: fisher @ v, g, config)
    damped = fisher + 0.2 * np.eye(5)
    assert change @ damped @ change / 2 == pytest.approx(0.03)
    direction = np.linalg.solve(damped, g)
    assert change / np.linalg.norm(change) == pytest.approx(direction / np.linalg.norm(direction))
    assert 1 <= num_iterations <= 6


def test_zero_gradient_gives_no_step():
    change, num_iterations = trpo.natural_step(lambda v: v, np.zeros(4), trpo.Config())
    assert not change.any() and num_iterations == 0
    assert trpo.line_search(Policy(np.zeros(3), np.zeros(1)), change, lambda policy: (1.0, 0.0), trpo.Config()) is None


def test_line_search_takes_the_first_step_that_improves_within_the_trust_region():
    old, config = Policy(np.zeros(2), np.zeros(1)), trpo.Config(max_kl=0.5, line_search_shrink=0.5)
    tried = []

    def evaluate(policy):
        tried.append(policy)
        length = policy.theta[0]
        return (np.nan if length > 3 else length - 0.1), length**2

    new, coefficient, surrogate, kl = trpo.line_search(old, np.array([4.0, 2.0, -1.0]), evaluate, config)
    assert (coefficient, kl) == (0.125, 0.25) and surrogate == pytest.approx(0.4)  # kl 16, 4 and 1 before
    assert new.theta.tolist() == [0.5, 0.25] and new.log_std.tolist() == [-0.125]
    assert len(tried) == 4
    assert trpo.line_search(old, np.ones(3), lambda policy: (-1.0, 0.0), config) is None


def test_gradient_of_the_values_is_that_of_the_mean_squared_error():
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    theta = np.array([2.0, -1.0, 0.5], np.float32)  # linear in two observations
    error, gradient = rows[:, :2] @ theta[:2] + 0.5 - rows[:, 2], np.empty(3, np.float32)
    loss = compile_template(trpo.differentiate_value)(theta, rows, 1.0, np.array([2, 1]), gradient)
    assert loss == pytest.approx(np.mean(error**2), rel=1e-5)
    assert gradient == pytest.approx(2 / 5 * np.append(error @ rows[:, :2], error.sum()), rel=1e-5)


def test_update_stays_in_its_trust_region_and_improves_the_surrogate():
    learner = make_learner(linear_quadratic.kernel(), max_kl=0.02)
    rows = [learner.iterate(i, 0) for i in range(4)]
    assert all(0 < row["kl"] <= 0.02 and row["surrogate_gain"] > 0 for row in rows[1:])
    assert rows[0]["step_coefficient"] == 0  # the first only measures the scale of the observations


def test_step_that_leaves_the_trust_region_is_shortened():
    """Far out the divergence is not quadratic any more: the full step goes too far."""
    learner = make_learner(linear_quadratic.kernel(), max_kl=2.0, cg_damping=1e-4)
    rows = [learner.iterate(i, 0) for i in range(8)][1:]
    assert all(row["kl"] <= 2.0 for row in rows)
    assert any(0 < row["step_coefficient"] < 1 for row in rows)


def test_value_function_learns_the_returns_of_a_known_policy():
    """Fit returns (lambda 1) of a linear-quadratic cost, whose value is quadratic in the state."""
    options = {"steps_per_trajectory": 300, "lam": 1.0, "hidden_sizes": (32,), "value_epochs": 20, "max_kl": 1e-9}
    learner = make_learner(linear_quadratic.kernel(), **options, gamma=GAMMA, initial_std=0.01)
    errors = [learner.iterate(i, 0)["value_error"] for i in range(16)][1:]
    assert errors[-1] < 0.15 * errors[0]


def test_trpo_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"num_trajectories": 8, "steps_per_trajectory": 90, "hidden_sizes": (), "gamma": 0.95, "lam": 0.95}
    learner = make_learner(linear_quadratic.kernel(), **options, output_gain=0.0, initial_std=0.5, max_kl=0.03)
    for i in range(80):
        learner.iterate(i, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.25 * best
    assert linear_quadratic.mean_cost(np.zeros((2, 2))) > 1.5 * best


def test_continued_from_its_checkpoint_a_run_is_the_same(tmp_path):
    learner, other = (make_learner(linear_quadratic.kernel()) for _ in range(2))
    for i in range(2):
        learner.iterate(i, 0)
    checkpoint.save(tmp_path, 1, learner.state(), keep=1)
    other.load_state(checkpoint.load_newest(tmp_path))
    rows = [[one.iterate(i, 0) for i in range(2, 4)] for one in (learner, other)]
    assert rows[0] == rows[1] and np.array_equal(learner.theta, other.theta)


def test_rewarded_entropy_widens_the_policy():
    learner = make_learner(linear_quadratic.kernel(), entropy_coefficient=10.0)
    std = [learner.iterate(i, 0)["action_std"] for i in range(6)]
    assert np.all(np.diff(std[1:]) > 0)  # the first only measures the scale of the observations
    batch, old = learner.prepare(learner.collect(6)), learner.policy
    gain, _ = learner.evaluate(batch, Policy(old.theta, old.log_std + 1e-3))
    alone = surrogate_and_kl(batch, old, Policy(old.theta, old.log_std + 1e-3), learner.forward).mean(axis=0)[0]
    assert gain - alone == pytest.approx(10.0 * 2 * 1e-3)


def test_minibatches_are_given_by_their_size_or_their_number():
    assert trpo.Config().steps_per_value_gradient == 128
    config = trpo.Config(num_trajectories=3, steps_per_trajectory=100, num_value_minibatches=7)
    assert config.steps_per_value_gradient == 42 and trpo.Config(**config.to_values()) == config
    with pytest.raises(ValueError, match="value_minibatch_size and num_value_minibatches exclude each other, got 64"):
        trpo.Config(value_minibatch_size=64, num_value_minibatches=7)


def test_minibatch_larger_than_the_batch_is_refused():
    config = trpo.Config(num_trajectories=1, steps_per_trajectory=100)
    with pytest.raises(ValueError, match="value_minibatch_size must be at most"):
        trpo.check(config, linear_quadratic.kernel(), 1)
    config = trpo.Config(num_trajectories=1, steps_per_trajectory=100, num_value_minibatches=101)
    with pytest.raises(ValueError, match="num_value_minibatches must be at most"):
        trpo.check(config, linear_quadratic.kernel(), 1)
    trpo.check(trpo.Config(), linear_quadratic.kernel(), 1)
