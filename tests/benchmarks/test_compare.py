import pytest


def row(ours, unit="steps/s", other=None):
    return {"ours": ours, "unit": unit, "other": other}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (row(100.0), row(200.0), 2.0),
        (row(100.0, other=10.0), row(100.0, other=20.0), 0.5),  # a faster machine
        (row(30.0, "%"), row(15.0, "%"), 2.0),
        (row(6.0, "us", 4.0), row(5.0, "us", 4.0), 1.2),
    ],
)
def test_gain_is_how_many_times_better_the_new_row_is(benchmark, old, new, expected):
    assert benchmark("compare").gain(old, new) == pytest.approx(expected)


def test_rows_that_became_worse_or_are_missing_are_shown(benchmark):
    old, new = {"a": row(100.0), "b": row(100.0), "c": row(1.0)}, {"a": row(80.0), "b": row(99.0), "d": row(1.0)}
    lines, is_worse = benchmark("compare").compare(old, new)
    assert is_worse and lines == ["    0.80 x  a  WORSE", "    0.99 x  b", "   missing  c"]
    assert not benchmark("compare").compare(old, old)[1]
