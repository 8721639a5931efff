import csv
import os
import sqlite3

import pytest
from programs import deterministic_part
from small_run import SMALL
from toy_learner import toy_config, toy_training

from tdpo_baselines.storage import tracking
from tdpo_baselines.storage.run_folder import RunFolder


class Recorder:
    """A tracker that keeps what it is told, and fails from a given row on."""

    def __init__(self, fails_at=99):
        self.steps, self.is_finished, self._fails_at = [], False, fails_at

    def log(self, row, step):
        if len(self.steps) == self._fails_at:
            raise OSError("no network")
        self.steps.append(step)

    def finish(self):
        self.is_finished = True


@pytest.fixture
def recorder(monkeypatch):
    """Return a function that puts a recorder in the place of a tracker."""
    monkeypatch.setattr(tracking, "is_installed", lambda name: True)

    def install(name, **how):
        made = Recorder(**how)
        monkeypatch.setitem(tracking.TRACKERS, name, lambda *_: made)
        return made

    return install


def test_unknown_tracker_is_refused_with_the_nearest_name():
    with pytest.raises(
        ValueError, match="--track wandbb is unknown, did you mean 'wandb'.*tensorboard, wandb, trackio"
    ):
        tracking.require(["wandbb"])


@pytest.mark.parametrize("name", tracking.TRACKERS)
def test_tracker_that_is_not_installed_names_its_extra(monkeypatch, name):
    monkeypatch.setattr(tracking, "is_installed", lambda name: False)
    with pytest.raises(ValueError, match=rf"--track {name} needs .*tdpo_baselines\[{name}\]"):
        tracking.require([name])


def test_run_keeps_its_name_and_no_other_text_becomes_one(tmp_path):
    folder = RunFolder(tmp_path / "a run: #1")
    folder.path.mkdir()
    name = tracking.tracked_name(folder)
    assert name.startswith("a-run-1-") and tracking.tracked_name(folder) == name
    (folder.path / "tracked_as.txt").write_text("../../etc/passwd")
    assert tracking.tracked_name(folder).startswith("a-run-1-")


def test_links_and_pipes_in_the_place_of_the_name_are_refused(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / "tracked_as.txt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="symbolic link"):
        tracking.tracked_name(folder)
    (tmp_path / "tracked_as.txt").unlink()
    os.mkfifo(tmp_path / "tracked_as.txt")
    with pytest.raises(ValueError, match="not a regular file"):
        tracking.tracked_name(folder)
    assert not (tmp_path / "elsewhere").exists()


def test_every_row_is_logged_over_timesteps_and_the_end_is_told(tmp_path, recorder):
    first, second = recorder("wandb"), recorder("tensorboard")
    assert toy_training(tmp_path, num_iterations=5, track=["wandb", "tensorboard"]).run() == 0
    with open(tmp_path / "progress.csv") as file:
        steps = [int(row["total_timesteps"]) for row in csv.DictReader(file)]
    assert first.steps == second.steps == steps and first.is_finished and second.is_finished


def test_tracker_that_fails_is_left_out_with_one_warning(tmp_path, recorder, capsys):
    failing, other = recorder("wandb", fails_at=2), recorder("trackio")
    assert toy_training(tmp_path, num_iterations=5, is_quiet=False, track=["wandb", "trackio"]).run() == 0
    assert len(failing.steps) == 2 and len(other.steps) == 5
    assert capsys.readouterr().out.count("warning: wandb failed (no network); the run goes on without it") == 1


def test_tracker_that_refuses_is_invalid_input_in_one_line(tmp_path, recorder, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no account,\nlog in")

    recorder("wandb")
    monkeypatch.setitem(tracking.TRACKERS, "wandb", refuse)
    with pytest.raises(ValueError, match="--track wandb: no account, log in; WANDB_MODE=offline needs no account"):
        tracking.Trackers(print).open(["wandb"], RunFolder(tmp_path), toy_config(), is_quiet=True)


@pytest.mark.slow
def test_run_with_a_missing_tracker_leaves_no_folder(program, tmp_path):
    missing = [name for name in tracking.TRACKERS if not tracking.is_installed(name)]
    if not missing:
        pytest.skip("all trackers are installed")
    process = program("run", *SMALL, "--log_dir", str(tmp_path / "run"), "--track", missing[0])
    assert process.returncode == 2 and process.stderr.count("\n") == 1 and missing[0] in process.stderr
    assert not (tmp_path / "run").exists()


def train_twice(program, path, tracker, monkeypatch, **variables):
    """Train two iterations with a tracker, then two more on two ranks; check that tracking changes nothing."""
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    for length, ranks, run, track in ((2, 1, path, tracker), (4, 2, path, tracker), (4, 1, f"{path}-plain", None)):
        arguments = ["--num_iterations", str(length), "--log_dir", str(run), "--resume"]
        process = program("run", *SMALL, *arguments, *(["--track", track] if track else []), ranks=ranks)
        assert process.returncode == 0, process.stderr
    assert deterministic_part(path) == deterministic_part(path.with_name("run-plain"))
    with open(path / "progress.csv") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_weights_and_biases_continues_the_same_run_offline(program, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    rows = train_twice(program, tmp_path / "run", "wandb", monkeypatch, WANDB_MODE="offline")
    name = (tmp_path / "run" / "tracked_as.txt").read_text().strip()
    sessions = sorted((tmp_path / "run" / "wandb").glob(f"offline-run-*-{name}"))
    assert len(sessions) == 2  # rank 0 alone
    for session, own in zip(sessions, (rows[:2], rows[2:])):
        told = (session / f"run-{name}.wandb").read_bytes()
        assert all(row["return_mean"].encode() in told for row in own) and b"hidden_sizes" in told


@pytest.mark.slow
def test_trackio_continues_the_same_run_on_this_machine(program, tmp_path, monkeypatch):
    pytest.importorskip("trackio", reason="conflicts with the pinned pillow, see setup.py")
    rows = train_twice(program, tmp_path / "run", "trackio", monkeypatch, TRACKIO_DIR=tmp_path / "trackio")
    name = (tmp_path / "run" / "tracked_as.txt").read_text().strip()
    with sqlite3.connect(tmp_path / "trackio" / "tdpo_baselines.db") as database:
        told = database.execute("select run_name, step from metrics order by step").fetchall()
    assert told == [(name, int(row["total_timesteps"])) for row in rows]
