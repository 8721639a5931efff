import pytest


@pytest.mark.slow
def test_smoke_has_the_published_scores(smoke, cells_of):
    out = smoke("baselines", "--only", "Pendulum-v1 TD3", "Pendulum-v1 TRPO")
    rows = cells_of(out / "baselines-scores.md")
    assert [row[:3] for row in rows] == [["td3", "Pendulum-v1", "20,000"], ["trpo", "Pendulum-v1", "200,000"]]
    assert [row[7] for row in rows] == ["-152", "-175"]
