from importlib import import_module

import pytest


@pytest.fixture
def faults(mpirun, monkeypatch):
    monkeypatch.setenv("MPIRUN", mpirun)
    return import_module("run_scripts.faults")


@pytest.mark.slow
def test_run_disturbed_by_an_exception_ends_and_resumes_as_if_nothing_had_happened(faults, tmp_path, monkeypatch):
    short = [word if word != str(faults.NUM_ITERATIONS) else "150" for word in faults.RUN]
    monkeypatch.setattr(faults, "RUN", tuple(short))
    is_same, rows = faults.inflict_all(["exception on rank 1"], tmp_path)
    assert is_same and len(rows) == 1
    assert "`[rank 1] KeyError: 'planted'`" in rows[0] and rows[0].endswith("| 1 | same as undisturbed |")


def test_line_is_found_by_its_words(faults):
    assert faults.find_line("one\n  two words\nthree", "two", "three") == "two words"
    assert faults.find_line("one", "two") == "(nothing: one)"


def test_time_columns_are_not_compared(faults, tmp_path):
    (tmp_path / "progress.csv").write_text("iteration,wall_time,payoff\n1,0.5,-2\n")
    assert faults.deterministic_part(tmp_path) == "iteration,payoff\n1,-2"
