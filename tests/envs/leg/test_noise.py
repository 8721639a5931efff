import math

import numpy as np
import pytest
from leg_states import observe

from envs.leg import dynamics, kernels, noise
from envs.leg.params import POSITION, RATE, STEP


def noise_samples(num, seed):
    kernel = kernels.stochastic_kernel()
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, seed]), state)
    samples = np.zeros((num, 2))
    for k in range(num):
        samples[k] = noise.rate_noise(kernel.params, state)
        noise.advance_noise(state, k)
    return samples


def test_noise_has_the_specified_statistics():
    samples = np.concatenate([noise_samples(20000, seed) for seed in (0.11, 0.52, 0.93)])
    np.testing.assert_allclose(samples.mean(axis=0), noise.MEAN, atol=0.02)
    assert np.corrcoef(samples.T)[0, 1] == pytest.approx(0.26, abs=0.03)
    for j in range(2):
        x = samples[:, j] - samples[:, j].mean()
        fit = np.linalg.lstsq(np.column_stack([x[1:-1], x[:-2]]), x[2:], rcond=None)
        np.testing.assert_allclose(fit[0], [noise.LAG_1[j], noise.LAG_2[j]], atol=0.01)
        assert math.sqrt(fit[1][0] / len(x)) == pytest.approx(noise.RESIDUAL_STD[j], rel=0.01)


def test_noise_is_stationary_from_the_first_step():
    first = np.array([noise_samples(1, (i + 0.5) / 4000)[0] for i in range(4000)])
    late = noise_samples(40000, 0.3)
    np.testing.assert_allclose(first.std(axis=0), late.std(axis=0), rtol=0.06)


def test_noise_differs_between_seeds_and_is_the_same_for_one():
    assert np.array_equal(noise_samples(50, 0.25), noise_samples(50, 0.25))
    assert not np.isclose(noise_samples(50, 0.25), noise_samples(50, 0.25 + 1e-12)).any()


def test_noise_grows_with_the_rate_up_to_one_and_angles_are_exact():
    kernel = kernels.stochastic_kernel(observation_delay_steps=0)
    for rate, share in ((0.0, 0.0), (0.25, 0.25), (-0.5, 0.5), (3.0, 1.0)):
        state = np.zeros(kernel.state_size)
        kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, 0.4]), state)
        state[RATE + 1] = state[RATE + 2] = rate
        dynamics.begin(kernel.params, state)
        hip, knee = noise.rate_noise(kernel.params, state)
        seen = observe(kernel, state)
        np.testing.assert_allclose(seen[2:], [rate + share * hip, rate + share * knee], rtol=1e-14)
        assert np.array_equal(seen[:2], state[POSITION + 1 : POSITION + 3])


def test_template_is_played_cyclically_with_its_last_row_twice(tmp_path):
    rows = np.arange(10.0).reshape(5, 2)
    path = tmp_path / "noise.csv"
    np.savetxt(path, rows, delimiter=",")
    kernel = kernels.stochastic_kernel(noise_template=str(path))
    state = np.zeros(kernel.state_size)
    kernel.reset(kernel.params, np.array([0.5, 0.5, 0.5, 0.45]), state)  # row 2 of 5 is played in step 0
    played = []
    for k in range(1, 9):
        state[STEP] = k
        played.append(noise.rate_noise(kernel.params, state)[0] / 2)
    assert played == [2, 3, 4, 4, 0, 1, 2, 3]


@pytest.mark.parametrize("text", ["1,2,3\n", "1,nan\n", "hip,knee\n"])
def test_template_that_is_not_two_columns_of_numbers_is_refused(tmp_path, text):
    path = tmp_path / "noise.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="noise_template must"):
        noise.read_template(str(path))
