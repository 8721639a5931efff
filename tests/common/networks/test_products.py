"""Products of matrices against double precision, in every layout and at every size of the edges."""

import numpy as np
import pytest

from tdpo_baselines.common.networks.products import multiply


def random_matrix(rng, shape, is_transposed=False):
    matrix = rng.normal(size=shape[::-1] if is_transposed else shape).astype(np.float32)
    return matrix.T if is_transposed else matrix


def product(a, b):
    c = np.full((len(a), b.shape[1]), np.nan, np.float32)
    multiply(a, b, c)
    return c


@pytest.mark.parametrize(("a_transposed", "b_transposed"), [(False, False), (True, False), (False, True)])
def test_products_are_those_of_double_precision(a_transposed, b_transposed):
    rng = np.random.default_rng(0)
    for M, K, N in [
        (1, 1, 1),
        (3, 5, 2),
        (7, 1, 16),
        (8, 40, 17),
        (9, 30, 48),
        (33, 64, 64),
        (20, 50, 81),
        (16, 9, 127),
    ]:
        a, b = random_matrix(rng, (M, K), a_transposed), random_matrix(rng, (K, N), b_transposed)
        exact = a.astype(float) @ b.astype(float)
        bound = np.abs(a).astype(float) @ np.abs(b).astype(float)
        assert np.all(np.abs(product(a, b) - exact) <= 1e-6 * bound)


def test_elements_are_sums_in_order_whatever_is_beside_them():
    rng = np.random.default_rng(1)
    a, b = random_matrix(rng, (21, 30)), random_matrix(rng, (30, 53))
    whole = product(a, b)
    for rows, columns in ((slice(2), slice(5)), (slice(3, 20), slice(7, 40)), (slice(20, 21), slice(52, 53))):
        part = product(a[rows], np.ascontiguousarray(b[:, columns]))
        np.testing.assert_array_equal(part, whole[rows, columns])


def test_products_without_terms_are_zero():
    assert not product(np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32)).any()
