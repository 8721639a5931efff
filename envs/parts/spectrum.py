"""Spectra of recorded histories, for rewards that are paid for a whole trajectory."""

import math

from numba import njit


@njit(error_model="numpy")
def band_share(values, rate_hz, low_hz, high_hz):
    """Return the share of the power about the mean that is between two frequencies, from 0 to 1."""
    num, mean = values.shape[0], values.mean()
    first = max(1, math.ceil(low_hz * num / rate_hz - 1e-6))
    last = min(num // 2, math.floor(high_hz * num / rate_hz + 1e-6))
    return band_power(values, mean, first, last) / (math.sqrt(total_power(values, mean)) + 1e-6) ** 2


@njit(error_model="numpy")
def total_power(values, mean):
    """Return the power in the Fourier bins 1 to N/2, by Parseval's theorem: all but the Nyquist bin count twice."""
    num, energy, nyquist = values.shape[0], 0.0, 0.0
    for i in range(num):
        deviation = values[i] - mean
        energy += deviation * deviation
        nyquist += deviation if i % 2 == 0 else -deviation
    if num % 2 == 1:
        nyquist = 0.0  # there is no such bin
    return 0.5 * (num * energy + nyquist * nyquist)


@njit(error_model="numpy")
def band_power(values, mean, first, last):
    """Return the power in the Fourier bins from `first` to `last`."""
    power = 0.0
    for k in range(first, last + 1):
        power += bin_power(values, mean, k)
    return power


@njit(error_model="numpy")
def bin_power(values, mean, k):
    """Return |FFT(values - mean)[k]|^2, rotating a phasor instead of calling the sine for every value."""
    turn = 2.0 * math.pi * k / values.shape[0]
    turn_cos, turn_sin = math.cos(turn), math.sin(turn)
    c, s = 1.0, 0.0
    real, imag = 0.0, 0.0
    for i in range(values.shape[0]):
        deviation = values[i] - mean
        real += deviation * c
        imag += deviation * s
        c, s = c * turn_cos - s * turn_sin, c * turn_sin + s * turn_cos
    return real * real + imag * imag
