from statistics import NormalDist

import numpy as np
import pytest

from envs.mujoco.twins.parts import asset, clip, copy_into, normal, number, sum_of_squares, uniform


@pytest.mark.parametrize("num", [1, 3, 7, 8, 9, 20, 84, 128])
def test_sum_of_squares_is_numpys_to_the_bit(num):
    for values in np.random.default_rng(num).normal(size=(50, num)):
        assert sum_of_squares(values) == np.sum(np.square(values))


def test_uniform_noise_is_that_of_numpys_generator():
    for seed in range(20):
        drawn = np.random.default_rng(seed).uniform(-0.1, 0.1)
        assert uniform(np.random.default_rng(seed).random(), 0.1) == drawn


@pytest.mark.parametrize("u", [1e-12, 1e-4, 0.3, 0.5, 0.77, 1 - 1e-9])
def test_normal_is_the_quantile_of_the_standard_normal_distribution(u):
    assert normal(u) == pytest.approx(NormalDist().inv_cdf(u), rel=1e-12, abs=1e-15)


def test_normal_is_finite_at_the_ends_and_symmetric():
    assert np.isfinite([normal(0.0), normal(1.0)]).all()
    assert normal(0.25) == pytest.approx(-normal(0.75), rel=1e-14)


def test_clip_and_copy_fill_in_an_observation():
    observation = np.zeros(4)
    assert copy_into(observation, 1, np.array([2.0, 3.0])) == 3
    assert observation.tolist() == [0, 2, 3, 0] and clip(-5.0, -1.0, 1.0) == -1.0


def test_models_are_gymnasiums_files():
    assert asset("hopper.xml").is_file() and list(number(a=2, b=1)) == ["a_0", "a_1", "b_0"]
