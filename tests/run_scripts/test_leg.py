import pytest


@pytest.mark.slow
def test_smoke_has_the_pd_controllers_and_pictures(smoke, pictures_in, cells_of):
    out = smoke("leg", "--only", "leg TDPO", "PPO1, tuned")
    landings = {row[0]: row for row in cells_of(out / "leg-landings.md")}
    assert list(landings) == ["TDPO, 20", "PPO1, tuned, 20", "PD by hand", "PD by random search"]
    assert landings["PD by random search"][-1] == "yes" and landings["TDPO, 20"][-1] == "no"
    assert pictures_in(out) == ["leg-best.png", "leg-curves.png", "leg-worst.png"]
