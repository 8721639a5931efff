import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from envs import rehearsal
from envs.kernel import Kernel


class Params(NamedTuple):
    """Parameters of a slide."""

    gain: float


@njit
def reset(params, start, state):
    state[0] = start[0]


@njit
def observe(params, state, observation):
    observation[0] = state[0]


@njit
def step(params, state, action):
    state[0] += params.gain * action[0]
    return -(state[0] ** 2), False


@njit
def read_beyond(state):
    return state[3]


def reads_beyond(params, state, action):
    return read_beyond(state), False


def returns_one_number(params, state, action):
    return state[0]


def pays_no_number(params, state, action):
    return np.log(-1.0 - state[0] ** 2), False


def leaves_it_unset(params, state, observation):
    pass


def knows_no_gain(params, state, action):
    return params.gian * action[0], False


def calls_python(params, state, action):
    return plain_helper(state), False


def plain_helper(state):
    return state[0]


def make_slide(**changes) -> Kernel:
    one = np.ones(1)
    kernel = Kernel(Params(0.1), reset, observe, step, 30, 1, 1, -np.inf * one, np.inf * one, -one, one)
    return dataclasses.replace(kernel, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": reads_beyond}, r"step: IndexError: .* \(test_rehearsal.py, line \d+\)"),
        ({"step": returns_one_number}, r"step must return \(reward, has_ended\), got"),
        ({"step": pays_no_number}, "step: the reward must be a finite number, got nan in step 1"),
        ({"observe": leaves_it_unset}, r"observe: observation\[0\] must be a finite number, got nan in step 0"),
        ({"step": knows_no_gain}, r"step: AttributeError: .*gian.* \(test_rehearsal.py, line \d+\)"),
    ],
)
def test_wrong_functions_are_named_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        rehearsal.rehearse(make_slide(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_function_that_cannot_be_compiled_is_named_with_file_line_and_remedy():
    with pytest.raises(ValueError, match=r"^step \(test_rehearsal.py, line \d+\) cannot be compiled: .*@numba.njit$"):
        rehearsal.rehearse(make_slide(step=calls_python))


@pytest.mark.slow
def test_kernel_is_compiled_with_the_same_results():
    kernel = make_slide()
    compiled = rehearsal.rehearse(kernel)
    results = []
    for each in (kernel, compiled):
        state, observation = np.zeros(1), np.zeros(1)
        each.reset(each.params, np.array([0.3]), state)
        results.append((each.step(each.params, state, np.array([0.7])), *state))
        each.observe(each.params, state, observation)
    assert results[0] == results[1] and compiled.step is not kernel.step


def test_python_function_calls_no_compiled_code():
    with pytest.raises(IndexError):
        rehearsal.as_python(njit(reads_beyond))(None, np.zeros(1), None)
