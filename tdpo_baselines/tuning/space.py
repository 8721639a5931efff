"""The search space: parameters of a sweep's definition, mapped to the unit cube by the paper's transforms.

The range of a parameter is that of its values in the sweep. Numbers are searched by their logarithm, whole numbers are
rounded; `gamma` and `lam` by log(1 / (1 - x)), the logarithm of their horizon; `entropy_coefficient` by
log(x + 1e-5), so that it can be 0. Anything else is a choice: a coordinate that is rounded to one of the values.
"""

import math
from dataclasses import dataclass
from typing import Any

from ..options.config import parse_number
from ..sweeping.definition import Definition

HORIZONS = ("gamma", "lam")
SHIFTS = {"entropy_coefficient": 1e-5}


@dataclass(frozen=True)
class Dimension:
    """One parameter: a range of numbers, or choices."""

    name: str
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    choices: tuple = ()

    def __post_init__(self):
        low = self.low + SHIFTS.get(self.name, 0.0)
        if not self.choices and (low <= 0 or (self.name in HORIZONS and self.high >= 1)):
            allowed = "above 0 and below 1" if self.name in HORIZONS else "above 0"
            raise ValueError(
                f"{self.name} is searched by its logarithm and must be {allowed}, got {self.low} to {self.high}"
            )

    def to_unit(self, value: Any) -> float:
        """Return the coordinate of a value, from 0 to 1."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        low, high = self._forward(self.low), self._forward(self.high)
        return (self._forward(value) - low) / (high - low)

    def from_unit(self, coordinate: float) -> Any:
        """Return the value at a coordinate, with few digits."""
        coordinate = min(max(float(coordinate), 0.0), 1.0)
        if self.choices:
            return self.choices[min(int(coordinate * len(self.choices)), len(self.choices) - 1)]
        low, high = self._forward(self.low), self._forward(self.high)
        value = self._backward(low + coordinate * (high - low))
        return round(value) if self.is_whole else min(max(value, self.low), self.high)

    def contains(self, value: Any) -> bool:
        """Return whether a value can be searched."""
        if self.choices:
            return value in self.choices
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and self.low <= value <= self.high

    def _forward(self, value: float) -> float:
        if self.name in HORIZONS:
            return -math.log(1 - value)
        return math.log(value + SHIFTS.get(self.name, 0.0))

    def _backward(self, coordinate: float) -> float:
        if self.name in HORIZONS:
            return round(1 - float(f"{math.exp(-coordinate):.4g}"), 12)
        return float(f"{math.exp(coordinate) - SHIFTS.get(self.name, 0.0):.4g}")


def make_space(definition: Definition) -> list[Dimension]:
    """Return the dimensions of all parameters that the definition varies."""
    if definition.zip:
        raise ValueError("a search space has no zip; give each parameter a list of its own")
    space = [make_dimension(key, values) for _, key, values in definition.lists()]
    if not space:
        raise ValueError("nothing to tune; pass a FILE.json or --vary KEY=LOW,HIGH")
    return space


def make_dimension(key: str, values: list) -> Dimension:
    """Return the dimension with the range of the values, or with the values as choices if they are no numbers."""
    try:
        numbers = [parse_number(key, value) if isinstance(value, str) else value + 0.0 for value in values]
    except (TypeError, ValueError):
        return Dimension(key, choices=tuple(values))
    if any(isinstance(value, bool) for value in values):
        return Dimension(key, choices=tuple(values))
    if min(numbers) == max(numbers):
        raise ValueError(f"{key} needs a lowest and a highest value, got {values}")
    is_whole = all(str(value).isdigit() for value in values)
    return Dimension(key, low=min(numbers), high=max(numbers), is_whole=is_whole)
