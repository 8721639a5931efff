"""What the command prints."""

import argparse
import json

import numpy as np
import pytest

from tdpo_baselines.evaluate import as_json, main, parse_start_values, table
from tdpo_baselines.harness import checkpoint, registry
from tdpo_baselines.harness.run_folder import RunConfig, RunFolder
from tdpo_baselines.harness.trained import Evaluation, Trained, evaluate

OPTIONS = {"hidden_sizes": [4]}


@pytest.fixture(scope="module")
def policy() -> Trained:
    """Return a policy that does nothing."""
    environment = registry.make_environment("pendulum-20hz", registry.resolve_options("pendulum-20hz", {}))
    roller = registry.make_roller(environment, registry.algorithm("tdpo").Config.from_values(OPTIONS))
    state = {"policy": {"theta": np.zeros(roller.num_parameters)}, "progress": {"iteration": np.asarray(7)}}
    return Trained(RunConfig("tdpo", "pendulum-20hz", 0, OPTIONS, {}), state)


@pytest.fixture
def run(tmp_path, policy):
    """Return the folder of a run with a newest and a best checkpoint."""
    folder = RunFolder(tmp_path / "run")
    folder.open(policy.config, is_resumed=False)
    for path, iteration in ((folder.checkpoints, 7), (folder.best, 3)):
        state = {**policy.state, "progress": {"iteration": iteration}, "config": policy.config.to_json()}
        checkpoint.save(path, iteration, state, keep=1)
    return folder


def test_json_has_null_for_what_is_not_finite(policy):
    evaluation = Evaluation({"return": np.array([np.nan, 1.0])}, np.zeros(0), None, None)
    told = json.loads(as_json(policy, evaluation), parse_constant=pytest.fail)
    assert told["episodes"]["return"] == [None, 1.0] and told["summary"]["return"]["mean"] is None


def test_start_values_are_parsed():
    assert parse_start_values("theta_hip=-0.8, height=5e-1") == {"theta_hip": -0.8, "height": 0.5}
    for text in ("a", "a=", "a=1,a=2", "=3"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_start_values(text)


def test_table_has_a_line_per_result(policy):
    lines = table(policy, evaluate(policy, num_episodes=2)).splitlines()
    assert lines[0] == "tdpo on pendulum-20hz, seed 0, iteration 7: 2 episode(s) without exploration"
    assert [line.split()[0] for line in lines[2:5]] == ["return", "discounted_return", "payoff"]


def test_command_prints_json_and_draws(run, tmp_path, capsys):
    picture = tmp_path / "episode.png"
    assert main([str(run.path), "--episodes", "2", "--json", "--plot", str(picture)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["iteration"] == 7 and len(told["episodes"]["return"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_best_checkpoint_is_evaluated_by_its_folder_or_by_argument(run, capsys):
    for arguments in ([str(run.best)], [str(run.path), "--best"]):
        assert main([*arguments, "--episodes", "1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["iteration"] == 3


def test_policy_is_evaluated_in_another_environment_where_shapes_fit(run, capsys):
    arguments = [str(run.path), "--episodes", "1", "--env"]
    assert main([*arguments, "pendulum-100hz"]) == 0
    assert "on pendulum-20hz, seed 0, iteration 7, in pendulum-100hz: 1 episode" in capsys.readouterr().out
    assert main([*arguments, "pendulum-100hz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evaluated_in"] == "pendulum-100hz"
    assert main([*arguments, "cart-pole"]) == 2
    assert "cart-pole (4 observations, 1 actions); the policy was trained in pendulum-20hz" in capsys.readouterr().err


def test_invalid_input_is_one_line_with_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} is not a run folder: it has no config.json\n"
