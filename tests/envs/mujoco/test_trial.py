import math

import pytest
from cart_task import XML, make_cart


def observe_too_many(params, view, observation):
    observation[3] = view.qpos[0]


def observe_too_few(params, view, observation):
    observation[0] = view.qpos[0]


def observe_unknown(params, view, observation):
    observation[0] = view.angel[0]


def reward_nan(params, view, action):
    return math.nan


def reward_nothing(params, view, action):
    pass


def reward_array(params, view, action):
    return view.qpos


def reward_rarely_wrong(params, view, action):
    if view.qpos[0] > 1e9:
        return view.angel[0]
    return 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observe": observe_too_many}, r"observe: IndexError: index 3 is out of bounds.*\(test_trial.py, line 8\)"),
        ({"observe": observe_too_few}, "observe: rate must be a finite number, got nan in step 0"),
        ({"observe": observe_unknown}, r"observe: AttributeError: .*'angel' \(test_trial.py, line 16\)"),
        ({"reward": reward_nan}, "reward must be a finite number, got nan in step 1"),
        ({"reward": reward_nothing}, "reward must be a finite number, got None"),
        ({"reward": reward_array}, "reward must be a finite number, got "),
    ],
)
def test_wrong_functions_are_named_with_file_and_line(changes, message):
    with pytest.raises(ValueError, match=message) as raised:
        make_cart(**changes)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_function_that_cannot_be_compiled_is_named_with_file_and_line():
    with pytest.raises(ValueError, match=r"reward \(test_trial.py, line 33\) cannot be compiled: .*'angel'"):
        make_cart(reward=reward_rarely_wrong)


def test_model_that_diverges_is_refused():
    unstable = XML.replace('axis="0 1 0"/>', 'axis="0 1 0" stiffness="-1e6"/>')
    with pytest.raises(
        ValueError, match="model: the simulation diverges in step .* of random actions; choose a smaller"
    ):
        make_cart(unstable)
