import random
from importlib import import_module

import pytest


@pytest.fixture
def soak(mpirun, monkeypatch):
    monkeypatch.setenv("MPIRUN", mpirun)
    return import_module("run_scripts.soak")


@pytest.mark.slow
def test_killed_runs_end_as_if_nothing_had_happened(soak, tmp_path, monkeypatch):
    short = {"tdpo": soak.SETTINGS["tdpo"].replace("num_iterations=1000", "num_iterations=60")}
    monkeypatch.setattr(soak, "SETTINGS", short)
    (tmp_path / "disk").mkdir()
    killed = soak.Soak(tmp_path, random.Random(0))
    killed.run_kills(1)
    assert killed.num_kills >= 1 and killed.counts["ended", "tdpo"] >= 1 and not killed.failures
    assert "No failure." in soak.table(killed, 60.0)


def test_session_that_begins_anew_or_leaves_something_is_a_failure(soak, tmp_path):
    class Ended:
        processes = staticmethod(list)

    (tmp_path / "scratch").mkdir()
    watched, newest = soak.Soak(tmp_path, random.Random(0)), [tmp_path / "iteration-000000020"]
    watched.check(Ended, 0, "resumed at iteration 20", newest, is_killed=False)
    for code, output, message in (
        (-1, "", "it hung"),
        (0, "resumed at iteration 10", "the newest checkpoint was iteration-000000020"),
        (1, "Traceback (most recent call last)", "traceback"),
    ):
        with pytest.raises(soak.Failure, match=message):
            watched.check(Ended, code, output, newest, is_killed=False)
    (tmp_path / "scratch" / "ompi.1").touch()
    watched.check(Ended, -9, "", newest, is_killed=True)
    with pytest.raises(soak.Failure, match="left files"):
        watched.check(Ended, 1, "", newest, is_killed=False)
