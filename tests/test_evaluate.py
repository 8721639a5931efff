"""What an evaluation reports, in numbers."""

import numpy as np
import pytest

from tdpo_baselines import registry
from tdpo_baselines.evaluate import Trained, evaluate
from tdpo_baselines.run_folder import RunConfig

ENVIRONMENT = "pendulum-20hz"


def trained(algorithm: str, state: dict, **options) -> Trained:
    """A policy that does nothing."""
    options = {"hidden_sizes": [4], **options}
    num_parameters = roller_of(algorithm, options).num_parameters
    return Trained(RunConfig(algorithm, ENVIRONMENT, 0, options, {}), np.zeros(num_parameters), 1, state)


def roller_of(algorithm: str, options: dict):
    environment = registry.make_environment(ENVIRONMENT, registry.resolve_options(ENVIRONMENT, {}))
    return registry.make_roller(environment, registry.algorithm(algorithm).Config.from_values(options))


def test_payoff_is_the_discounted_average_of_the_rewards():
    evaluation = evaluate(trained("tdpo", {}, gamma=0.9), num_episodes=3, seed=1, start_values={})
    weights = 0.9 ** np.arange(evaluation.environment.horizon)
    rewards = evaluation.rollouts.rewards
    np.testing.assert_allclose(evaluation.results["return"], rewards.sum(axis=1))
    np.testing.assert_allclose(evaluation.results["discounted_return"], rewards @ weights)
    np.testing.assert_allclose(evaluation.results["payoff"], rewards @ weights / weights.sum())
    assert "return_exploring" not in evaluation.results  # TDPO explores in branches alone


@pytest.mark.parametrize(
    ("algorithm", "state", "options", "std"),
    [("ppo1", {"log_std": np.log([1.5])}, {}, 1.5), ("td3", {}, {"noise_std": 0.75}, 0.75 * 2)],
)
def test_return_with_exploration_is_that_of_noise_of_its_deviation(algorithm, state, options, std):
    evaluation = evaluate(trained(algorithm, state, **options), num_episodes=400, seed=1, start_values={})
    roller, states = roller_of(algorithm, {"hidden_sizes": [4], **options}), evaluation.start_states
    noise = std * np.random.default_rng(7).standard_normal((400, roller.horizon, 1))
    theta = np.zeros(roller.num_parameters)
    expected = roller.rollouts(theta, states, offsets=noise, num_recorded=roller.horizon).rewards.sum(axis=1)
    without, found = evaluation.results["return"], evaluation.results["return_exploring"]
    assert np.std(found - without) == pytest.approx(np.std(expected - without), rel=0.15)  # grows with the noise
