"""Settings: frozen dataclasses whose fields explain and check themselves, to and from JSON and text.

    @dataclass(frozen=True)
    class Config(Settings):
        gamma: float = option(0.99, "discount per step", low=0, high=1)
        cg_damping: float = option(0.01, "multiple of the identity added to H", low=0, group="conjugate gradient")

Unknown names are errors that name the nearest match; nothing is ever evaluated.
"""

import dataclasses
import difflib
import functools
import math
import re
import types
import typing
from collections.abc import Iterable


def option(
    default, meaning: str, *, low=None, high=None, above=None, longest=1000, choices: Iterable = (), group: str = ""
):
    """Return a field with its meaning, its range (low <= value <= high, above < value) and its heading in help.

    A list has at most `longest` numbers.
    """
    details = {"meaning": meaning, "low": low, "high": high, "above": above, "choices": tuple(choices), "group": group}
    details["longest"] = longest
    return dataclasses.field(default=default, metadata=details)


paper = functools.partial(option, group="The paper's options")
baselines = functools.partial(option, group="Options of openai/baselines")
ours = functools.partial(option, group="Options beyond the paper")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The base of every config, validated on construction."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _check(field, getattr(self, field.name)))

    @classmethod
    def from_values(cls, values: dict) -> typing.Self:
        """Build settings from names and values; texts are parsed by the field's type."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        for name in values:
            if name not in known:
                raise ValueError(f"unknown option {name!r}{did_you_mean(name, known)}; --help lists the options")
        return cls(**{n: _parse(known[n], v) if isinstance(v, str) else v for n, v in values.items()})

    def to_values(self) -> dict:
        """Return the values by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def with_values(self, **values) -> typing.Self:
        """Return a copy with other values, unchecked: for values that every update computes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **values)
        return other

    def describe(self) -> str:
        """Return a text with the value, range and meaning of every option, under the headings of their groups."""
        groups: dict[str, list[str]] = {"": []}
        for field in dataclasses.fields(self):
            groups.setdefault(field.metadata["group"], []).append(_describe(field, getattr(self, field.name)))
        parts = [(f"\n{group}:" if group else "", *entries) for group, entries in groups.items()]
        return "\n".join(line for part in parts for line in part if line)

    def fit(self, environment) -> typing.Self:
        """Return the settings with defaults that depend on the environment filled in; an algorithm may override it."""
        return self

    def network_style(self, environment):
        """Return the activations and output scaling of the policy's network; an algorithm may override it."""
        from ..common.networks.mlp import PLAIN

        return PLAIN

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        """Return lines to show before a run; an algorithm may override it."""
        return []


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return ', did you mean X?' if a known word is near, with a prefix before it, else ''."""
    match = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {prefix + match[0]!r}?" if match else ""


def split_prefix(values: dict, prefix: str) -> tuple[dict, dict]:
    """Return the values whose names begin with the prefix, under names without it, and the others."""
    chosen = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return chosen, {name: value for name, value in values.items() if not name.startswith(prefix)}


def to_text(value) -> str:
    """Return a value as it is typed on the command line."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def parse_number(name: str, text: str, kind: type = float):
    """Parse a finite number; integers may be written 5e7."""
    try:
        if kind is int and text.strip().lstrip("+-").isdigit():
            return int(text)
        value = float(text)
        if math.isfinite(value) and (kind is float or value == int(value)):
            return kind(value)
    except ValueError:
        pass
    raise ValueError(f"{name} must be {'a finite number' if kind is float else 'a whole number'}, got {text!r}")


def parse_count(name: str, text: str, *, low: int) -> int:
    """Parse a whole number from `low` to 1e18."""
    value = parse_number(name, text, int)
    if not low <= value <= 10**18:
        raise ValueError(f"{name} must be at least {low} and at most 1e18, got {text}")
    return value


def parse_range(name: str, value, kind: type = float):
    """Parse a number or a range LOW:HIGH; return the number, or the range as a text."""
    ends = value if isinstance(value, (tuple, list)) else str(value).split(":")
    if len(ends) == 1:
        return parse_number(name, ends[0], kind)
    low, high = (parse_number(name, str(end), kind) for end in ends) if len(ends) == 2 else (1, 0)
    if low >= high:
        raise ValueError(f"{name} must be a number or a range LOW:HIGH with LOW below HIGH, got {value!r}")
    return f"{low}:{high}"


def is_range(value) -> bool:
    """Return True for a text that `parse_range` returned."""
    return isinstance(value, str) and re.fullmatch(r"[-+.\de]+:[-+.\de]+", value) is not None


def ends_of(value):
    """Return the ends of what `parse_range` returned: a number is both."""
    if not is_range(value):
        return value, value
    low, high = (float(end) for end in value.split(":"))
    return (int(low), int(high)) if low == int(low) and high == int(high) else (low, high)


def parse_like(name: str, value, example):
    """Return the value as the type of `example`: a truth value, a text or a number, whole only if the example is.

    Without an example, a text that looks like a truth value or a number is one.
    """
    if example is None:
        return _parse_freely(name, value) if isinstance(value, str) else value
    if isinstance(example, bool):
        if str(value).lower() not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, got {value!r}")
        return str(value).lower() == "true"
    if isinstance(example, str):
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a text, got {value!r}")
        return value
    return parse_number(name, str(value), type(example))


def _parse_freely(name: str, text: str):
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {text!r}")
        return value
    return text


@functools.cache
def _base_type(field: dataclasses.Field) -> tuple[type, bool]:
    """Return the field's type without None, and whether None is allowed (as a value, or to be derived)."""
    hint: typing.Any = field.type
    is_optional = isinstance(hint, types.UnionType)
    if is_optional:
        (hint,) = [part for part in typing.get_args(hint) if part is not types.NoneType]
    return typing.get_origin(hint) or hint, is_optional or field.default is None


def _parse(field: dataclasses.Field, text: str):
    base, is_optional = _base_type(field)
    if is_optional and text.lower() in ("none", "null"):
        return None
    if base is tuple:
        return tuple(parse_number(field.name, part, int) for part in text.strip("()[] ").split(",") if part.strip())
    return parse_like(field.name, text, base())


def _check(field: dataclasses.Field, value):
    base, is_optional = _base_type(field)
    if value is None and is_optional:
        return None
    if base is tuple and isinstance(value, (list, tuple)):
        longest = field.metadata["longest"]
        if len(value) > longest:
            raise ValueError(f"{field.name} must have at most {longest} numbers, got {len(value)}")
        return tuple(_check_number(field, part, int) for part in value)
    if base in (int, float):
        return _check_number(field, value, base)
    if not isinstance(value, base):
        raise ValueError(f"{field.name} must be of type {base.__name__}, got {value!r}")
    choices = field.metadata["choices"]
    if choices and value not in choices:
        near = did_you_mean(str(value), choices)
        raise ValueError(f"{field.name} must be one of {', '.join(choices)}, got {value!r}{near}")
    return value


def _check_number(field: dataclasses.Field, value, kind: type):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{field.name} must be a finite number, got {value!r}")
    if kind is int and value != int(value):
        raise ValueError(f"{field.name} must be a whole number, got {value!r}")
    low, high, above = (field.metadata[key] for key in ("low", "high", "above"))
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    ):
        raise ValueError(f"{field.name} must be {_range_text(field)}, got {value!r}")
    return kind(value)


def _range_text(field: dataclasses.Field) -> str:
    low, high, above = (field.metadata[key] for key in ("low", "high", "above"))
    parts = [f"at least {low}"] * (low is not None) + [f"more than {above}"] * (above is not None)
    return " and ".join(parts + [f"at most {high}"] * (high is not None))


def _describe(field: dataclasses.Field, value) -> str:
    limits = " | ".join(field.metadata["choices"]) or _range_text(field)
    return f"  {field.name}={value}{f'  [{limits}]' if limits else ''}\n        {field.metadata['meaning']}"
