"""The numbers that an evaluation reports."""

import argparse
import json
import sys

import numpy as np
import pytest

from tdpo_baselines.evaluate import Evaluation, Trained, as_json, evaluate, load, main, parse_start_values, table
from tdpo_baselines.harness import checkpoint, registry
from tdpo_baselines.harness.run_folder import RunConfig, RunFolder

ENVIRONMENT = "pendulum-20hz"


def trained(algorithm: str, state: dict, **options) -> Trained:
    """Return a policy that does nothing."""
    options = {"hidden_sizes": [4], **options}
    policy = {"theta": np.zeros(roller_of(algorithm, options).num_parameters), **state}
    state = {"policy": policy, "progress": {"iteration": np.asarray(7)}}
    return Trained(RunConfig(algorithm, ENVIRONMENT, 0, options, {}), state)


def stranger(environment: str, env_options: dict) -> Trained:
    """Return a run that someone else may have made."""
    return Trained(RunConfig("tdpo", environment, 0, {}, env_options), {"policy": {"theta": np.zeros(3)}})


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
    with pytest.raises(ValueError, match=f"if you trust it, pass --env {name}"):
        evaluate(stranger(name, {}), num_episodes=1, seed=0, start_values={})
    assert not (tmp_path / "done").exists()
    with pytest.raises(Exception):  # noqa: B017  it registers nothing
        evaluate(stranger(name, {}), num_episodes=1, seed=0, start_values={}, trusted=name)
    assert (tmp_path / "done").exists()
    sys.modules.pop("harmful")


def test_kernel_that_a_run_names_is_one_of_ours(tmp_path):
    options = {"kernel": "os:system", "command": f"touch {tmp_path}/done"}
    with pytest.raises(ValueError, match="kernel must be one of"):
        evaluate(stranger("envs:tdpo/PendulumNLR-v0", options), num_episodes=1, seed=0, start_values={})
    assert not (tmp_path / "done").exists()


def test_json_has_null_for_what_is_not_finite():
    evaluation = Evaluation({"return": np.array([np.nan, 1.0])}, np.zeros(0), None, None)
    told = json.loads(as_json(trained("tdpo", {}), evaluation), parse_constant=pytest.fail)
    assert told["episodes"]["return"] == [None, 1.0] and told["summary"]["return"]["mean"] is None


def save(folder: RunFolder, name: str, policy: Trained) -> None:
    config = policy.config.to_json()
    checkpoint.save(getattr(folder, name), policy.iteration, {**policy.state, "config": config}, keep=1)


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run with a newest and a best checkpoint."""
    folder, newest, best = RunFolder(tmp_path / "run"), trained("tdpo", {}), trained("tdpo", {})
    folder.open(newest.config, is_resumed=False)
    best.state["progress"]["iteration"] = np.asarray(3)
    save(folder, "checkpoints", newest)
    save(folder, "best", best)
    return folder


def test_newest_best_or_a_single_checkpoint_is_loaded(run):
    single = run.checkpoints / "iteration-000000007"
    assert load(run.path).iteration == load(single).iteration == 7 and load(run.path, use_best=True).iteration == 3
    with pytest.raises(ValueError, match="--best chooses among a run's checkpoints"):
        load(single, use_best=True)


def test_run_without_checkpoints_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a run folder"):
        load(tmp_path)
    RunFolder(tmp_path).open(trained("tdpo", {}).config, is_resumed=False)
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        load(tmp_path)
    with pytest.raises(ValueError, match="has no best parameters yet"):
        load(tmp_path, use_best=True)


def test_parameters_that_do_not_fit_the_config_are_refused():
    wrong = trained("tdpo", {"theta": np.zeros(3)})
    with pytest.raises(ValueError, match="the checkpoint has 3 parameters, its config asks for"):
        evaluate(wrong, num_episodes=1, seed=0, start_values={})


def test_start_values_are_used():
    evaluation = evaluate(trained("tdpo", {}), num_episodes=2, seed=0, start_values={"angle": 0.5, "rate": 0.0})
    assert np.array_equal(evaluation.start_states[0], evaluation.start_states[1])


def test_start_values_are_parsed():
    assert parse_start_values("theta_hip=-0.8, height=5e-1") == {"theta_hip": -0.8, "height": 0.5}
    for text in ("a", "a=", "a=1,a=2", "=3"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_start_values(text)


def test_table_has_a_line_per_result():
    policy = trained("tdpo", {})
    lines = table(policy, evaluate(policy, num_episodes=2, seed=0, start_values={})).splitlines()
    assert lines[0] == "tdpo on pendulum-20hz, seed 0, iteration 7: 2 episode(s) without exploration"
    assert [line.split()[0] for line in lines[2:5]] == ["return", "discounted_return", "payoff"]


def test_command_prints_json_and_draws(run, tmp_path, capsys):
    picture = tmp_path / "episode.png"
    assert main([str(run.path), "--episodes", "2", "--json", "--plot", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["iteration"] == 7 and len(told["episodes"]["return"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_invalid_input_is_one_line_with_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} is not a run folder: it has no config.json\n"
