import math
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from tdpo_baselines.common.networks import simd


def test_tanh_is_accurate_to_the_last_place():
    x = np.concatenate([[0.0, -0.0, 1e-300, 1e-9, -1e-5, 19.9, 20.1, -1e6, np.inf], np.linspace(-25, 25, 2001)])
    ours = np.array([simd.tanh_scalar(value) for value in x])
    np.testing.assert_allclose(ours, np.tanh(x), rtol=4e-16, atol=0)
    assert np.signbit(ours[1])
    assert math.isnan(simd.tanh_scalar(math.nan))


def test_tanh_of_an_array_is_that_of_its_elements_bit_for_bit():
    x = np.random.default_rng(0).normal(0, 3, (5, 7))
    expected = [[simd.tanh_scalar(value) for value in row] for row in x]
    assert np.array_equal(simd.tanh(x), expected)


def test_fused_multiply_add_rounds_once():
    @njit
    def fused(a, b, c):
        return simd.fma(a, b, c)

    rng = np.random.default_rng(0)
    num_different = 0
    for a, b in rng.standard_normal((100, 2)):
        c = -a * b
        assert fused(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))
        num_different += fused(a, b, c) != a * b + c
    assert num_different > 50


@pytest.mark.parametrize("value", [3.0, -2.0, math.nan])
def test_vectors_are_loaded_stored_and_combined_element_by_element(value):
    @njit
    def combine(x, out):
        a = simd.load(x, 1, 8, 2, 4)  # x[1:5] and x[9:13]
        b = simd.load_repeated(x, 0, 1, 2, 4)  # x[0] and x[1], four times each
        simd.store(out, 0, 4, 2, simd.copysign(abs(-a * b + 1.0 - a / 2.0), b))

    x, out = np.arange(1.0, 17.0), np.zeros(8)
    x[1] = value
    combine(x, out)
    a, b = np.concatenate([x[1:5], x[9:13]]), np.repeat(x[:2], 4)
    np.testing.assert_array_equal(out, np.copysign(np.abs(-a * b + 1.0 - a / 2.0), b))
