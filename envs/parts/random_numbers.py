"""Normal numbers that are a function of a seed and a counter, so that a state needs no generator."""

import math

from numba import njit, uint64


@njit
def _mix(x):
    """Return 64 well-mixed bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit
def _uniform(key, counter):
    """Return a number in (0, 1]."""
    bits = _mix(key + uint64(counter) * uint64(0x9E3779B97F4A7C15))
    return (float(bits >> uint64(11)) + 1.0) / 9007199254740992.0


@njit
def normal_pair(seed, counter):
    """Return two independent normal numbers for a seed in [0, 1) and a counter of at least 0."""
    key = _mix(uint64(seed * 9007199254740992.0) + uint64(1))
    radius = math.sqrt(-2.0 * math.log(_uniform(key, 2 * counter)))
    angle = 2.0 * math.pi * _uniform(key, 2 * counter + 1)
    return radius * math.cos(angle), radius * math.sin(angle)
