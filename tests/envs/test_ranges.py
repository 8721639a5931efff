import pytest

from envs.pendulum import long
from envs.ranges import NEUTRAL, QUANTITIES, randomise, read_range, read_ranges


def test_a_number_is_a_range_of_one_value():
    assert read_range("mass", 0.9) == (0.9, 0.9) and read_range("mass", [0.8, 1.2]) == (0.8, 1.2)


def test_quantities_that_change_nothing_are_left_out():
    assert read_ranges(NEUTRAL) == {}
    assert read_ranges({"mass": 1, "push": (-2, 2)}) == {"push": (-2.0, 2.0)}


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"mas": 1}, f"unknown quantity 'mas' to randomise; there are {', '.join(QUANTITIES)}"),
        ({"mass": (1.2, 0.8)}, "mass must be a number or a range"),
        ({"mass": "0.8:1.2"}, "mass must be a number or a range"),
        ({"mass": float("nan")}, "mass must be a number or a range"),
        ({"mass": True}, "mass must be a number or a range"),
        ({"mass": 0}, "mass must be between 0.01 and 100, got 0"),
        ({"push": (0, 1e9)}, "push must be between -1000 and 1000"),
    ],
)
def test_bad_ranges_are_named(ranges, message):
    with pytest.raises(ValueError, match=message):
        read_ranges(ranges)


def test_environment_without_a_model_refuses_its_quantities():
    kernel = long.long_kernel()
    assert randomise(kernel, {"mass": 1}) is kernel
    with pytest.raises(ValueError, match="mass: only environments with a MuJoCo model"):
        randomise(kernel, {"mass": 2})
