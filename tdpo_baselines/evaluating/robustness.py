"""Robustness: the mean return of a policy over ranges of one or two numeric options of its environment."""

import dataclasses
from collections.abc import Sequence
from itertools import product
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..options import registry
from ..options.config import did_you_mean, ends_of, is_range, parse_number
from .trained import Evaluation, Trained, evaluate

FORM = "NAME=LOW:HIGH or NAME=LOW:HIGH:NUMBER, one or two of them with a comma between"
NUM_REAL, MAX_WHOLE, MAX_VALUES = 5, 9, 100  # values by default, of whole numbers at most; values ever


class Range(NamedTuple):
    """A range of an option, as the user writes it."""

    name: str
    low: float
    high: float
    num: int | None  # None: as many as are useful


class Sweep(NamedTuple):
    """Results over a grid of option values."""

    names: tuple[str, ...]  # of one or two options
    values: tuple[tuple[float, ...], ...]  # of each option
    returns: np.ndarray  # [n] or [n, m] mean return
    own: tuple[Any, ...]  # the values that the policy was trained with; of a range, its ends


def parse_ranges(text: str) -> list[Range]:
    """Parse ranges such as "delay_steps=0:8,env.offset=0.3:0.7:5"."""
    ranges = [_parse_range(part, text) for part in text.split(",")]
    if len(ranges) > 2 or len({each.name for each in ranges}) < len(ranges):
        raise ValueError(f"--robustness takes {FORM}, each name once, got {text!r}")
    return ranges


def _parse_range(part: str, text: str) -> Range:
    name, equals, bounds = part.strip().partition("=")
    numbers = bounds.split(":")
    if not name or not equals or len(numbers) not in (2, 3):
        raise ValueError(f"--robustness takes {FORM}, got {text!r}")
    low, high = (parse_number(name, number) for number in numbers[:2])
    num = parse_number(f"the number of values of {name}", numbers[2], int) if len(numbers) == 3 else None
    if low >= high or (num is not None and not 2 <= num <= MAX_VALUES):
        raise ValueError(f"{name} must have LOW below HIGH and 2 to {MAX_VALUES} values, got {bounds}")
    return Range(name.removeprefix("env."), low, high, num)


def choose_values(each: Range, trained: Trained) -> tuple[float, ...]:
    """Return the values of an option, whole numbers if it is one; raise ValueError unless it is numeric."""
    environment = trained.environment_name
    own = {**registry.quantities(environment), **trained.environment_options}
    own = {name: _without_range(value) for name, value in own.items()}
    numeric = [name for name, value in own.items() if value is None or _is_number(value)]
    if each.name not in own and environment in registry.ENVIRONMENTS:
        near = did_you_mean(each.name, own)
        raise ValueError(f"{environment} has no option {each.name!r}{near}; its numeric options: {', '.join(numeric)}")
    value = own.get(each.name)  # None: not set, or not known before the environment is made
    if value is not None and not _is_number(value):
        raise ValueError(f"{each.name} of {environment} is {value!r}, not a number; numeric: {', '.join(numeric)}")
    if not isinstance(value, int):
        return tuple(np.linspace(each.low, each.high, each.num or NUM_REAL).tolist())
    num = each.num or min(int(each.high - each.low) + 1, MAX_WHOLE)
    return tuple(sorted({round(number) for number in np.linspace(each.low, each.high, num)}))


def _without_range(value: Any) -> Any:
    """Return the lower end of a range, and any other value as it is."""
    return ends_of(value)[0] if is_range(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def sweep(trained: Trained, ranges: Sequence[Range], comm: Comm, **how: Any) -> Sweep:
    """Evaluate a policy at every combination of values; `how` holds arguments of `evaluate`."""
    names = tuple(each.name for each in ranges)
    values = tuple(choose_values(each, trained) for each in ranges)

    def mean_return(combination: tuple[float, ...]) -> float:
        there = dataclasses.replace(trained, env_changes={**trained.env_changes, **dict(zip(names, combination))})
        evaluation: Evaluation = evaluate(there, comm=comm, **how)
        return float(evaluation.results["return"].mean())

    returns = np.array([mean_return(combination) for combination in product(*values)])
    told = (trained.environment_options.get(name) for name in names)
    own = tuple(ends_of(value) if is_range(value) else value for value in told)
    return Sweep(names, values, returns.reshape([len(each) for each in values]), own)
