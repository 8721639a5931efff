import numpy as np
import pytest

from envs.leg.params import POSITION, RATE
from run_scripts import leg_stochastic


@pytest.mark.slow
def test_smoke_has_every_seed_the_pd_controller_and_pictures(smoke, pictures_in, cells_of, monkeypatch):
    for name in ("NUM_LANDINGS", "NUM_PD_EPISODES"):
        monkeypatch.setattr(leg_stochastic, name, 2)
    out = smoke("leg_stochastic", "--only", "CMA")
    assert [row[:2] for row in cells_of(out / "leg-stochastic-landings.md")] == [
        ["CMA-ES, PD gains", "8"],
        ["PD by hand", ""],
    ]
    pictures = ["leg-stochastic-curves.png", "leg-stochastic-landings-cma-es-pd-gains-8.png"]
    assert pictures_in(out) == pictures


def test_standing_means_still_for_the_last_tenth_of_a_second():
    stands = leg_stochastic.stands
    states = np.zeros((500, 30))
    states[:, POSITION : POSITION + 3] = 0.2, np.radians(-45), np.radians(-90)
    states[:50, RATE + 1] = 10.0
    assert stands(states)
    states[-200, RATE + 1] = 1.0
    assert not stands(states)
    states[:, RATE + 1], states[-1, POSITION + 1] = 0.0, np.radians(-20)
    assert not stands(states)
