import pytest

from run_scripts import suite


@pytest.mark.slow
def test_smoke_has_a_column_for_each_algorithm(smoke, cells_of, monkeypatch):
    monkeypatch.setitem(suite.DEVELOP, "delayed-spring", (400, -1e9))  # reached at once
    out = smoke("suite", "--only", "delayed-spring ARS", "delayed-spring CMA")
    (row,) = cells_of(out / "suite-develop-table.md")
    cells = dict(zip(("task", "steps", "level", *suite.ALGORITHMS), row))
    assert cells["task"] == "delayed-spring" and cells["tdpo"] == "" and cells["cma"].endswith(" M")
    assert cells_of(out / "suite-final-table.md") == []


def test_development_and_final_tasks_differ():
    assert not suite.DEVELOP.keys() & suite.FINAL.keys() and len(suite.DEVELOP.keys() | suite.FINAL.keys()) == 20
