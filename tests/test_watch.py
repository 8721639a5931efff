"""The live view: frames of runs that grow, and the terminal."""

import os
import pty
import signal
import subprocess
import sys

import pytest
from programs import ROOT

from tdpo_baselines.storage.run_folder import RunConfig, RunFolder
from tdpo_baselines.watch import LEAVE, WatchedRun, find_runs, main, make_frame

HEADER = "iteration,total_timesteps,return_mean,payoff,wall_time,steps_per_second\n"


def make_run(path, num_rows=10, environment="leg", **limits) -> RunFolder:
    """Write a run with a row a second, of 100,000 timesteps each."""
    folder = RunFolder(path)
    folder.create()
    folder.write_config(RunConfig("tdpo", environment, 3, {}, {}, made_with=limits))
    rows = [f"{i},{100_000 * i},{-50.0 / i},{-1.0 / i},{float(i)},1e5\n" for i in range(1, num_rows + 1)]
    folder.progress_path.write_text("".join([HEADER, *rows]) if num_rows else "")
    return folder


def read(path) -> WatchedRun:
    run = WatchedRun(path)
    run.read()
    return run


def test_time_left_follows_from_the_budget_and_the_speed(tmp_path):
    run = read(make_run(tmp_path, num_timesteps=4_000_000).path)
    assert run.fraction_done(run.rows[-1]) == 0.25 and run.speed() == (1e5, pytest.approx(30))
    assert run.status() == "running, 25.0%, 0:00:30 left"
    assert run.numbers() == "iteration 10  1.00M timesteps  return -5  payoff -0.1  100,000 steps/s"


def test_iterations_may_be_the_limit_and_a_run_without_a_known_limit_has_none(tmp_path):
    assert (
        read(make_run(tmp_path / "a", num_timesteps=10**9, num_iterations=20).path)
        .status()
        .startswith("running, 50.0%")
    )
    assert read(make_run(tmp_path / "b").path).status() == "running"
    assert read(make_run(tmp_path / "c", num_timesteps=10**6).path).status() == "finished"


def test_run_that_is_silent_for_long_is_not_called_running(tmp_path):
    folder = make_run(tmp_path, num_timesteps=4_000_000)
    then = folder.progress_path.stat().st_mtime - 3600
    os.utime(folder.progress_path, (then, then))
    assert read(folder.path).status().startswith("no row for 1:00:0")


def test_new_rows_are_read_as_they_come(tmp_path):
    folder = make_run(tmp_path, num_rows=2)
    run = read(folder.path)
    with open(folder.progress_path, "a") as file:
        file.write("3,300000,-1.0,-0.5,3.0,1e5\n4,40")
    run.read()
    assert [row["iteration"] for row in run.rows] == [1, 2, 3]


def test_several_runs_share_the_screen(tmp_path):
    runs = [read(make_run(tmp_path / name, num_rows).path) for name, num_rows in (("a", 10), ("b", 1), ("c", 0))]
    for height in (9, 24, 60):
        lines = make_frame(runs, (70, height), column="payoff", is_ascii=True)
        text = "\n".join(lines)
        assert len(lines) <= height and max(map(len, lines)) <= 70
        assert "iteration 10 " in text and "iteration 1 " in text and "no row yet" in text
        assert ("*" in text) == (height > 9)


def test_folders_of_runs_are_searched_and_other_folders_left_out(tmp_path):
    make_run(tmp_path / "group" / "a")
    make_run(tmp_path / "b")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    known: dict = {}
    found = find_runs([str(tmp_path), str(tmp_path / "b")], known)
    assert [run.folder.path.name for run in found] == ["b", "a"]
    assert find_runs([str(tmp_path)], known) == found  # the same objects, which know their rows


def test_one_frame_is_printed(tmp_path, capsys):
    make_run(tmp_path / "a\x1b[2J", num_timesteps=4_000_000)
    assert main([str(tmp_path), "--once", "--y", "return_mean"]) == 0
    text = capsys.readouterr().out
    assert "a?[2J  tdpo on leg, seed 3" in text and "25.0%" in text and "\x1b" not in text
    assert main([str(tmp_path / "a\x1b[2J" / "best"), "--once"]) == 0
    assert capsys.readouterr().out.startswith("no runs yet in")


def test_invalid_input_is_one_line_with_exit_code_2(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere"), "--once"]) == 2
    assert "nowhere is not a folder; pass a run folder or a folder of runs" in capsys.readouterr().err


def test_terminal_shows_frames_until_interrupted_and_is_left_as_it_was(tmp_path):
    make_run(tmp_path / "a", num_timesteps=4_000_000)
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "tdpo_baselines.watch", str(tmp_path), "--every", "0.1"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    process = subprocess.Popen(command, cwd=ROOT, stdin=terminal, stdout=terminal, stderr=terminal)
    signal.signal(signal.SIGINT, before)
    os.close(terminal)
    text = ""
    while text.count("25.0%") < 2:
        text += os.read(controller, 65536).decode(errors="replace")
    process.send_signal(signal.SIGINT)
    while LEAVE not in text:
        text += os.read(controller, 65536).decode(errors="replace")
    assert process.wait(timeout=60) == 0 and "Traceback" not in text
    os.close(controller)
