import numpy as np
import pytest

from envs.mujoco.dynamics import LARGEST, is_bounded


@pytest.mark.parametrize("value", [np.nan, np.inf, -2 * LARGEST])
def test_a_value_beyond_all_bounds_or_no_number_is_divergence(value):
    assert is_bounded(np.array([0.0, 1.0]))
    assert not is_bounded(np.array([0.0, value]))
