"""The program as a user runs it: on any number of ranks, killed and resumed."""

import csv
import importlib.util
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys

import pytest
from programs import ROOT, deterministic_part, kill_after_rows, rank_process, wait_for_rows
from small_run import SMALL

import tdpo_baselines

pytestmark = pytest.mark.slow

LENGTH = "120"  # iterations: long enough to be killed on the way


@pytest.fixture(scope="module")
def reference(program, tmp_path_factory):
    """Return an undisturbed run on one rank."""
    folder = tmp_path_factory.mktemp("reference") / "run"
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--checkpoint_every", "7", "--log_dir", str(folder))
    assert process.returncode == 0, process.stderr
    return folder


def test_progress_has_the_promised_columns(reference):
    header = (reference / "progress.csv").read_text().splitlines()[0]
    assert header.startswith(
        "iteration,total_timesteps,episodes,return_mean,discounted_return_mean,payoff,wall_time,steps_per_second"
    )
    for name in ("gradient_norm", "cg_residual", "step_w", "is_trust_region_bound", "exploration_std"):
        assert name in header


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_run_is_the_same_to_the_byte_on_any_number_of_ranks(program, tmp_path, reference, ranks):
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(tmp_path), ranks=ranks)
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path) == deterministic_part(reference)
    assert process.stdout.count(f"finished: {LENGTH} iterations") == 1


def test_killed_at_a_random_moment_and_resumed_on_other_ranks_it_is_the_same(
    background_program, program, tmp_path, reference
):
    arguments = (*SMALL, "--num_iterations", LENGTH, "--checkpoint_every", "3", "--log_dir", str(tmp_path / "run"))
    rng = random.Random()
    for ranks in (2, 1):
        while True:
            process = background_program("run", *arguments, "--resume", ranks=ranks)
            kill_after_rows(process, tmp_path / "run", rng.randrange(2, 60))
            if process.returncode != 0:
                break
            shutil.rmtree(tmp_path / "run")  # it was faster than the kill: once more
    with open(tmp_path / "run" / "progress.csv", "a") as file:
        file.write("119,12")  # a torn line, as a kill inside a write would leave
    process = program("run", *arguments, "--resume", ranks=3)
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path / "run") == deterministic_part(reference)


def test_resume_of_a_finished_run_says_so(program, reference):
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(reference), "--resume")
    assert process.returncode == 0
    assert "finished already" in process.stdout


def test_walltime_stops_with_its_own_code_and_the_run_goes_on_the_same(program, tmp_path, reference):
    arguments = (*SMALL, "--num_iterations", LENGTH, "--log_dir", str(tmp_path / "run"))
    process = program("run", *arguments, "--max_walltime", "00:00:00")
    assert process.returncode == 85 and "continue with --resume" in process.stdout
    assert program("run", *arguments, "--resume", ranks=2).returncode == 0
    assert deterministic_part(tmp_path / "run") == deterministic_part(reference)


def test_clock_that_jumps_changes_neither_the_run_nor_its_times(tmp_path, reference):
    code = (
        "import random, sys, time; from tdpo_baselines import run\n"
        "now, generator = time.time, random.Random(0)\n"
        "time.time = lambda: now() + generator.uniform(-1e7, 1e7)\n"
        "time.time_ns = lambda: int(1e9 * time.time())\n"
        "sys.exit(run.main())"
    )
    limits = ("--max_walltime", "01:00:00", "--checkpoint_minutes", "0.001", "--checkpoint_every", "1000")
    arguments = (*SMALL, *limits, "--num_iterations", LENGTH, "--log_dir", str(tmp_path / "run"))
    process = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path / "run") == deterministic_part(reference)
    with open(tmp_path / "run/progress.csv") as file:
        times = [float(row["wall_time"]) for row in csv.DictReader(file)]
    assert times == sorted(times) and 0 < times[0] and times[-1] < 3600


def test_interrupt_checkpoints_and_stops(background_program, tmp_path):
    process = background_program("run", *SMALL, "--log_dir", str(tmp_path / "run"))
    wait_for_rows(process, tmp_path / "run")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 85, output
    assert "stopped at iteration" in output
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 1


def test_signal_to_any_rank_stops_them_all(background_program, tmp_path):
    process = background_program("run", *SMALL, "--log_dir", str(tmp_path / "run"), ranks=2)
    wait_for_rows(process, tmp_path / "run")
    os.kill(rank_process(str(tmp_path), 1), signal.SIGUSR1)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 85 and "(SIGUSR1)" in output, output


def test_closed_output_does_not_end_the_run(background_program, tmp_path):
    process = background_program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(tmp_path / "run"))
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 0
    assert len(deterministic_part(tmp_path / "run")) == int(LENGTH) + 1
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 1


def test_torn_newest_checkpoint_is_skipped_and_the_run_is_the_same(program, tmp_path, reference):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    newest = max((folder / "checkpoints").iterdir()) / "state.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:100])
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 0 and "torn or corrupt" in process.stderr
    assert deterministic_part(folder) == deterministic_part(reference)


def test_resume_without_a_readable_checkpoint_touches_nothing(program, tmp_path, reference):
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    for data in folder.glob("checkpoints/*/state.data*"):
        data.write_bytes(b"")
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 2 and "none of the checkpoints" in process.stderr
    assert (folder / "progress.csv").read_bytes() == (reference / "progress.csv").read_bytes()


def test_tensorboard_events_are_written_or_the_remedy_is_named(program, tmp_path):
    process = program("run", *SMALL, "--num_iterations", "2", "--log_dir", str(tmp_path / "run"), "--tensorboard")
    if importlib.util.find_spec("tensorboard") is None:
        assert process.returncode == 2 and "tdpo_baselines[tensorboard]" in process.stderr
        assert not (tmp_path / "run").exists()
    else:
        assert process.returncode == 0 and list((tmp_path / "run" / "tensorboard").glob("events*"))


class Malicious:
    """An object whose pickle writes a file when it is loaded."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def test_pickles_in_a_run_folder_are_never_loaded(program, tmp_path, reference):
    folder, trace = tmp_path / "run", tmp_path / "executed"
    shutil.copytree(reference, folder)
    harmful = pickle.dumps(Malicious(trace))
    newest = max((folder / "checkpoints").iterdir())
    harmed = (folder / "policy.pkl", folder / "env.pkl", folder / "best" / "theta.pkl", newest / "state.pkl")
    for path in (*harmed, newest / "state.index"):
        path.write_bytes(harmful)
    (folder / "state.npy").write_bytes(harmful)
    assert program("evaluate", str(folder), "--episodes", "1").returncode == 0
    assert program("evaluate", str(folder), "--episodes", "1", "--best").returncode == 0
    assert program("plot", str(folder), "--out", str(tmp_path / "curves.png")).returncode == 0
    assert tdpo_baselines.load(folder).evaluate(num_episodes=1).results["return"][0] < 0
    process = program("run", *SMALL, "--num_iterations", LENGTH, "--log_dir", str(folder), "--resume")
    assert process.returncode == 0 and "torn or corrupt" in process.stderr
    assert not trace.exists()
    pickle.loads(harmful).close()
    assert trace.exists()  # it would have worked


def test_config_json_says_how_the_run_was_made(reference):
    config = json.loads((reference / "config.json").read_text())
    assert config["environment"] == "pendulum-nlr" and config["options"]["num_trajectories"] == 7
    made_with = config["made_with"]
    assert made_with["num_ranks"] == 1 and made_with["tensorflow"] and made_with["preset"] == "none"


def test_evaluation_loads_by_path_alone_and_draws(program, reference, tmp_path):
    picture = tmp_path / "swing.png"
    process = program("evaluate", str(reference), "--episodes", "3", "--plot", str(picture))
    assert process.returncode == 0, process.stderr
    for name in ("return", "payoff", "offset", "amplitude", "band_share"):
        assert re.search(rf"^{name} ", process.stdout, re.MULTILINE)
    assert picture.read_bytes().startswith(b"\x89PNG")

    checkpoint = max((reference / "checkpoints").iterdir())
    first = program("evaluate", str(checkpoint), "--episodes", "3", "--json")
    results = json.loads(first.stdout)
    assert results["iteration"] == int(LENGTH) and len(results["episodes"]["return"]) == 3
    assert program("evaluate", str(reference), "--episodes", "3", "--json").stdout == first.stdout
