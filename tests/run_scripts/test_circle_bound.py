"""The bound on starts of the whole circle that can be solved."""

import numpy as np
import pytest

from envs.pendulum import nlr
from run_scripts import circle_bound

PARAMS = nlr.nlr_kernel().params


def path(angle):
    """Return a path that goes straight from an angle to the oscillation asked for, with the mean asked for."""
    time = np.arange(200)
    wanted = PARAMS.offset + 0.2 * np.sin(2 * np.pi * 18 * time / 200)
    angles = np.empty(200)
    angles[0] = angle
    for k in range(1, 200):
        angles[k] = angles[k - 1] + np.clip(wanted[k] - angles[k - 1], -0.3, 0.3)
    angles[100:] -= 2 * (angles.mean() - PARAMS.offset)
    return angles


@pytest.mark.parametrize("angle", [-2.0, 0.5, 3.0])
@pytest.mark.parametrize("price", circle_bound.PRICES)
def test_no_path_has_less_energy_than_the_bound(angle, price):
    angles = path(angle)
    assert np.abs(np.diff(angles)).max() <= circle_bound.MAX_MOVE
    energies = np.abs(np.fft.rfft(angles - angles.mean())[1:]) ** 2
    is_in_band = (np.arange(1, 101) >= 17) & (np.arange(1, 101) <= 20)
    excess = energies.sum() - circle_bound.most_energy(PARAMS)
    bound = circle_bound.least_energy(angle, PARAMS, price)
    assert bound <= energies[~is_in_band].sum() + price * max(excess, 0)


def test_far_starts_cannot_be_solved_and_near_ones_may_be():
    may_be_solved, shares = circle_bound.bounds(PARAMS, np.array([-3.0, 0.5]))
    assert may_be_solved.tolist() == [False, True]
    assert shares[0] < 0.2 and shares[1] > 0.99


@pytest.mark.slow
def test_the_table_has_all_variants(tmp_path, monkeypatch):
    monkeypatch.setattr(circle_bound, "NUM_ANGLES", 3)
    monkeypatch.setattr("sys.argv", ["circle_bound", "--out", str(tmp_path)])
    assert circle_bound.main() == 0
    assert (tmp_path / "pendulum-nlr-circle.md").read_text().count("\n") == 2 + len(nlr.VARIANTS)
