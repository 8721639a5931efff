import numpy as np
import pytest

from tdpo_baselines.viewing.terminal import draw_curve, printable


def test_rising_line_goes_from_the_lower_left_to_the_upper_right():
    lines, low, high = draw_curve(np.linspace(0, 1, 100), 10, 5, is_ascii=True)
    assert [len(line) for line in lines] == [10] * 5
    assert lines[-1].startswith("*") and lines[0].endswith("*") and lines[0].startswith(" ")
    assert 0 <= low < 0.1 and 0.9 < high <= 1


def test_every_column_has_a_point():
    noise = np.random.default_rng(0).normal(size=1000)
    for width, height in ((40, 1), (7, 4)):
        lines, *_ = draw_curve(noise, width, height)
        columns = list(zip(*lines))
        assert len(columns) == width and all(set(column) != {"\u2800"} for column in columns)


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [3.0] * 500])
def test_constant_and_short_curves_are_drawn(values):
    lines, low, high = draw_curve(np.array(values), 8, 2)
    assert low == high == values[0] and any(character != "\u2800" for character in lines[-1])


def test_first_values_far_below_do_not_flatten_the_curve():
    values = np.concatenate([[-1e9], np.linspace(0, 1, 199)])
    _, low, high = draw_curve(values, 100, 4)
    assert low >= -1 and high == 1


def test_control_characters_do_not_reach_the_terminal():
    assert printable("a\x1b[2Jb\n\x07é") == "a?[2Jb??é"
