import math

import numpy as np
import pytest
from controllers import make_controller

from tdpo_baselines.exporting.controller import Safety, SafetySteps

WANTED = np.random.default_rng(0).standard_normal((300, 2)) * [5.0, 1.0]


def test_nothing_changes_without_options():
    assert np.array_equal(make_controller().run(WANTED, np.zeros(2)), WANTED)


def test_rate_and_limits_hold_together():
    steps = Safety(rate_limit_per_s=(20.0, 5.0), low_pass_hz=10.0).at_rate(100.0)
    outputs = make_controller(limit=0.7, steps=steps).run(WANTED, np.array([9.0, 0.0]))
    assert np.abs(outputs).max() <= 0.7 and abs(outputs[0, 0] - 0.7) <= 0.2  # the reset is limited too
    changes = np.abs(np.diff(outputs, axis=0))
    assert (changes <= np.array([0.2, 0.05]) + 1e-15).all() and changes.max() > 0.19


def test_low_pass_has_its_cut_off():
    steps = Safety(low_pass_hz=5.0).at_rate(1000.0)
    times = np.arange(4000) / 1000
    for frequency in (0.5, 5.0, 50.0):
        wanted = np.sin(2 * math.pi * frequency * times)[:, None].repeat(2, axis=1)
        outputs = make_controller(steps=steps).run(wanted, np.zeros(2))
        gain = np.abs(outputs[2000:]).max()
        assert gain == pytest.approx(1 / math.hypot(1, frequency / 5), rel=0.05)


def test_output_limit_tightens_the_environments_limits():
    policy = make_controller(limit=2.0).policy
    limited = Safety(output_limit=(1.0, 5.0)).limit(policy)
    assert limited.low.tolist() == [-1, -2] and limited.high.tolist() == [1, 2]
    assert np.array_equal(Safety().limit(policy).high, policy.high)


def test_one_number_stands_for_all_actions():
    assert Safety((3.0,), (4.0,)).fit(2) == Safety((3.0, 3.0), (4.0, 4.0))
    with pytest.raises(ValueError, match="output_limit must be one number, or one for each of 2 action"):
        Safety((1.0, 2.0, 3.0)).fit(2)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_numbers_that_are_not_positive_are_refused(value):
    for name, options in {
        "output_limit": {"output_limit": (1.0, value)},
        "rate_limit": {"rate_limit_per_s": (value,)},
        "low_pass": {"low_pass_hz": value},
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be positive and finite"):
            Safety(**options)


def test_options_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="pass --rate_hz"):
        Safety(low_pass_hz=5.0).at_rate(None)
    with pytest.raises(ValueError, match="low_pass must be below half the control rate, 50 Hz, got 60"):
        Safety(low_pass_hz=60.0).at_rate(100.0)
    policy = make_controller(limit=2.0).policy
    policy.low[:] = 1.0
    with pytest.raises(ValueError, match="output_limit leaves no action"):
        Safety(output_limit=(0.5, 0.5)).limit(policy)
    assert Safety().at_rate(None) == SafetySteps()
