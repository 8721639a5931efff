"""The command `sweep`, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from programs import ROOT, deterministic_part, mpi_environment

from tdpo_baselines.sweep import main

TINY = ("--set", "num_trajectories=4", "num_branches=2", "hidden_sizes=8,8", "num_iterations=200")
SWEEP = ("--env", "pendulum-nlr", "--seeds", "0-3", "--vary", "gamma=0.99,1", *TINY, "--jobs", "2")


def start(folder, *arguments: str, **options) -> subprocess.Popen:
    """Start a sweep in a process group of its own."""
    command = [sys.executable, "-m", "tdpo_baselines.sweep", *arguments, "--out", str(folder)]
    variables = {**mpi_environment(), "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests/support")))}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=variables,
        start_new_session=True,
    )  # fmt: skip


def ends(folder) -> Counter:
    """Return how often each run has ended well."""
    path = folder / "journal.csv"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(line.split(",", 2)[2].removesuffix(",0") for line in lines if line.endswith(",0"))


def kill_after(process: subprocess.Popen, folder, num_runs: int) -> None:
    """Kill a sweep and all its processes when so many runs have ended."""
    while process.poll() is None and len(ends(folder)) < num_runs:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_sweep_killed_twice_repeats_no_finished_run_and_equals_an_undisturbed_one(tmp_path, program):
    killed = tmp_path / "killed"
    for num_runs in (2, 5):
        kill_after(start(killed, *SWEEP), killed, num_runs)
    last = start(killed, *SWEEP)
    assert "8/8" in last.communicate(timeout=300)[0] and last.returncode == 0
    done = ends(killed)
    assert max(done.values()) == 1 and len(done) >= 8 - 4  # a kill may come between the end of a run and its note
    journal = (killed / "journal.csv").read_text().splitlines()
    assert sum(line.endswith(",begins") for line in journal) <= 8 + 4  # two kills of two runs under way
    again = start(killed, *SWEEP)
    assert "8 runs, 8 finished" in again.communicate(timeout=300)[0] and ends(killed) == done

    undisturbed = start(tmp_path / "undisturbed", *SWEEP)
    assert undisturbed.communicate(timeout=300) and undisturbed.returncode == 0
    for run in sorted((killed / "runs").iterdir()):
        assert deterministic_part(run) == deterministic_part(tmp_path / "undisturbed/runs" / run.name)
    alone = (
        "--env=pendulum-nlr",
        "--gamma=1",
        "--seed=3",
        *TINY[:-1],
        "--num_iterations=200",
        "--log_dir",
        str(tmp_path / "alone"),
    )
    assert program("run", *alone).returncode == 0
    (same,) = (killed / "runs").glob("gamma=1~*-3")
    assert deterministic_part(tmp_path / "alone") == deterministic_part(same)


@pytest.mark.slow
def test_failed_runs_are_tried_twice_and_listed_while_the_others_finish(tmp_path):
    arguments = ("--vary", "env=pendulum-nlr,not_a_number:NotANumber-v0", *TINY[:-1], "num_iterations=3", "--jobs", "2")
    process = start(tmp_path, *arguments)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 1 and "failed: env=not_a_number:NotANumber-v0, seed 0" in output
    events = [line.rpartition(",")[2] for line in (tmp_path / "journal.csv").read_text().splitlines()]
    assert Counter(events) == {"begins": 3, "0": 1, "1": 2}
    (log,) = tmp_path.glob("runs/*not_a_number*/output.log")
    assert "error: iteration 1" in log.read_text()


@pytest.mark.slow
def test_runs_of_a_process_that_was_killed_are_tried_again_and_finish_once(tmp_path):
    process = start(tmp_path, *SWEEP)
    while process.poll() is None and not ends(tmp_path):
        time.sleep(0.01)
    last = (tmp_path / "journal.csv").read_text().splitlines()[-1]
    os.kill(int(last.split(",")[1]), signal.SIGKILL)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0 and "8/8" in output, output
    assert max(ends(tmp_path).values()) == 1


@pytest.mark.slow
def test_stopped_sweep_saves_and_continues(tmp_path):
    arguments = ("--env", "pendulum-nlr", "--seeds", "0-2", *TINY[:-1], "num_iterations=3000")
    process = start(tmp_path, *arguments)
    while not list(tmp_path.glob("runs/*/progress.csv")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert "the same command continues" in process.communicate(timeout=300)[0] and process.returncode == 85
    events = [line.rpartition(",")[2] for line in (tmp_path / "journal.csv").read_text().splitlines()]
    assert events == ["begins", "85"]
    status = start(tmp_path, *arguments, "--status")
    assert "0/3" in status.communicate(timeout=300)[0] and status.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--env is missing"),
        (("--env", "pendulum-nrl"), "did you mean 'pendulum-nlr'?"),
        (("--env", "pendulum-nlr", "--vary", "gama=0.9,1"), "did you mean '--gamma'?"),
        (("--env", "pendulum-nlr", "--vary", "gamma="), "--vary takes KEY=V1,V2"),
        (("--env", "pendulum-nlr", "--vary", "gamma=0.9", "--set", "gamma=1"), "both in fixed and in cartesian"),
        (("--env", "pendulum-nlr", "--vary", "gamma=0.9", "--vary", "gamma=1"), "--vary gamma is given twice"),
        (("--env", "pendulum-nlr", "--jobs", "0"), "--jobs must be at least 1"),
        (("--env", "pendulum-nlr", "--seeds", "x"), "--seeds must be like"),
        (("absent.json",), "cannot read absent.json"),
    ],
)
def test_invalid_input_is_one_line_and_starts_nothing(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_file_and_arguments_are_joined(tmp_path, capsys):
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({"fixed": {"env": "pendulum-nlr"}, "ovat": {"gamma": [0.99, 1.0]}}))
    assert (
        main([str(path), "--seeds", "0-1", "--vary", "num_branches=2,3", "--status", "--out", str(tmp_path / "out")])
        == 0
    )
    written = json.loads((tmp_path / "out/sweep.json").read_text())
    assert written["ovat"] == {"gamma": [0.99, 1.0]} and written["cartesian"] == {"num_branches": ["2", "3"]}
    assert capsys.readouterr().out.count("0/2") == 4


def test_unfinished_runs_are_submitted_as_an_array(tmp_path, capsys):
    arguments = ["--env", "pendulum-nlr", "--vary", "gamma=0.9,1", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--submit", "slurm", "--ranks", "2", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    tasks = shown.partition("tasks.txt:\n")[2].splitlines()[:2]
    assert "#SBATCH --array=0-1" in shown and not (tmp_path / "out/jobs").exists()
    assert "--gamma=0.9 " in tasks[0] and "--max_walltime=11:57:30" in tasks[0] and "--gamma=1" in tasks[1]
