import json
import math
from dataclasses import dataclass

import pytest

from tdpo_baselines.options import config


@dataclass(frozen=True)
class Example(config.Settings):
    count: int = config.option(3, "how many", low=1, high=10)
    rate: float | None = config.option(None, "how fast", above=0)
    kind: str = config.option("red", "which", choices=("red", "green"))
    is_on: bool = config.option(False, "whether")
    sizes: tuple[int, ...] = config.option((4, 4), "layers", low=1)


@dataclass(frozen=True)
class Grouped(Example):
    step: float = config.option(0.1, "how far", group="solver")
    seed: int = config.option(0, "which", group="sampling")
    damping: float = config.option(1.0, "how calm", group="solver")
    last: int = config.option(0, "of no group")


def test_text_is_parsed_by_the_fields_type():
    values = {"count": "7", "rate": "1e-3", "kind": "green", "is_on": "true", "sizes": "8,16"}
    assert Example.from_values(values) == Example(7, 1e-3, "green", True, (8, 16))
    assert Example.from_values({"rate": "none", "sizes": ""}) == Example(sizes=())
    assert Example.from_values({"count": "1e1"}).count == 10


def test_json_round_trip():
    example = Example(rate=0.5)
    assert Example.from_values(json.loads(json.dumps(example.to_values()))) == example


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cuont": 1}, "unknown option 'cuont', did you mean 'count'"),
        ({"count": 0}, "count must be at least 1 and at most 10, got 0"),
        ({"count": -5}, "count must be at least 1"),
        ({"count": "huge"}, "count must be a whole number, got 'huge'"),
        ({"count": "2.5"}, "count must be a whole number"),
        ({"count": "1e400"}, "count must be a whole number"),
        ({"count": math.nan}, "count must be a finite number"),
        ({"rate": "nan"}, "rate must be a finite number"),
        ({"rate": "inf"}, "rate must be a finite number"),
        ({"rate": 0}, "rate must be more than 0"),
        ({"kind": "gren"}, "kind must be one of red, green, got 'gren', did you mean 'green'"),
        ({"is_on": "maybe"}, "is_on must be true or false"),
        ({"is_on": 1}, "is_on must be of type bool"),
        ({"sizes": "4,0"}, "sizes must be at least 1"),
        ({"count": 10**400}, "count must be at least 1 and at most 10"),
        ({"count": None}, "count must be a finite number, got None"),
        ({"kind": "__import__('os').system('true')"}, "kind must be one of"),
    ],
)
def test_bad_values_name_the_field_and_what_was_expected(values, message):
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(").replace(")", r"\)")):
        Example.from_values(values)


def test_large_whole_numbers_are_exact():
    assert config.parse_number("seed", "9007199254740993", int) == 9007199254740993


@pytest.mark.parametrize(("value", "example"), [(None, 0.1), ([], 1), (True, 1), (1.5, 1), (3, "angle")])
def test_environment_options_of_a_wrong_type_are_refused(value, example):
    with pytest.raises(ValueError, match="env.x must be"):
        config.parse_like("env.x", value, example)


def test_every_option_is_described_with_its_value_range_and_meaning():
    text = Example().describe()
    assert "  count=3  [at least 1 and at most 10]\n        how many\n" in text
    assert "  kind=red  [red | green]\n        which\n" in text
    assert "  rate=None  [more than 0]\n        how fast\n" in text


def test_options_are_described_under_the_headings_of_their_groups():
    lines = Grouped().describe().splitlines()
    names = [line.strip().split("=")[0].removesuffix(":") for line in lines if not line.startswith(" " * 8) and line]
    ungrouped = ["count", "rate", "kind", "is_on", "sizes", "last"]
    assert names == [*ungrouped, "solver", "step", "damping", "sampling", "seed"]
    assert lines[lines.index("solver:") - 1] == "" and "  step=0.1" in lines
    assert Example().describe() == Grouped().describe().partition("  last=")[0].rstrip("\n")


def test_whole_numbers_written_with_a_point_are_whole_in_lists_too():
    sizes = Example.from_values({"sizes": [64.0, 32]}).sizes
    assert sizes == (64, 32) and all(type(size) is int for size in sizes)


def test_copy_with_other_values_is_not_checked_and_leaves_the_original():
    example = Example()
    assert example.with_values(count=99).count == 99 and example.count == 3


def test_prefix_splits_names():
    assert config.split_prefix({"env.a": 1, "b": 2}, "env.") == ({"a": 1}, {"b": 2})


def test_range_is_a_number_or_a_text_with_two_ends():
    assert config.parse_range("mass", "0.9") == 0.9 and config.parse_range("mass", 2) == 2.0
    assert config.parse_range("mass", " 0.8:1.2") == config.parse_range("mass", (0.8, 1.2)) == "0.8:1.2"
    assert config.parse_range("delay_steps", "0:4", int) == "0:4"
    assert config.is_range("0.8:1.2") and not config.is_range("module:Id") and not config.is_range(0.8)
    assert config.ends_of("0.8:1.2") == (0.8, 1.2) and config.ends_of("0:4") == (0, 4) and config.ends_of(3) == (3, 3)


@pytest.mark.parametrize("value", ["1.2:0.8", "1:1", "1:2:3", ":", "a:b", "1:inf"])
def test_bad_range_names_the_field(value):
    with pytest.raises(ValueError, match="mass must be a (finite )?number"):
        config.parse_range("mass", value)
