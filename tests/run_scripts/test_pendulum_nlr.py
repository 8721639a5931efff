import pytest

from run_scripts import pendulum_nlr


def test_all_nine_variants_are_there():
    variants = {s.values["env"] for s in pendulum_nlr.settings("short")}
    assert variants == {"pendulum-nlr", *(f"pendulum-nlr-{v}" for v in range(2, 10))}


@pytest.mark.slow
def test_smoke(smoke, pictures_in, cells_of):
    out = smoke("pendulum_nlr", "--only", "pendulum-nlr TDPO")
    labels = ["TDPO", "TDPO, the paper's settings", "TDPO, the same read literally"]
    assert [row[1] for row in cells_of(out / "pendulum-nlr-table.md")] == labels
    assert pictures_in(out) == ["pendulum-nlr-best.png", "pendulum-nlr-curves.png", "pendulum-nlr-worst.png"]
