import numpy as np
import pytest

from envs.action_delay import delay_actions
from envs.control.mechanics import delayed_spring_kernel
from envs.leg.kernels import simple_kernel
from envs.pendulum.long import long_kernel
from envs.pendulum.nlr import nlr_kernel
from tdpo_baselines.options import registry


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


@pytest.mark.parametrize("name", registry.ENVIRONMENTS)
def test_interface_has_a_name_for_every_signal(name):
    kernel = registry.make_environment(name, registry.resolve_options(name, {}))
    assert len(kernel.interface.observations) == kernel.observation_size
    assert len(kernel.interface.actions) == kernel.action_size


def test_interface_has_the_rate_and_the_delays_of_the_simulation():
    assert nlr_kernel().interface.control_rate_hz == 20 and long_kernel(500).interface.control_rate_hz == 500
    leg = delay_actions(simple_kernel(control_rate_hz=1000), 3).interface
    assert (leg.control_rate_hz, leg.observation_delay_s, leg.action_delay_s) == (1000, 0.001, 0.001 + 0.003)
    assert delayed_spring_kernel().interface.action_delay_s == pytest.approx(0.25)
    cos_sin = nlr_kernel(observation="cos_sin").interface
    assert list(cos_sin.observations) == ["cos_angle", "sin_angle", "rate"]
