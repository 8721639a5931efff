import numpy as np
import pytest
from episodes import run

from envs.control import mechanics


def test_spring_follows_a_force_five_steps_late():
    states, rewards = run(mechanics.delayed_spring_kernel(), [0.5], lambda o: [1.0])
    assert np.all(states[:6, 0] == 0) and states[6, 0] == pytest.approx(0.05**2)
    assert rewards[0] == pytest.approx(-0.25)


def test_double_well_cannot_be_left_by_a_constant_force_but_by_pumping():
    kernel = mechanics.double_well_kernel()
    states, rewards = run(kernel, [0.5], lambda o: [1.0])
    assert states[:, 0].max() < 0 and not rewards[:-1].any()
    expected = -100 * np.sqrt(np.mean((states[151:, 0] - 1) ** 2))
    assert rewards[-1] == pytest.approx(expected)
    states, rewards = run(kernel, [0.2], lambda o: [np.sign(o[1]) if o[0] < 0 else -np.sign(o[1])])
    assert states[-1, 0] > 0.5 and rewards[-1] > -40


def test_pole_falls_by_itself_and_a_controller_holds_it():
    kernel = mechanics.cart_pole_kernel()
    state, start = np.zeros(kernel.state_size), np.array([0.5, 0.5, 0.6, 0.5])
    kernel.reset(kernel.params, start, state)
    ends = [kernel.step(kernel.params, state, np.zeros(1))[1] for _ in range(200)]
    assert not ends[0] and ends[-1] and state[2] > 0.5
    states, rewards = run(kernel, start, lambda o: [1.0 * o[0] + 2.0 * o[1] + 30.0 * o[2] + 8.0 * o[3]])
    assert np.abs(states[:, 2]).max() < 0.2 and rewards.mean() > 0.9


def test_birotor_hovers_turns_and_is_lost_when_it_turns_over():
    kernel = mechanics.birotor_kernel()
    states, rewards = run(kernel, [0.5, 0.5, 0.5], lambda o: [9.81 / 2, 9.81 / 2])
    assert states == pytest.approx(0) and rewards == pytest.approx(1.0)
    state = np.zeros(6)
    for _ in range(60):
        reward, is_lost = kernel.step(kernel.params, state, np.array([4.0, 6.0]))
        if is_lost:
            break
    assert is_lost and state[2] > 1.5 and state[0] < 0 and reward < -90
