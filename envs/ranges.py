"""Ranges of quantities that are drawn at each start, as further coordinates of the unit cube.

So they are stratified as starts are, kept in the state, and the same on any number of ranks.
"""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from .kernel import Kernel

QUANTITIES = {  # of a MuJoCo model, and their meanings
    "mass": "factor of the masses and inertias of all bodies",
    "friction": "factor of the friction of all contacts",
    "joint_friction": "factor of the Coulomb friction of all joints",
    "damping": "factor of the damping of all joints",
    "motor": "factor of the forces of all actuators",
    "gravity": "factor of gravity",
    "push": "acceleration of the whole robot along x (m/s^2) for 0.1 s, beginning at a random time",
}
NEUTRAL = {name: 0.0 if name == "push" else 1.0 for name in QUANTITIES}  # values that change nothing
LIMITS = {name: (0.01 if name == "mass" else 0.0, 100.0) for name in QUANTITIES} | {"push": (-1000.0, 1000.0)}


def read_range(name: str, value: Any) -> tuple[float, float]:
    """Return the ends of a range, which is a number or a pair; raise ValueError if it is neither."""
    ends = value if isinstance(value, (tuple, list)) else (value, value)
    is_pair = len(ends) == 2 and all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    if not is_pair or not -math.inf < ends[0] <= ends[1] < math.inf:
        raise ValueError(f"{name} must be a number or a range (low, high) of finite numbers, got {value!r}")
    return ends[0], ends[1]


def read_ranges(ranges: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the ranges of quantities without those that change nothing; raise ValueError for bad ones."""
    found = {}
    for name, value in ranges.items():
        if name not in QUANTITIES:
            raise ValueError(f"unknown quantity {name!r} to randomise; there are {', '.join(QUANTITIES)}")
        (low, high), (least, most) = read_range(name, value), LIMITS[name]
        if low < least or high > most:
            raise ValueError(f"{name} must be between {least:g} and {most:g}, got {value!r}")
        if (low, high) != (NEUTRAL[name], NEUTRAL[name]):
            found[name] = (float(low), float(high))
    return found


def randomise(kernel: Kernel, ranges: Mapping[str, Any]) -> Kernel:
    """Return the kernel with quantities drawn at each start; raise ValueError if it has none of them."""
    if kernel.randomise is not None:
        return kernel.randomise(ranges)
    if read_ranges(ranges):
        raise ValueError(f"{', '.join(ranges)}: only environments with a MuJoCo model have such quantities")
    return kernel
