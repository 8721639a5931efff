import numpy as np
import pytest

from envs.leg.kernels import simple_kernel
from envs.pendulum.long import long_kernel
from envs.pendulum.nlr import nlr_kernel


@pytest.mark.parametrize("make", [long_kernel, nlr_kernel, simple_kernel])
def test_replay_visits_the_states_of_stepping(make):
    kernel = make()
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.full(kernel.start_size, 0.3), state)
    actions = np.random.default_rng(0).normal(0, 1, (10, kernel.action_size))
    states = kernel.replay(state, actions)
    assert states.shape == (11, kernel.state_size) and np.array_equal(states[0], state)
    for action, after in zip(actions, states[1:]):
        kernel.step(kernel.params, state, action.copy())
        assert np.array_equal(state, after)


def test_replay_does_not_clip_the_callers_actions():
    actions = np.full((3, 1), 1e3)
    long_kernel().replay(np.zeros(2), actions)
    assert np.all(actions == 1e3)


def test_start_values_are_placed_and_others_refused():
    kernel, state = long_kernel(), np.zeros(2)
    kernel.place(state, {"angle": 0.5, "rate": -1})
    assert state.tolist() == [0.5, -1.0]
    with pytest.raises(ValueError, match="unknown start value 'speed'; this environment has angle, rate"):
        kernel.place(state, {"speed": 1.0})
    for wrong in (float("inf"), "1", True):
        with pytest.raises(ValueError, match="angle must be a finite number"):
            kernel.place(state, {"angle": wrong})
