import pytest

from run_scripts import horizon


def test_rates_have_equally_many_episodes():
    for scale in ("short", "paper"):
        steps = {s.panel: s.values["num_timesteps"] / horizon.HORIZONS[s.panel] for s in horizon.settings(scale)}
        assert set(steps.values()) == {horizon.NUM_EPISODES}


@pytest.mark.slow
def test_smoke(smoke, pictures_in, cells_of):
    out = smoke("horizon", "--only", "pendulum-20hz")
    rows = cells_of(out / "horizon-table.md")
    assert [row[1] for row in rows] == ["TDPO", "TRPO", "PPO1", "TD3"]
    assert all(-20 < float(row[2]) < 0 for row in rows)  # per step
    assert pictures_in(out) == ["horizon-curves.png"]
