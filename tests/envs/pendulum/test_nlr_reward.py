import numpy as np
import pytest

from envs.pendulum import nlr_reward
from envs.pendulum.nlr import nlr_kernel


def slow_reward_terms(params, angles):
    """Return the paper's formulas, computed with NumPy's FFT."""
    magnitudes = np.abs(np.fft.fft(angles))
    positive = magnitudes[1:101]
    norm = np.sqrt(positive @ positive)
    standardised = positive / (norm + 1e-6)
    frequencies = np.arange(1, 101) * 0.1
    in_band = (frequencies > params.band_low_hz - 0.01) & (frequencies < params.band_high_hz + 0.01)
    excess = norm / 200 / params.amplitude - 1
    frequency = 0.1 * (np.sum(standardised[in_band] ** 2) - 1)
    return (
        frequency,
        -abs(magnitudes[0] * np.sign(angles.sum()) / 200 - params.offset),
        -excess if excess >= 0 else 1e-4 * excess,
    )


@pytest.mark.parametrize("variant", range(1, 10))
def test_reward_equals_the_papers_formulas(variant):
    params = nlr_kernel(variant).params
    rng = np.random.default_rng(variant)
    for scale in (1e-3, 0.3, 20.0):
        angles = rng.standard_normal(200).cumsum() * scale
        expected = slow_reward_terms(params, angles)
        np.testing.assert_allclose(nlr_reward.reward_terms(params, angles), expected, rtol=1e-9, atol=1e-12)
        assert nlr_reward.trajectory_reward(params, angles) == pytest.approx(1.3e4 * sum(expected), rel=1e-9)


def test_pure_sine_in_band_is_measured_exactly():
    seconds = np.arange(200) * 0.05
    angles = 0.524 + 2 * 0.28 * np.sin(2 * np.pi * 1.8 * seconds)
    offset, amplitude, band_share = nlr_reward.spectrum_measures(nlr_kernel(1).params, angles)
    assert offset == pytest.approx(0.524, abs=1e-12)
    assert amplitude == pytest.approx(0.28, abs=1e-12)  # ||Theta+|| / 200 of a sine is half its peak
    assert band_share == pytest.approx(1.0, abs=1e-6)


def test_bins_of_a_band_include_its_ends():
    assert (nlr_reward.first_bin(1.7), nlr_reward.last_bin(2.0)) == (17, 20)
    assert (nlr_reward.first_bin(1.71), nlr_reward.last_bin(1.99)) == (18, 19)
