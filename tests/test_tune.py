"""The command `tune`, as a user runs it."""

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from programs import ROOT, mpi_environment

from tdpo_baselines.tune import find_definition, main, parse
from tdpo_baselines.tuning.space import make_space

SPACE = ("--alg", "trpo", "--env", "pendulum-nlr", "--vary", "gamma=0.9,0.999", "--vary", "max_kl=0.001,0.1")
TINY = ("--set", "num_timesteps=4000", "num_trajectories=2", "steps_per_trajectory=200", "hidden_sizes=8,8")
SEARCH = (*SPACE, *TINY, "--variant", "A", "--batch", "3", "--evaluations", "7", "--fresh_seeds", "1", "--jobs", "2")


def start(folder, *arguments: str) -> subprocess.Popen:
    """Start a search in a process group of its own."""
    command = [sys.executable, "-m", "tdpo_baselines.tune", *arguments, "--out", str(folder)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=mpi_environment(),
        start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
def test_search_killed_on_its_way_ends_as_an_undisturbed_one(tmp_path):
    library = "optuna" if importlib.util.find_spec("optuna") else "random"
    search = (*SEARCH, "--library", library)
    process = start(tmp_path / "killed", *search)
    while process.poll() is None and len(list((tmp_path / "killed/runs").glob("*/checkpoints/iteration*"))) < 4:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    for name in ("killed", "undisturbed"):
        process = start(tmp_path / name, *search)
        output = process.communicate(timeout=300)[0]
        assert process.returncode == 0 and "best.json" in output, output
    killed, undisturbed = (tmp_path / name for name in ("killed", "undisturbed"))
    for name in ("history.csv", "best.json", "summary.json"):
        assert (killed / name).read_text() == (undisturbed / name).read_text()
    rows = list(csv.DictReader((killed / "history.csv").open()))
    assert len(rows) == 7 and all(row["note"] == "" for row in rows)
    assert (killed / "history.png").stat().st_size and json.loads((killed / "summary.json").read_text())["fresh_scores"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", "leg", "--library", "random"), "no search space of None for leg; pass FILE.json or --vary"),
        ((*SPACE, "--library", "optunna"), "did you mean 'optuna'?"),
        ((*SPACE, "--library", "random", "--evaluations", "0"), "--evaluations must be at least 1"),
        ((*SPACE, "--library", "random", "--vary", "gama=0.9,1"), "did you mean '--gamma'?"),
        ((*SPACE, "--library", "random", "--vary", "cg_damping=0,1"), "must be above 0"),
        ((*SPACE, "--library", "random", "--prune", "median", "--submit", "slurm"), "leave --prune or --submit out"),
        ((*SPACE, "--library", "random", "--sweep", "absent"), "cannot read absent/sweep.json"),
        (("absent.json", "--library", "random"), "cannot read absent.json"),
    ],
)
def test_invalid_input_is_one_line_and_starts_nothing(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_round_is_submitted_as_an_array_and_proposed_once(tmp_path, capsys):
    command = [*SPACE, *TINY, "--library", "random", "--variant", "A", "--batch", "3", "--out", str(tmp_path)]
    for _ in range(2):
        assert main([*command, "--submit", "pbs", "--dry-run"]) == 85
        assert "#PBS -J 0-2" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "rounds").iterdir()] == ["000"]


@pytest.mark.slow
def test_runs_that_do_worse_than_earlier_ones_are_pruned_and_remembered(tmp_path):
    """Steps of 1e-6 learn nothing in the time in which others solve the task."""
    pytest.importorskip("optuna")
    space = ("--alg", "ars", "--env", "delayed-spring", "--vary", "learning_rate=0.000001,0.1")
    how = ("--variant", "C", "--batch", "8", "--fresh_seeds", "1", "--jobs", "2", "--library", "random")
    command = (*space, *how, "--set", "num_timesteps=100000", "--prune", "median", "--evaluations", "24")
    for _ in range(2):
        process = start(tmp_path, *command)
        output = process.communicate(timeout=300)[0]
        assert process.returncode == 0, output
        rows = list(csv.DictReader((tmp_path / "history.csv").open()))
        pruned = [row for row in rows if row["note"].startswith("pruned at ")]
        assert pruned and all(row["score"] == "nan" and float(row["learning_rate"]) < 0.01 for row in pruned)
        assert all(row["round"] != "0" for row in pruned)


@pytest.mark.parametrize("algorithm", ["ppo1", "trpo", "td3"])
@pytest.mark.parametrize("environment", ["leg-100hz", "leg-stochastic"])
def test_paper_has_a_search_space(algorithm, environment):
    definition = find_definition(parse(["--alg", algorithm, "--env", environment]))
    assert len(make_space(definition)) in (10, 14) and definition.fixed["alg"] == algorithm
