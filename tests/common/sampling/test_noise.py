"""Exploration noise: variance and spectrum of every colour, and that it continues from its state."""

import numpy as np
import pytest

from tdpo_baselines.common.sampling.noise import KINDS, Colour


def spectrum(signal: np.ndarray, segment: int) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies in cycles per step, and the mean power over segments and columns."""
    pieces = signal[: len(signal) // segment * segment].reshape(-1, segment, signal.shape[1])
    window = np.hanning(segment)[:, None]
    power = np.mean(np.abs(np.fft.rfft(window * pieces, axis=1)) ** 2, axis=(0, 2))
    return np.fft.rfftfreq(segment)[1:], power[1:] / np.sum(window**2)


def drawn(kind: str, bandwidth: float, num_steps: int = 2**17, columns: int = 16) -> np.ndarray:
    colour, rng = Colour.of(kind, bandwidth), np.random.default_rng(0)
    return colour.draw(rng, colour.initial(rng, columns), num_steps)[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bandwidth", [1.0, 0.3, 0.05])
def test_noise_has_unit_variance_from_the_first_step(kind, bandwidth):
    colour, rng = Colour.of(kind, bandwidth), np.random.default_rng(1)
    noise, _ = colour.draw(rng, colour.initial(rng, 20000), 3)  # [3, 20000]
    assert noise.std(axis=1) == pytest.approx(1, abs=0.03) and np.all(np.abs(noise.mean(axis=1)) < 0.03)
    assert drawn(kind, bandwidth).std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("kind", "bandwidth"), [("gaussian", 0.1), ("ou", 1.0)])
def test_gaussian_and_full_bandwidth_ou_noise_are_white(kind, bandwidth):
    _, power = spectrum(drawn(kind, bandwidth), 64)
    assert power == pytest.approx(np.ones(32), rel=0.1)


def test_ou_noise_has_the_spectrum_and_the_memory_of_its_filter():
    noise, pole = drawn("ou", 0.2), 0.8
    frequency, power = spectrum(noise, 256)
    expected = (1 - pole**2) / np.abs(1 - pole * np.exp(-2j * np.pi * frequency)) ** 2
    assert power[2:] == pytest.approx(expected[2:], rel=0.15)
    assert np.mean(noise[1:] * noise[:-1]) == pytest.approx(pole, abs=0.02)


@pytest.mark.parametrize("bandwidth", [1.0, 0.2])
def test_pink_noise_has_power_one_over_f(bandwidth):
    frequency, power = spectrum(drawn("pink", bandwidth, num_steps=2**19, columns=4), 2**13)
    band = (frequency > 8 * bandwidth * 0.5**12) & (frequency < 0.25 * bandwidth)
    slope = np.polyfit(np.log(frequency[band]), np.log(power[band]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.08)


def test_lowpass_noise_is_the_authors_filter_of_uniform_noise():
    """y <- a y + b x, x uniform in (-1, 1), a = 1/(1 + k), b = k/(1 + k), k = bandwidth/2, scaled to unit variance."""
    bandwidth, colour = 0.4, Colour.of("lowpass", 0.4)
    k = bandwidth / 2
    noise, _ = colour.draw(np.random.default_rng(3), np.zeros((1, 1)), 500)
    x = np.random.default_rng(3).uniform(-np.sqrt(3), np.sqrt(3), 500) / np.sqrt(3)
    y, expected = 0.0, []
    for value in x:
        y = y / (1 + k) + k / (1 + k) * value
        expected.append(np.sqrt(3 * ((1 + k) ** 2 - 1)) / k * y)
    assert noise[:, 0] == pytest.approx(np.array(expected), rel=1e-9)


def test_noise_in_pieces_is_the_noise_in_one():
    colour = Colour.of("pink", 0.5)
    first = colour.initial(np.random.default_rng(0), 2, 3)
    whole, last = colour.draw(np.random.default_rng(1), first, 30)
    rng = np.random.default_rng(1)
    before, between = colour.draw(rng, first, 12)
    after, end = colour.draw(rng, between, 18)
    np.testing.assert_array_equal(np.concatenate([before, after]), whole)
    np.testing.assert_array_equal(end, last)
