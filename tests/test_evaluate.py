"""What an evaluation reports, in numbers."""

import json
import sys

import numpy as np
import pytest

from tdpo_baselines.evaluate import Evaluation, Trained, as_json, evaluate
from tdpo_baselines.harness import registry
from tdpo_baselines.harness.run_folder import RunConfig

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


@pytest.mark.parametrize("name", ["harmful:Some-v0", "gym:harmful:Some-v0"])
def test_module_that_a_run_names_is_imported_only_on_request(tmp_path, monkeypatch, name):
    (tmp_path / "harmful.py").write_text(f"open({str(tmp_path / 'done')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    stranger = Trained(RunConfig("tdpo", name, 0, {}, {}), np.zeros(3), 1, {})
    with pytest.raises(ValueError, match=f"if you trust it, pass --env {name}"):
        evaluate(stranger, num_episodes=1, seed=0, start_values={})
    assert not (tmp_path / "done").exists()
    with pytest.raises(Exception):  # noqa: B017  it registers nothing
        evaluate(stranger, num_episodes=1, seed=0, start_values={}, trusted=name)
    assert (tmp_path / "done").exists()
    sys.modules.pop("harmful")


def test_kernel_that_a_run_names_is_one_of_ours(tmp_path):
    options = {"kernel": "os:system", "command": f"touch {tmp_path}/done"}
    stranger = Trained(RunConfig("tdpo", "envs:tdpo/PendulumNLR-v0", 0, {}, options), np.zeros(3), 1, {})
    with pytest.raises(ValueError, match="kernel must be one of"):
        evaluate(stranger, num_episodes=1, seed=0, start_values={})
    assert not (tmp_path / "done").exists()


def test_json_has_null_for_what_is_not_finite():
    evaluation = Evaluation({"return": np.array([np.nan, 1.0])}, np.zeros(0), None, None)
    told = json.loads(as_json(trained("tdpo", {}), evaluation), parse_constant=pytest.fail)
    assert told["episodes"]["return"] == [None, 1.0] and told["summary"]["return"]["mean"] is None
