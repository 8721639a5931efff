import pytest


@pytest.mark.slow
def test_table_has_every_finished_task_with_score_and_steps(script, shrink, folders, monkeypatch):
    suite, experiments = script("suite"), script("experiments")
    monkeypatch.setattr(suite, "EPISODES", ("--episodes", "3"))
    monkeypatch.setitem(suite.DEVELOP, "delayed-spring", (400, -1e9))  # reached at once
    small = {name: shrink(experiment, range(2), 400) for name, experiment in suite.EXPERIMENTS.items()}
    runs, out = folders
    assert (
        experiments.train({name: small[name] for name in ("delayed-spring-ars", "delayed-spring-cma")}, runs, jobs=2)
        == 0
    )
    suite.report(small, runs, out)
    header, _, *rows = (out / "suite-develop-table.md").read_text().splitlines()
    cells = dict(zip(header.strip("| ").split(" | "), rows[0][2:-2].split(" | ")))
    assert len(rows) == 1 and cells["task"] == "delayed-spring" and cells["tdpo"] == ""
    assert cells["ars"].count(",") == 1 and cells["cma"].endswith(" M")
    assert len((out / "suite-final-table.md").read_text().splitlines()) == 2


def test_development_and_final_tasks_differ(script):
    suite = script("suite")
    assert not suite.DEVELOP.keys() & suite.FINAL.keys() and len(suite.DEVELOP.keys() | suite.FINAL.keys()) == 20
