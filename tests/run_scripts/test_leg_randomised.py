import numpy as np
import pytest

from run_scripts import leg_randomised


@pytest.mark.slow
def test_smoke_has_maps_and_their_means(smoke, pictures_in, cells_of, monkeypatch):
    monkeypatch.setattr(leg_randomised, "DELAYS", (2, 4))
    monkeypatch.setattr(leg_randomised, "MASSES", (0.9, 1.0))
    out = smoke("leg_randomised")
    rows = cells_of(out / "leg-randomised-map-table.md")
    assert [row[:2] for row in rows[3:6]] == [["TDPO, randomised", region] for region in leg_randomised.REGIONS]
    assert rows[6][0] == "TDPO goes on" and len(rows) == 12
    names = [f"leg-randomised-{kind}.png" for kind in ("curves", "landings", "payoffs")]
    assert pictures_in(out) == names


def test_maps_frame_the_range_of_training():
    grid = np.zeros((len(leg_randomised.DELAYS), len(leg_randomised.MASSES)))
    figure = leg_randomised.draw_maps({"TDPO": grid, "TDPO, randomised": grid + 1}, "share")
    plain, drawn = (panel.lines[0].get_xydata() for panel in figure.axes[:2])
    np.testing.assert_allclose(np.ptp(plain, axis=0), (1, 1))
    np.testing.assert_allclose(np.ptp(drawn, axis=0), (3, 5))


def test_region_is_averaged_over_its_delays_and_masses_and_seeds():
    found = np.zeros((2, 2, len(leg_randomised.DELAYS), len(leg_randomised.MASSES)))
    found[0, 0, 4, 4], found[:, 1, 4, 4] = -2.0, 1.0
    assert leg_randomised.row("a", "as in the model", found) == ["a", "as in the model", "100 %", "-1", "-2, 0"]
    assert leg_randomised.row("a", "everywhere", found)[2] == "1 %"
