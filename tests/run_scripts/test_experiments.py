import json
import os
import sys
from types import SimpleNamespace

import pytest

HEADER = "iteration,total_timesteps,wall_time,payoff\n"


@pytest.fixture
def experiments(script):
    return script("experiments")


@pytest.fixture
def experiment(experiments):
    return experiments.Experiment("A title", "pendulum-nlr", range(2), 1000, ("--preset", "paper"))


def write_run(folder, timesteps):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "progress.csv").write_text(HEADER + f"1,{timesteps},6.0,-2.0\n")


def test_command_has_the_environment_the_steps_and_the_seed(experiment):
    command = experiment.command(3)
    assert command == ["--env", "pendulum-nlr", "--num_timesteps", "1000", "--seed", "3", "--preset", "paper"]
    assert experiment.shown_command().endswith("--num_timesteps 1000 --seed SEED --preset paper`")


def test_table_is_markdown(experiments):
    assert experiments.make_table("a | b", ["1 | 2", "3 | 4"]) == "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"


def test_experiment_is_finished_when_all_its_seeds_are(experiment, tmp_path):
    write_run(tmp_path / "0", 1000)
    assert not experiment.is_finished(tmp_path)
    write_run(tmp_path / "1", 999)
    assert not experiment.is_finished(tmp_path)
    write_run(tmp_path / "1", 1001)
    assert experiment.is_finished(tmp_path)


def test_unfinished_run_stops_the_report_and_a_missing_one_is_left_out(experiments, experiment, tmp_path):
    assert experiments.summarise_seeds(experiment, tmp_path / "missing") == {}
    write_run(tmp_path / "0", 1000)
    with pytest.raises(SystemExit, match="has unfinished runs; run `train` first"):
        experiments.summarise_seeds(experiment, tmp_path)


def test_evaluation_is_kept_until_the_run_goes_on(experiments, tmp_path, monkeypatch):
    write_run(tmp_path, 1000)
    summary = {"payoff": {"mean": -1.5, "min": -3.0}, "return": {"mean": -7.0, "min": -8.0}}
    calls = []

    def evaluate(run, *arguments):
        calls.append(arguments)
        return json.dumps({"summary": summary})

    monkeypatch.setattr(experiments, "evaluate", evaluate)
    expected = {"payoff": -1.5, "return": -7.0, "worst_payoff": -3.0, "steps": 1000.0, "seconds": 6.0}
    assert experiments.summarise(tmp_path, "--episodes", "5") == expected
    assert experiments.summarise(tmp_path, "--episodes", "5") == expected
    assert calls == [("--json", "--episodes", "5")]
    later = (tmp_path / "evaluation--episodes5.json").stat().st_mtime + 10
    os.utime(tmp_path / "progress.csv", (later, later))
    experiments.summarise(tmp_path, "--episodes", "5")
    assert len(calls) == 2


def test_curves_begin_after_the_last_stage_of_another_task(experiments):
    stages = [{"timesteps": 10, "gamma": 0.9}, {"timesteps": 20, "env.offset": 0.0}, {"timesteps": 40, "delta_max": 1}]
    assert experiments.find_end_of_other_tasks(stages) == 30
    assert experiments.find_end_of_other_tasks([{"timesteps": 10, "gamma": 0.9}]) == 0


def test_training_runs_every_seed_and_returns_the_worst_exit_code(experiments, experiment, tmp_path, monkeypatch):
    commands = []

    def run(command):
        commands.append(command)
        return SimpleNamespace(returncode=85 if "1" in command else 0)

    monkeypatch.setattr(experiments.subprocess, "run", run)
    assert experiments.train({"main": experiment}, tmp_path, jobs=1) == 85
    assert [command[command.index("--log_dir") + 1] for command in commands] == [
        str(tmp_path / "main" / "0"),
        str(tmp_path / "main" / "1"),
    ]


def test_command_line_trains_the_chosen_experiments_or_reports_on_all(experiments, experiment, tmp_path, monkeypatch):
    everything, seen = {"a": experiment, "b": experiment}, []
    monkeypatch.setattr(experiments, "train", lambda *arguments: seen.append(arguments) or 0)
    runs, out = tmp_path / "runs", tmp_path / "new" / "out"
    options = ["--runs", str(runs), "--out", str(out), "--only", "b", "--jobs", "3"]
    for action in ("train", "report"):
        monkeypatch.setattr(sys, "argv", ["script", action, *options])
        assert experiments.main("", everything, "", lambda *arguments: seen.append(arguments)) == 0
    assert seen == [({"b": experiment}, runs, 3), (everything, runs, out)] and out.is_dir()
