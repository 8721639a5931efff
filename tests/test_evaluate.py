"""Tests of the printed text."""

import argparse
import csv
import json

import numpy as np
import pytest

from tdpo_baselines.evaluate import as_values, describe, main, parse_start_values
from tdpo_baselines.evaluating.trained import AGENTS, Evaluation, Trained, evaluate, load
from tdpo_baselines.export import export
from tdpo_baselines.options import registry
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

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
    told = json.loads(json.dumps(as_values(policy, evaluation)), parse_constant=pytest.fail)
    assert told["episodes"]["return"] == [None, 1.0] and told["summary"]["return"]["mean"] is None


def test_start_values_are_parsed():
    assert parse_start_values("theta_hip=-0.8, height=5e-1") == {"theta_hip": -0.8, "height": 0.5}
    for text in ("a", "a=", "a=1,a=2", "=3"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_start_values(text)


def test_table_has_a_line_per_result(policy):
    lines = describe(policy, evaluate(policy, num_episodes=2), is_stochastic=False).splitlines()
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


def test_several_policies_are_compared_in_a_table_and_a_csv_file(run, tmp_path, capsys):
    export(load(run.path), tmp_path / "npz", format="npz")
    file, out = str(tmp_path / "npz/policy.npz"), tmp_path / "table.csv"
    arguments = [str(run.path), file, "--pretrained", "pendulum-nlr", "--episodes", "3", "--csv", str(out)]
    assert main(arguments) == 0
    head, *lines = capsys.readouterr().out.splitlines()[:4]
    assert head.split() == ["policy", "episodes", "return", "std", "min", "payoff", "verdict"]
    assert [line.split()[0] for line in lines] == [str(run.path), file, "pretrained:pendulum-nlr"]
    assert lines[0].split()[1:] == lines[1].split()[1:]  # the file is the run's policy
    assert lines[0].endswith(" -") and lines[2].endswith("solved (3 of 3)")
    rows = list(csv.DictReader(out.open()))
    assert rows[0]["return_mean"] == rows[1]["return_mean"] and rows[0]["band_share_mean"] == ""
    assert float(rows[2]["band_share_mean"]) > 0.9 and rows[2]["verdict"] == "solved (3 of 3)"
    assert main([*arguments, "--json"]) == 0
    assert [told["environment"] for told in json.loads(capsys.readouterr().out)][1:] == [
        "pendulum-20hz",
        "pendulum-nlr",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum-20hz", "Pendulum-v1"])
def test_two_ranks_give_the_same_numbers_to_the_bit(name, tmp_path, program, policy):
    folder = RunFolder(tmp_path / "run")
    config = RunConfig("ppo1", name, 0, {"hidden_sizes": [4]}, {})
    theta = np.random.default_rng(0).standard_normal(policy.theta.size - 3)  # no linear part
    state = {"policy": {"theta": theta, "log_std": np.zeros(1)}, "progress": {"iteration": 1}}
    folder.open(config, is_resumed=False)
    checkpoint.save(folder.checkpoints, 1, {**state, "config": config.to_json()}, keep=1)
    for extra in ((), ("--stochastic",)):
        arguments = ("evaluate", str(folder.path), "--episodes", "3", "--json", *extra)
        one, two = (program(*arguments, ranks=ranks) for ranks in (1, 2))
        assert one.returncode == two.returncode == 0, one.stderr + two.stderr
        told, again = (json.loads(done.stdout.splitlines()[0]) for done in (one, two))  # mpirun adds a line
        assert told == again and told["has_noise"] == bool(extra) and len(set(told["episodes"]["return"])) == 3


@pytest.mark.slow
def test_error_that_all_ranks_find_is_printed_once(run, program):
    done = program("evaluate", str(run.path), "--reset", "mass=2", ranks=2)
    assert done.returncode == 2 and done.stderr.count("error: unknown start value 'mass'") == 1


def test_policy_without_noise_says_so(run, capsys):
    assert main([str(run.path), "--stochastic", "--episodes", "2"]) == 0
    assert "2 episode(s) without exploration, of which this policy has none" in capsys.readouterr().out


@pytest.mark.parametrize("ranges", ["delay_steps=0:2", "delay_steps=0:1,env.start_scale=0.5:1:3"])
def test_robustness_is_printed_written_and_drawn(run, tmp_path, capsys, ranges):
    picture, out = tmp_path / "map.png", tmp_path / "map.csv"
    arguments = [str(run.path), "--episodes", "2", "--robustness", ranges]
    assert main([*arguments, "--plot", str(picture), "--csv", str(out)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows, printed = list(csv.DictReader(out.open())), capsys.readouterr().out.splitlines()
    assert len(rows) == (3 if "," not in ranges else 6) and len(printed) == len(rows) + 3
    assert main([str(run.path), "--episodes", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    at_home = rows[0] if "," not in ranges else rows[2]  # no delay, and the whole range of starts
    assert float(at_home["return_mean"]) == told["summary"]["return"]["mean"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "PATH is missing"),
        (("--pretrained", "leggs"), "no policy 'leggs' in the package"),
        (("--pretrained", "cart-pole", "two-mass", "--plot", "a.png"), "--plot draws an episode of a single policy"),
        (("--pretrained", "cart-pole", "--best"), "is a single policy; leave it out"),
        (("--pretrained", "cart-pole", "--robustness", "mass=1:2"), "cart-pole has no option 'mass'"),
        (("--pretrained", "cart-pole", "--episodes", "0"), "--episodes must be at least 1"),
        (("--pretrained", "cart-pole", "--csv", "/proc/nowhere/a.csv"), "No such file"),
        (("missing.npz",), "missing.npz does not exist"),
    ],
)
def test_refusals(arguments, message, capsys):
    assert main(list(arguments)) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1


AGENT_NAMES = sorted(file.stem for file in AGENTS.glob("*.npz"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "cart-pole")) for name in AGENT_NAMES]
)
def test_agent_of_the_package_has_the_scores_of_its_card(name):
    card, agent = json.loads((AGENTS / f"{name}.json").read_text()), load(f"pretrained:{name}")
    assert agent.sha256 == card["parameters_sha256"] and agent.config.seed == card["seed"]
    assert (AGENTS / f"{name}.npz").stat().st_size < 100_000
    expected = card["evaluation"]
    evaluation = evaluate(agent, num_episodes=expected["num_episodes"], seed=expected["seed"])
    assert evaluation.summary()["return"] == pytest.approx(expected["return"], rel=1e-6)
    assert (evaluation.verdict and str(evaluation.verdict)) == expected["verdict"]
