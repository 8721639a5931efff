"""The paper's non-local reward: the angle of a whole episode in time and frequency.

It should oscillate about an offset, inside a frequency band, with a bounded amplitude.
"""

import math
from typing import NamedTuple

from tdpo_baselines.common.networks.code_cache import cached_jit
from tdpo_baselines.common.networks.templates import compile_template

from ..parts.spectrum import band_power, total_power

NUM_STEPS = 200
DT = 0.05  # s
REWARD_SCALE = 1.3e4  # C_R of the paper


class NLRParams(NamedTuple):
    """Targets of the oscillation, and how it starts and is observed."""

    band_low_hz: float
    band_high_hz: float
    offset: float  # rad
    amplitude: float  # rad
    start_scale: float
    use_cos_sin: bool


@cached_jit()
def first_bin(frequency):
    """Return the lowest Fourier bin at or above a frequency in Hz."""
    return math.ceil(frequency * NUM_STEPS * DT - 1e-6)


@cached_jit()
def last_bin(frequency):
    """Return the highest Fourier bin at or below a frequency in Hz."""
    return math.floor(frequency * NUM_STEPS * DT + 1e-6)


@compile_template
def spectrum_measures(params, angles):
    """Return the mean angle, ||Theta+|| / 200 and the in-band share of ||Theta+||^2.

    Theta+ are the magnitudes of Fourier bins 1..100, 0.1 Hz apart. Only the band's own bins are transformed.
    """
    offset = angles.mean()
    norm = math.sqrt(total_power(angles, offset))
    in_band = band_power(angles, offset, first_bin(params.band_low_hz), last_bin(params.band_high_hz))
    return offset, norm / angles.shape[0], in_band / (norm + 1e-6) ** 2


@compile_template
def reward_terms(params, angles):
    """Return R_freq, R_offset and R_amp of the paper's appendix."""
    offset, amplitude, band_share = spectrum_measures(params, angles)
    excess = amplitude / params.amplitude - 1.0
    amplitude_term = -excess if excess >= 0.0 else 1e-4 * excess
    return 0.1 * (band_share - 1.0), -abs(offset - params.offset), amplitude_term


@compile_template
def trajectory_reward(params, angles):
    """Return the reward of a finished episode."""
    frequency, offset, amplitude = reward_terms(params, angles)
    return REWARD_SCALE * (frequency + offset + amplitude)
