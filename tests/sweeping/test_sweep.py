"""A sweep on disk."""

import pytest

from tdpo_baselines.sweeping.definition import Definition, make_runs
from tdpo_baselines.sweeping.sweep import Sweep, lock

DEFINITION = Definition(fixed={"env": "pendulum-nlr", "num_iterations": 2}, cartesian={"gamma": [0.9, 1.0]})


def test_new_sweep_has_all_runs_to_train_and_its_tables(tmp_path):
    sweep = Sweep(make_runs(DEFINITION, tmp_path), tmp_path)
    assert sweep.unfinished() == sweep.runs and len(sweep.runs) == 2
    assert "0/1" in sweep.summary() and (tmp_path / "runs.csv").exists() and (tmp_path / "settings.csv").exists()


def test_run_that_ends_with_an_error_is_listed_as_failed_until_it_is_finished(tmp_path, capsys):
    sweep = Sweep(make_runs(DEFINITION, tmp_path), tmp_path)
    first, second = sweep.runs
    sweep.journal.write(first.name, 1)
    sweep.report(first, 1)
    assert "failed" in capsys.readouterr().out and sweep.has_failed()
    sweep.journal.write(second.name, 85)
    sweep.report(second, 85)
    assert sweep.results[1].status == "new"  # it was stopped, and goes on later
    again = Sweep(make_runs(DEFINITION, tmp_path), tmp_path)
    assert f"failed: gamma=0.9, seed 0; see {first.folder.path}/output.log" in again.summary()
    assert again.unfinished() == again.runs


def test_second_process_in_the_same_folder_is_refused(tmp_path):
    with lock(tmp_path), pytest.raises(ValueError, match="another process is training in"):
        lock(tmp_path)
    lock(tmp_path).close()
