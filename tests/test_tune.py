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
        ((*SPACE, "--library", "random", "--sweep", "absent"), "cannot read absent/sweep.json"),
        (("absent.json", "--library", "random"), "cannot read absent.json"),
    ],
)
def test_invalid_input_is_one_line_and_starts_nothing(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("algorithm", ["ppo1", "trpo", "td3"])
@pytest.mark.parametrize("environment", ["leg-100hz", "leg-stochastic"])
def test_paper_has_a_search_space(algorithm, environment):
    definition = find_definition(parse(["--alg", algorithm, "--env", environment]))
    assert len(make_space(definition)) in (10, 14) and definition.fixed["alg"] == algorithm
