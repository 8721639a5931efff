"""DDPG: targets and gradients against formulas in TensorFlow, parameter noise that adapts, and that it learns."""

from dataclasses import replace

import linear_quadratic
import numpy as np
import pytest
from replay_problem import Problem, copies, cost_of_learned_policy, gradient, make_learner

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.ddpg import ddpg


@pytest.mark.parametrize("use_tanh", [True, False])
@pytest.mark.parametrize("has_range", [True, False])
def test_targets_equal_a_plain_formula(has_range, use_tanh):
    """Clip target actions to their range, also where the environment does not."""
    limited = replace(linear_quadratic.limited_kernel(), is_action_limited=False)
    kernel = limited if has_range else linear_quadratic.kernel()
    learner = make_learner(ddpg, kernel, use_tanh_output=use_tanh)
    problem = Problem(learner)
    parameters, batch = problem.parameters, problem.batch
    actions = problem.act(parameters.target_actor, batch.next_observations).numpy()
    assert use_tanh or np.abs(actions).max() > 1
    actions = np.clip(actions, -1, 1) if has_range else actions
    (value,) = problem.values(parameters.target_critics, batch.next_observations, actions)
    y = batch.rewards + 0.9 * (1 - batch.is_terminal) * value.numpy()
    found = ddpg.targets(learner.networks, *parameters[2:], batch, None, gamma=0.9)
    assert found == pytest.approx(y, rel=1e-5)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_gradients_are_those_of_the_losses(l2):
    learner = make_learner(ddpg, critic_l2=l2)
    problem, tf = Problem(learner), load_tensorflow()
    networks, (actor, critic, *_), batch = learner.networks, problem.parameters, problem.batch
    y = np.random.default_rng(1).normal(size=12).astype(np.float32)

    def critic_loss(critic):
        (value,) = problem.values(critic, batch.observations, batch.actions)
        return tf.reduce_mean((value - y) ** 2) + l2 * tf.reduce_sum(critic**2)

    def actor_loss(actor):
        return -tf.reduce_mean(problem.values(critic, batch.observations, problem.act(actor, batch.observations))[0])

    rule = ddpg.update_rule(learner.config)
    expected = gradient(critic_loss, critic)
    error = rule.critic_gradient(networks, critic, batch, y) - expected
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(expected)
    expected = gradient(actor_loss, actor)
    error = rule.actor_gradient(networks, actor, critic, batch) - expected
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(expected)


def test_actor_and_critics_learn_at_their_own_rates():
    """Adam's first step is its learning rate, in every parameter whose gradient is not tiny."""
    options = {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-2, "updates_per_round": 1, "batch_size": 60}
    learner = make_learner(ddpg, rounds_per_iteration=1, random_timesteps=0, steps_per_round=60, **options)
    before = copies(learner.agent)
    learner.iterate(0, 0)
    for old, new, rate in zip(before, learner.agent, (1e-3, 1e-2)):
        assert np.max(np.abs(new.theta - old.theta)) == pytest.approx(rate, rel=1e-3)


def test_perturbation_is_scaled_by_the_size_of_each_layer():
    sizes = (3, 50, 2)
    num_first = mlp.num_parameters(sizes[:2])
    theta = np.concatenate([np.full(num_first, 2.0), np.full(mlp.num_parameters(sizes) - num_first, -0.5)])
    change = ddpg.perturb(theta, sizes, noise_scale=0.1, white=np.ones_like(theta)) - theta
    assert change[:num_first] == pytest.approx(0.2) and change[num_first:] == pytest.approx(0.05)


def test_noise_scale_grows_while_actions_change_too_little():
    assert ddpg.adapt_noise_scale(0.1, 0.19, 0.2) == pytest.approx(0.101)
    assert ddpg.adapt_noise_scale(0.1, 0.21, 0.2) == pytest.approx(0.1 / 1.01)


def test_parameter_noise_adapts_until_actions_change_as_much_as_asked_for():
    learner = make_learner(ddpg, parameter_noise_std=0.05, rounds_per_iteration=100, updates_per_round=0)
    for i in range(4):
        learner.iterate(i, 10**6)
    observations = learner.replay.latest(30)[..., : learner.networks.sizes[0]].astype(np.float64)
    forward, changes = mlp.Forward(learner.networks.sizes, learner.roller.style), []
    for number in range(1000, 1020):
        perturbed, offsets = learner.explore(number, is_random=False)
        change = forward(perturbed, observations) - forward(learner.theta, observations)
        changes.append(np.sqrt(np.mean((change / learner.roller.style.scale) ** 2)))
        assert not offsets.any()
    assert np.median(changes) == pytest.approx(0.05, rel=0.4)


def test_scale_of_the_parameter_noise_is_part_of_the_state():
    learner, other = (make_learner(ddpg, parameter_noise_std=0.3) for _ in range(2))
    for i in range(3):
        learner.iterate(i, 60 * i)
    assert learner.state()["parameter_noise"]["scale"] != other.state()["parameter_noise"]["scale"]
    other.begin_from(learner.replicated())
    assert learner.state()["parameter_noise"]["scale"] == other.state()["parameter_noise"]["scale"]


def test_noise_for_evaluation_is_on_actions_or_none():
    kernel, rng = linear_quadratic.limited_kernel(), np.random.default_rng(0)
    assert ddpg.exploration(ddpg.Config(), kernel, {}, rng, (4, 3, 2)).shape == (4, 3, 2)
    assert ddpg.exploration(ddpg.Config(parameter_noise_std=0.1), kernel, {}, rng, (4, 3, 2)) is None


def test_ddpg_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"hidden_sizes": (32,), "batch_size": 64, "gamma": 0.95, "use_tanh_output": False}
    learner = make_learner(ddpg, **options, updates_per_round=30, rounds_per_iteration=20, noise_std=0.3)
    for i in range(15):
        learner.iterate(i, 600 * i)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert cost_of_learned_policy(learner) < 1.3 * best < linear_quadratic.mean_cost(np.zeros((2, 2)))
