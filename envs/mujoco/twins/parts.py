"""Parts of Gymnasium's tasks, with NumPy's order of additions."""

import math
from importlib.util import find_spec
from pathlib import Path

from numba import njit


def asset(name: str) -> Path:
    """Return a model file of Gymnasium's."""
    spec = find_spec("gymnasium")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "envs" / "mujoco" / "assets" / name


def number(**sizes: int) -> dict[str, str]:
    """Return observations without units, numbered: number(qpos=2) has qpos_0 and qpos_1."""
    return {f"{name}_{i}": "1" for name, size in sizes.items() for i in range(size)}


@njit
def copy_into(observation, first, values):
    """Fill in the observation from `first` on; return the place behind."""
    for i in range(values.shape[0]):
        observation[first + i] = values[i]
    return first + values.shape[0]


@njit
def clip(value, low, high):
    """Return the value inside [low, high]."""
    return min(max(value, low), high)


@njit
def sum_of_squares(values):
    """Return numpy.sum(numpy.square(values)), which adds eight sums side by side, for up to 128 numbers."""
    num = values.shape[0]
    if num < 8:
        total = 0.0
        for i in range(num):
            total += values[i] * values[i]
        return total
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, num - num % 8, 8):
        s0 += values[i] * values[i]
        s1 += values[i + 1] * values[i + 1]
        s2 += values[i + 2] * values[i + 2]
        s3 += values[i + 3] * values[i + 3]
        s4 += values[i + 4] * values[i + 4]
        s5 += values[i + 5] * values[i + 5]
        s6 += values[i + 6] * values[i + 6]
        s7 += values[i + 7] * values[i + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for i in range(num - num % 8, num):
        total += values[i] * values[i]
    return total


@njit
def uniform(u, scale):
    """Return a number between -scale and scale, as NumPy's generator makes it."""
    return -scale + (scale - -scale) * u


@njit
def normal(u):
    """Return the quantile of the standard normal distribution at u in [0, 1]."""
    u = min(max(u, 1e-16), 1.0 - 1e-16)
    x = 0.0
    for _ in range(60):  # Newton's method, with steps short enough for the tails
        tail = math.erfc(abs(x) / math.sqrt(2.0)) / 2.0
        error = (u - tail) if x < 0.0 else (1.0 - u) - tail
        density = math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
        step = (error if x < 0.0 else -error) / density
        x += min(max(step, -0.5), 0.5)
        if abs(step) < 1e-15 * max(1.0, abs(x)):
            break
    return x


@njit
def add_uniform_noise(values, start, first, scale):
    """Add noise to all values, from the coordinates of the start behind `first`; return the next coordinate."""
    for i in range(values.shape[0]):
        values[i] += uniform(start[first + i], scale)
    return first + values.shape[0]


@njit
def add_normal_noise(values, start, first, scale):
    """Add normal noise to all values, from the coordinates of the start behind `first`."""
    for i in range(values.shape[0]):
        values[i] += scale * normal(start[first + i])
