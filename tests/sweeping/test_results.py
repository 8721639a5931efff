"""Results of runs."""

import csv
import math

import pytest

from tdpo_baselines.sweeping.definition import Definition, make_runs
from tdpo_baselines.sweeping.results import Result, read_result, run_rows, setting_rows, table, write_csv

HEADER = "iteration,total_timesteps,episodes,return_mean,wall_time\n"


@pytest.fixture
def runs(tmp_path):
    fixed = {"env": "pendulum-nlr", "num_iterations": 20}
    return make_runs(Definition(fixed=fixed, cartesian={"gamma": [0.9, 1.0]}, seeds=(0, 1)), tmp_path)


def write_progress(run, num_rows: int, *, is_saved: bool) -> None:
    run.folder.create()
    rows = "".join(f"{i},{100 * i},{i},{-i if i > 1 else 'nan'},{0.5 * i}\n" for i in range(1, num_rows + 1))
    run.folder.progress_path.write_text(HEADER + rows + "21,2100")  # a row that is being written
    if is_saved:
        checkpoint = run.folder.checkpoints / f"iteration-{num_rows:09d}"
        checkpoint.mkdir()
        (checkpoint / "state.index").touch()


def test_run_is_finished_when_its_last_iteration_is_saved(runs):
    assert read_result(runs[0]).status == "new"
    write_progress(runs[0], 20, is_saved=False)
    assert read_result(runs[0]).status == "started"
    write_progress(runs[1], 19, is_saved=True)
    assert read_result(runs[1]).status == "started"
    write_progress(runs[2], 20, is_saved=True)
    assert read_result(runs[2]).status == "finished"


def test_last_return_is_over_the_last_tenth_of_the_timesteps_and_best_is_the_largest(runs):
    write_progress(runs[0], 20, is_saved=True)
    result = read_result(runs[0])
    assert result.last_return == -19.5 and result.best_return == -2.0
    assert result.total_timesteps == 2000 and result.wall_time == 10.0


def test_settings_have_the_statistics_of_their_finished_seeds(runs):
    results = [
        Result("finished", last_return=-1.0),
        Result("finished", last_return=-3.0),
        Result("failed"),
        Result("new"),
    ]
    first, second = setting_rows(runs, results)
    assert first["last_return"] == -2.0 and first["std"] == pytest.approx(math.sqrt(2)) and first["worst"] == -3.0
    assert second["failed"] == 1 and second["finished"] == 0 and math.isnan(second["last_return"])
    lines = table([first, second]).splitlines()
    assert lines[1].startswith("* gamma=0.9") and "2/2" in lines[1] and "0/2" in lines[2]


def test_csv_has_every_run_with_its_parameters(runs, tmp_path):
    path = tmp_path / "runs.csv"
    write_csv(path, run_rows(runs, [Result("new")] * 4))
    rows = list(csv.DictReader(path.open()))
    assert [(row["gamma"], row["seed"], row["status"]) for row in rows] == [
        (gamma, seed, "new") for gamma in ("0.9", "1.0") for seed in "01"
    ]
