import pytest

from run_scripts import contest, searches


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    monkeypatch.setattr(searches, "TUNED", tmp_path / "tuned")
    return tmp_path / "tuned"


def test_rivals_enter_when_they_are_tuned(tuned):
    assert {s.label for s in contest.settings("short")} == {"TDPO, no options"}
    winner = next(search for search in contest.searches("short") if search.alg == "cma").winner("short")
    winner.parent.mkdir(parents=True)
    winner.write_text("{}")
    assert {s.label for s in contest.settings("short")} == {"TDPO, no options", "CMA-ES, tuned"}


@pytest.mark.slow
def test_smoke_tunes_rivals_and_trains_the_winners(smoke, tuned, cells_of, monkeypatch):
    monkeypatch.setattr(contest, "LABELS", {"cma": "CMA-ES"})
    out = smoke("contest", "--only", "pendulum-nlr")
    assert [row[1] for row in cells_of(out / "contest-table.md")] == ["TDPO, no options", "CMA-ES, tuned"]
    assert (tuned / "smoke/cma-pendulum-nlr-optuna.json").exists()
