"""TD3: targets and losses against NumPy, the delay of the policy, and that it learns."""

from dataclasses import replace

import linear_quadratic
import numpy as np
import pytest
from replay_problem import Problem, cost_of_learned_policy, make_learner

from tdpo_baselines.td3 import td3


@pytest.mark.parametrize("use_tanh", [True, False])
@pytest.mark.parametrize("has_range", [True, False])
def test_targets_and_losses_equal_plain_formulas(has_range, use_tanh):
    """Clip target actions to their range, also where the environment does not."""
    limited = replace(linear_quadratic.limited_kernel(), is_action_limited=False)
    kernel = limited if has_range else linear_quadratic.kernel()
    learner = make_learner(td3, kernel, use_tanh_output=use_tanh)
    problem = Problem(learner)
    networks, parameters, batch = learner.networks, problem.parameters, problem.batch
    actions = problem.act(parameters.target_actor, batch.next_observations)
    assert use_tanh or np.abs(actions).max() > 1
    actions = np.clip(actions + problem.noise, -1, 1) if has_range else actions + problem.noise
    least = np.min(problem.values(parameters.target_critics, batch.next_observations, actions), axis=0)
    y = batch.rewards + 0.9 * (1 - batch.is_terminal) * least
    found = td3.targets(networks, *problem.tensors[2:], problem.tensor_batch, problem.noise, gamma=0.9)
    assert found.numpy() == pytest.approx(y, rel=1e-9)
    values = problem.values(parameters.critics, batch.observations, batch.actions)
    loss = td3.critic_loss(networks, problem.tensors.critics, problem.tensor_batch, y).numpy()
    assert len(values) == 2 and loss == pytest.approx(sum(np.mean((value - y) ** 2) for value in values), rel=1e-9)
    value, _ = problem.values(parameters.critics, batch.observations, problem.act(parameters.actor, batch.observations))
    loss = td3.actor_loss(networks, problem.tensors.actor, problem.tensors.critics, problem.tensor_batch)
    assert loss.numpy() == pytest.approx(-value.mean())


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
    first = learner.agent
    learner.iterate(0, 0)  # 3 updates
    assert np.array_equal(np.float32(first.actor.theta), learner.theta)
    assert np.array_equal(np.float32(first.critics.target), learner.agent.critics.target)
    assert not np.array_equal(np.float32(first.critics.theta), learner.agent.critics.theta)
    learner.iterate(1, 30)  # 6
    assert learner.agent.actor.adam.count == 1 and not np.array_equal(np.float32(first.actor.theta), learner.theta)


def test_td3_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"hidden_sizes": (32,), "batch_size": 64, "gamma": 0.95, "use_tanh_output": False}
    learner = make_learner(td3, **options, updates_per_round=30, rounds_per_iteration=20, noise_std=0.3)
    for i in range(15):
        learner.iterate(i, 600 * i)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert cost_of_learned_policy(learner) < 1.3 * best < linear_quadratic.mean_cost(np.zeros((2, 2)))
