import numpy as np
import pytest

from envs.parts.delay_line import delay


@pytest.mark.parametrize("num_slots", [1, 2, 5])
def test_value_comes_out_late_and_the_first_one_before(num_slots):
    values = np.full(8, np.nan)
    out = [delay(values, 2, num_slots, step, 10.0 + step) for step in range(12)]
    assert out == [10.0 + max(step - num_slots + 1, 0) for step in range(12)]
    assert np.isnan(values[:2]).all() and np.isnan(values[2 + num_slots :]).all()
