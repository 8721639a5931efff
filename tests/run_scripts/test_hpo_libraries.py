import pytest

from run_scripts import hpo_libraries, searches


@pytest.mark.slow
def test_smoke_draws_searches_and_winners(smoke, pictures_in, cells_of, tmp_path, monkeypatch):
    monkeypatch.setattr(searches, "TUNED", tmp_path / "tuned")
    out = smoke("hpo_libraries", "--only", "ppo1-leg-100hz-random", "PPO1 random")
    assert [row[:2] for row in cells_of(out / "hpo-libraries-table.md")] == [["leg-100hz, PPO1", "random search"]]
    assert pictures_in(out) == ["hpo-libraries-curves.png", "hpo-libraries.png"]


def test_best_scores_are_read_from_the_history(tmp_path):
    (tmp_path / "a.csv").write_text("evaluation,score,best_score\n0,-3,-3\n1,-5,-3\n2,-1,-1\n")
    assert hpo_libraries.read_best(tmp_path / "a.json").tolist() == [-3, -3, -1]
