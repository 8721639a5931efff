"""The search space and its transforms."""

import math

import pytest
from programs import ROOT

from tdpo_baselines.sweeping.definition import Definition, read
from tdpo_baselines.tuning.space import Dimension, make_dimension, make_space


def test_discounts_are_searched_by_the_logarithm_of_their_horizon():
    gamma = make_dimension("gamma", [0.99, 0.9, 0.9999])
    assert gamma.to_unit(0.9) == 0 and gamma.to_unit(0.9999) == pytest.approx(1)
    assert gamma.from_unit(1 / 3) == pytest.approx(0.99, abs=1e-6)  # horizons 10, 100, 10,000


def test_entropy_may_be_zero_and_is_never_below():
    entropy = make_dimension("entropy_coefficient", [0.0, 0.001, 0.1])
    assert entropy.from_unit(0) == 0.0 and entropy.from_unit(1) == pytest.approx(0.1)
    middle = math.exp((math.log(1e-5) + math.log(0.1 + 1e-5)) / 2) - 1e-5
    assert entropy.from_unit(0.5) == pytest.approx(middle, rel=1e-3)
    assert all(entropy.from_unit(i / 1000) >= 0 for i in range(1001))


def test_numbers_are_searched_by_their_logarithm_and_whole_ones_rounded():
    assert make_dimension("learning_rate", ["1e-5", "1e-1"]).from_unit(0.5) == pytest.approx(1e-3)
    whole = make_dimension("num_epochs", [4, 1, 128])
    assert whole.from_unit(0.5) == 11 and isinstance(whole.from_unit(0.3), int)
    assert (whole.from_unit(0), whole.from_unit(1)) == (1, 128)


def test_other_values_are_choices():
    noise = make_dimension("noise", ["ou", "lowpass"])
    assert [noise.from_unit(x) for x in (0, 0.49, 0.51, 1)] == ["ou", "ou", "lowpass", "lowpass"]
    assert noise.from_unit(noise.to_unit("lowpass")) == "lowpass"
    assert make_dimension("decay_timesteps", ["num_timesteps", None]).choices == ("num_timesteps", None)
    assert make_dimension("is_clip_decayed", [False, True]).choices == (False, True)


@pytest.mark.parametrize("values", [[0.1, 0.2], [3, 50]])
def test_value_and_coordinate_are_inverse_and_stay_in_the_range(values):
    dimension = make_dimension("x", values)
    for i in range(11):
        value = dimension.from_unit(i / 10)
        assert dimension.contains(value) and dimension.from_unit(dimension.to_unit(value)) == value
    assert dimension.from_unit(-1) == values[0] and dimension.from_unit(2) == values[1]
    assert not dimension.contains("a") and not dimension.contains(1000)


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("clip", [0, 1], "clip is searched by its logarithm and must be above 0, got 0"),
        ("gamma", [0.9, 1.0], "must be above 0 and below 1"),
        ("clip", [0.2], "needs a lowest and a highest value"),
    ],
)
def test_range_that_cannot_be_searched_is_refused(key, values, message):
    with pytest.raises(ValueError, match=message):
        make_dimension(key, values)


def test_space_without_dimensions_is_refused():
    with pytest.raises(ValueError, match="nothing to tune"):
        make_space(Definition())
    with pytest.raises(ValueError, match="no zip"):
        make_space(Definition(zip={"a": [1, 2]}))


def test_domains_of_the_paper():
    space = {one.name: one for one in make_space(read(ROOT / "run_scripts/sweeps/ppo1_leg_100hz.json"))}
    assert len(space) == 10
    assert space["gamma"] == Dimension("gamma", low=0.36, high=0.99984375)
    assert space["steps_per_trajectory"] == Dimension("steps_per_trajectory", low=64, high=16384, is_whole=True)
