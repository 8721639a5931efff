"""TD3: targets and gradients against formulas in TensorFlow, the delay of the policy, and that it learns."""

from dataclasses import replace

import linear_quadratic
import numpy as np
import pytest
from replay_problem import Problem, copies, cost_of_learned_policy, gradient, make_learner

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.td3 import td3


@pytest.mark.parametrize("use_tanh", [True, False])
@pytest.mark.parametrize("has_range", [True, False])
def test_targets_equal_a_plain_formula(has_range, use_tanh):
    """Clip target actions to their range, also where the environment does not."""
    limited = replace(linear_quadratic.limited_kernel(), is_action_limited=False)
    kernel = limited if has_range else linear_quadratic.kernel()
    learner = make_learner(td3, kernel, use_tanh_output=use_tanh)
    problem = Problem(learner)
    parameters, batch = problem.parameters, problem.batch
    actions = problem.act(parameters.target_actor, batch.next_observations).numpy()
    assert use_tanh or np.abs(actions).max() > 1
    actions = np.clip(actions + problem.noise, -1, 1) if has_range else actions + problem.noise
    least = np.min(problem.values(parameters.target_critics, batch.next_observations, actions), axis=0)
    y = batch.rewards + 0.9 * (1 - batch.is_terminal) * least
    found = td3.targets(learner.networks, *parameters[2:], batch, problem.noise, gamma=0.9)
    assert found == pytest.approx(y, rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"hidden_sizes": (40, 30), "use_tanh_output": False}, {"activation": "tanh"}])
def test_gradients_are_those_of_the_losses(options):
    learner = make_learner(td3, **options)
    problem, tf = Problem(learner), load_tensorflow()
    networks, (actor, critics, *_), batch = learner.networks, problem.parameters, problem.batch
    y = np.random.default_rng(1).normal(size=12).astype(np.float32)

    def critic_loss(critics):
        return sum(tf.reduce_mean((y - v) ** 2) for v in problem.values(critics, batch.observations, batch.actions))

    def actor_loss(actor):
        return -tf.reduce_mean(problem.values(critics, batch.observations, problem.act(actor, batch.observations))[0])

    expected = gradient(critic_loss, critics)
    error = td3.critic_gradient(networks, critics, batch, y) - expected
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(expected)
    expected = gradient(actor_loss, actor)
    error = td3.actor_gradient(networks, actor, critics, batch) - expected
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(expected)


def test_target_noise_is_gaussian_and_clipped():
    noise = td3.target_noise(np.random.default_rng(0), (1000, 12, 2), std=0.4, clip=0.5)
    assert noise.dtype == np.float32 and np.abs(noise).max() == 0.5
    assert np.mean(np.abs(noise) == 0.5) == pytest.approx(0.2113, abs=0.01)  # P(|z| > 1.25)
    assert np.median(np.abs(noise)) == pytest.approx(0.6745 * 0.4, rel=0.02)


def test_minibatches_come_with_the_noise_of_the_options():
    learner = make_learner(td3, target_noise_std=0.4, target_noise_clip=0.3)
    learner.iterate(0, 0)
    _, noise = learner.sample(0, 0)
    assert noise.shape == (7, 12, 2) and np.abs(noise).max() == np.float32(0.3)


def test_actor_and_targets_wait_for_the_policy_delay():
    learner = make_learner(td3, policy_delay=4, updates_per_round=3, rounds_per_iteration=1, random_timesteps=0)
    actor, critics = copies(learner.agent)
    learner.iterate(0, 0)  # 3 updates
    assert np.array_equal(actor.theta, learner.agent.actor.theta)
    assert np.array_equal(critics.target, learner.agent.critics.target)
    assert not np.array_equal(critics.theta, learner.agent.critics.theta)
    learner.iterate(1, 30)  # 6
    assert learner.agent.actor.adam.count == 1 and not np.array_equal(actor.theta, learner.agent.actor.theta)


def test_td3_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"hidden_sizes": (32,), "batch_size": 64, "gamma": 0.95, "use_tanh_output": False}
    learner = make_learner(td3, **options, updates_per_round=30, rounds_per_iteration=20, noise_std=0.3)
    for i in range(15):
        learner.iterate(i, 600 * i)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert cost_of_learned_policy(learner) < 1.3 * best < linear_quadratic.mean_cost(np.zeros((2, 2)))
