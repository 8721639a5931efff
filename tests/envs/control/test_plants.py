import numpy as np
import pytest
from episodes import run

from envs.control import plants


def test_dead_time_passes_the_input_on_after_ten_steps():
    states, rewards = run(plants.dead_time_kernel(), [1.0], lambda o: [2.0])
    assert np.all(states[:11, 0] == 0) and states[11, 0] == pytest.approx(0.05 * 2.0)
    assert states[-1, 0] == pytest.approx(2.0, abs=1e-3) and states[0, 1] == 1.0
    assert rewards[0] == pytest.approx(-1.0)  # the late input costs when it arrives
    assert rewards[-1] == pytest.approx(-1.0 - 1e-3 * 4, abs=1e-3)


def test_step_response_pays_at_the_end_for_error_and_overshoot():
    states, rewards = run(plants.step_response_kernel(), [0.5], lambda o: [1.0])
    output = states[1:, 0]
    assert not rewards[:-1].any()
    expected = -100 * np.abs(output - 1).mean() - 200 * max(output.max() - 1.1, 0)
    assert output.max() > 1.5 and rewards[-1] == pytest.approx(expected)


def test_two_mass_drive_rings_at_its_resonance_and_pays_for_it():
    kernel = plants.two_mass_kernel()
    states, rewards = run(kernel, [1.0], lambda o: [0.0])
    load = states[1:, 1]
    spectrum = np.abs(np.fft.rfft(load - load.mean()))
    peak = 2 * np.pi * np.fft.rfftfreq(300, 0.02)[spectrum.argmax()]
    assert peak == pytest.approx(np.sqrt(2 * 60.0), rel=0.1)
    times = 0.02 * np.arange(300)
    sums = [np.sum(np.exp(1j * w * times) * (load - 1)) for w in plants.FREQUENCIES]
    expected = -100 * (load.mean() - 1) ** 2 - 1000 * np.sum(np.abs(sums) ** 2) / 300**2
    assert not rewards[:-1].any() and rewards[-1] == pytest.approx(expected)


def test_riccati_gain_is_better_than_its_neighbours_on_the_chain():
    from scipy.linalg import solve_discrete_are

    kernel, dt = plants.chain_kernel(), 0.05
    A = np.block([[np.eye(3) + dt**2 * plants.STIFFNESS, dt * np.eye(3)], [dt * plants.STIFFNESS, np.eye(3)]])
    B = np.concatenate([dt**2 * np.eye(3), dt * np.eye(3)])
    Q, R = np.diag([1.0, 1, 1, 0.1, 0.1, 0.1]), plants.FORCE_COST * np.eye(3)
    P = solve_discrete_are(A, B, Q, R)
    gain = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    start = [0.7, 0.4, 0.6, 0.5, 0.3, 0.55]
    states, rewards = run(kernel, start, lambda o: gain @ o)
    assert states[1] == pytest.approx(A @ states[0] + B @ gain @ states[0])
    assert rewards.sum() == pytest.approx(-states[0] @ P @ states[0], rel=1e-3)
    for factor in (0.8, 1.25):
        assert run(kernel, start, lambda o, f=factor: f * gain @ o)[1].sum() < rewards.sum()
