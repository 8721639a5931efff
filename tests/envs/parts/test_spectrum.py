import numpy as np
import pytest

from envs.parts.spectrum import band_power, band_share, bin_power, total_power


@pytest.mark.parametrize("num", [20, 21])
def test_powers_are_those_of_the_fourier_transform(num):
    values = np.random.default_rng(num).normal(size=num)
    powers, mean = np.abs(np.fft.fft(values - values.mean())) ** 2, values.mean()
    assert bin_power(values, mean, 3) == pytest.approx(powers[3])
    assert band_power(values, mean, 2, 5) == pytest.approx(powers[2:6].sum())
    assert total_power(values, mean) == pytest.approx(powers[1 : num // 2 + 1].sum())


def test_share_of_a_band_that_holds_a_sine_is_one_and_of_others_zero():
    seconds = np.arange(500) / 50
    values = 3.0 + np.sin(2 * np.pi * 1.5 * seconds)
    assert band_share(values, 50.0, 1.0, 2.0) == pytest.approx(1.0, abs=1e-6)
    assert band_share(values, 50.0, 2.0, 25.0) == pytest.approx(0.0, abs=1e-6)
    assert band_share(np.full(500, 2.0), 50.0, 1.0, 2.0) == 0.0
