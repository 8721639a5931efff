"""Advantages, surrogate and divergence against slow references, and scales that never change the policy."""

import linear_quadratic
import numpy as np
import paid_at_end
import pytest

from tdpo_baselines.common.learners.actor_critic import (
    ActorCritic,
    Batch,
    Policy,
    generalised_advantage_estimation,
    scale_output,
    standardise,
    surrogate_and_kl,
)
from tdpo_baselines.common.learners.settings import OnPolicySettings
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.streams import Segments
from tdpo_baselines.ppo1 import ppo1
from tdpo_baselines.trpo import trpo

GAMMA = 0.9


def make_agent(kernel=None, **options) -> ActorCritic:
    values = {"num_trajectories": 3, "steps_per_trajectory": 40, "hidden_sizes": (6,), "output_gain": 1.0}
    config = OnPolicySettings(**{**values, **options})
    roller = KernelRoller(kernel or linear_quadratic.kernel(), config.hidden_sizes, config.gamma)
    return ActorCritic(config, roller, Comm(), seed=1)


def slow_advantages(segments, values, next_values, gamma, lam):
    """Return the sums of eq. 16 of arXiv 1506.02438, term by term."""
    advantages = np.zeros_like(values)
    for n, t in np.ndindex(values.shape):
        for k in range(t, values.shape[1]):
            future = 0.0 if segments.is_terminal[n, k] else next_values[n, k]
            advantages[n, t] += (gamma * lam) ** (k - t) * (segments.rewards[n, k] + gamma * future - values[n, k])
            if segments.is_last[n, k]:
                break
    return advantages


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_generalised_advantages_equal_a_slow_reference(lam):
    rng = np.random.default_rng(0)
    rewards, values, next_values = rng.normal(size=(3, 4, 40))
    is_last = rng.random((4, 40)) < 0.15
    is_terminal = is_last & (rng.random((4, 40)) < 0.5)
    segments = Segments(*[np.zeros(0)] * 4, rewards, is_last, is_terminal)
    result = generalised_advantage_estimation(segments, values, next_values, gamma=GAMMA, lam=lam)
    expected = slow_advantages(segments, values, next_values, GAMMA, lam)
    assert result == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_advantages_are_standardised_over_all_streams():
    advantages = np.random.default_rng(0).normal(3.0, 5.0, (4, 100))
    scaled = standardise(advantages, 4, Comm())
    assert scaled.mean() == pytest.approx(0, abs=1e-12) and scaled.std() == pytest.approx(1, rel=1e-7)
    assert np.all(np.isfinite(standardise(np.ones((2, 3)), 2, Comm())))


def test_surrogate_and_divergence_are_those_of_the_gaussians():
    sizes, rng = (3, 4, 2), np.random.default_rng(0)
    forward, theta = mlp.Forward(sizes), mlp.init_parameters(sizes, rng, 1.0)
    old, new = Policy(theta, np.log([0.5, 2.0])), Policy(theta + 0.1, np.log([0.7, 1.5]))
    observations, offsets = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 2))
    advantages = rng.normal(size=(2, 5))
    batch = Batch(observations, forward(theta, observations), offsets, advantages, np.zeros((2, 5)))
    surrogate, kl = surrogate_and_kl(batch, old, new, forward).T

    def log_density(policy, actions):
        std = np.exp(policy.log_std)
        return (-0.5 * ((actions - forward(policy.theta, observations)) / std) ** 2 - np.log(std)).sum(axis=-1)

    actions = batch.means + offsets
    ratio = np.exp(log_density(new, actions) - log_density(old, actions))
    assert surrogate == pytest.approx(np.mean(ratio * advantages, axis=1), rel=1e-9)
    drawn = batch.means + np.exp(old.log_std) * rng.normal(size=(20_000, 2, 5, 2))
    sampled = np.mean(log_density(old, drawn) - log_density(new, drawn), axis=(0, 2))
    assert kl == pytest.approx(sampled, abs=0.03) and kl.min() > 0.1


def test_scaled_output_multiplies_the_network():
    sizes, rng = (3, 4, 2), np.random.default_rng(0)
    theta, forward, rows = rng.normal(size=mlp.num_parameters(sizes)), mlp.Forward(sizes), rng.normal(size=(5, 3))
    assert forward(scale_output(theta, sizes, 7.0), rows) == pytest.approx(7 * forward(theta, rows), rel=1e-12)


def test_first_update_with_normalised_observations_only_measures_their_scale():
    agent, other = make_agent(), make_agent(use_observation_normalisation=False)
    segments = agent.collect(0)
    assert agent.prepare(segments) is None and agent.stats.count == 120
    rows = segments.observations.reshape(-1, 2)
    assert agent.stats.mean == pytest.approx(rows.mean(axis=0)) and agent.stats.std == pytest.approx(rows.std(axis=0))
    assert other.prepare(other.collect(0)) is not None


@pytest.mark.parametrize("time_limit", ["terminal", "bootstrap"])
def test_advantages_and_targets_of_a_batch_equal_a_slow_reference(time_limit):
    options = {"gamma": 0.9, "lam": 0.7, "use_return_normalisation": False, "time_limit": time_limit}
    agent = make_agent(linear_quadratic.ending_kernel(), **options)
    agent.prepare(agent.collect(0))
    segments = agent.collect(1)
    batch = agent.prepare(segments)
    values, next_values = (
        agent.values(agent.normalise(rows)) for rows in (segments.observations, segments.next_observations)
    )
    advantages = slow_advantages(segments, values, next_values, 0.9, 0.7)
    is_at_limit = segments.is_last & (np.abs(segments.next_observations).max(axis=2) <= 1.2)
    assert segments.is_terminal.any() and is_at_limit.any()
    assert np.all(segments.is_terminal[is_at_limit] == (time_limit == "terminal"))
    assert batch.targets == pytest.approx(advantages + values, rel=1e-9)
    assert batch.advantages == pytest.approx((advantages - advantages.mean()) / advantages.std(), rel=1e-5)


@pytest.mark.parametrize("algorithm", [trpo, ppo1])
def test_value_of_a_task_that_ends_at_its_horizon_is_its_return(algorithm):
    """Bootstrapping adds the last payment to the value again and again."""
    options = {"num_trajectories": 2, "steps_per_trajectory": 50, "gamma": 1.0, "lam": 1.0, "hidden_sizes": (8,)}
    options |= {"use_observation_normalisation": False, "use_return_normalisation": False}
    kernel, values = paid_at_end.kernel(), {}
    size = {"value_minibatch_size": 50} if algorithm is trpo else {"minibatch_size": 50, "learning_rate": 3e-3}
    for time_limit in ("auto", "bootstrap"):
        config = algorithm.Config(**options, **size, time_limit=time_limit)
        learner = algorithm.Learner(config, KernelRoller(kernel, (8,), 1.0), Comm(), seed=1)
        for i in range(40):
            learner.iterate(i, 0)
        values[time_limit] = learner.values(np.ones(1))
    assert values["auto"] == pytest.approx(-1, abs=0.1) and values["bootstrap"] < -3


def test_offsets_have_the_policys_deviation():
    agent = make_agent(steps_per_trajectory=2000, initial_std=0.3)
    assert agent.collect(0).offsets.std(axis=(0, 1)) == pytest.approx(0.3, rel=0.05)


def test_new_scales_change_neither_the_policy_nor_the_values_of_given_inputs():
    agent = make_agent()
    for i in range(3):
        agent.prepare(agent.collect(i))
    observations = np.random.default_rng(0).normal(size=(10, 2))

    def outputs():
        """Return the policy's actions for raw observations, and values for given inputs, in raw units."""
        of_network = mlp.Forward(agent.value_sizes)(agent.value_theta, observations) * agent.value_scale
        assert agent.values(observations) == pytest.approx(of_network[:, 0])
        return np.append(agent.forward(agent.policy.theta, agent.normalise(observations)), of_network)

    before, scales = outputs(), (agent.value_scale, *agent.stats.std)
    agent.prepare(agent.collect(3))
    assert outputs() == pytest.approx(before, rel=1e-9)
    assert agent.forward(agent.theta, observations).ravel() == pytest.approx(before[:20], rel=1e-9)
    assert not np.any(np.array(scales) == (agent.value_scale, *agent.stats.std)) and agent.value_scale > 1


def test_what_is_set_is_what_is_read():
    agent = make_agent()
    for i in range(2):
        agent.prepare(agent.collect(i))
    policy, value_theta = agent.policy, agent.value_theta
    agent.policy, agent.value_theta = Policy(policy.theta + 1, policy.log_std - 1), value_theta + 1
    assert agent.policy.theta == pytest.approx(policy.theta + 1) and agent.value_theta == pytest.approx(value_theta + 1)
    assert np.array_equal(agent.log_std, policy.log_std - 1)


def test_rows_are_the_columns_side_by_side():
    agent = make_agent(num_trajectories=2)
    wide, narrow = np.arange(12.0).reshape(2, 3, 2), np.arange(6.0).reshape(2, 3)
    rows = agent.gather_rows(wide, narrow)
    assert rows.shape == (6, 3) and rows[4].tolist() == [8.0, 9.0, 4.0]


def test_next_stage_takes_over_networks_and_scales_but_no_episodes():
    before, after = make_agent(), make_agent()
    for i in range(2):
        before.prepare(before.collect(i))
    after.begin_from(before.replicated())
    np.testing.assert_array_equal(after.theta, before.theta)
    assert after.value_scale == before.value_scale and after.stats.count == before.stats.count
    assert np.all(after.streams.episodes.steps == -1) and np.all(before.streams.episodes.steps >= 0)
