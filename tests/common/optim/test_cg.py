import numpy as np
import pytest

from tdpo_baselines.common.optim import cg
from tdpo_baselines.common.parallel.checks import NotFinite


@pytest.fixture
def system():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((20, 20))
    return factor @ factor.T + np.eye(20), rng.standard_normal(20)


def test_equals_a_direct_solve(system):
    matrix, b = system
    solution = cg.solve(lambda v: matrix @ v, b, max_iterations=200, tolerance=1e-13)
    np.testing.assert_allclose(solution.x, np.linalg.solve(matrix, b), rtol=1e-9)


def test_reports_norms_and_curvature_of_the_solution(system):
    matrix, b = system
    solution = cg.solve(lambda v: matrix @ v, b, max_iterations=5, tolerance=0, damping=2.0)
    x, residual = solution.x, b - matrix @ solution.x - 2.0 * solution.x
    expected = (b @ b, b @ x, x @ matrix @ x, residual @ residual)
    np.testing.assert_allclose(solution[2:], expected, rtol=1e-9)


def test_stops_at_the_tolerance_and_at_the_iterations(system):
    matrix, b = system
    loose = cg.solve(lambda v: matrix @ v, b, max_iterations=200, tolerance=0.1)
    assert loose.residual_squared <= 0.01 * loose.b_squared
    assert loose.num_iterations < 20
    assert cg.solve(lambda v: matrix @ v, b, max_iterations=3, tolerance=0).num_iterations == 3


def test_zero_right_hand_side_gives_zero_without_a_product():
    def never(v):
        raise AssertionError

    solution = cg.solve(never, np.zeros(3), max_iterations=10, tolerance=0)
    assert not solution.x.any() and solution.num_iterations == 0


def test_singular_operator_is_left_without_dividing_by_zero():
    solution = cg.solve(lambda v: v * np.array([1.0, 0.0]), np.array([0.0, 1.0]), max_iterations=5, tolerance=0)
    assert np.isfinite(solution.x).all()


@pytest.mark.parametrize("num_iterations", [1, 3, 30])
def test_coefficients_with_a_metric_iterate_like_the_vectors_they_stand_for(num_iterations):
    rng = np.random.default_rng(1)
    jacobian, weights, c = rng.standard_normal((6, 15)), rng.random(6), rng.standard_normal(6)
    gram = jacobian @ jacobian.T
    limits = {"max_iterations": num_iterations, "tolerance": 1e-10, "damping": 0.1}
    expected = cg.solve(lambda v: jacobian.T @ (weights * (jacobian @ v)), jacobian.T @ c, **limits)
    found = cg.solve(lambda image: weights * image, c, metric=lambda u: gram @ u, **limits)
    np.testing.assert_allclose(jacobian.T @ found.x, expected.x, rtol=1e-8)
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-6, atol=1e-12)


def test_curvature_that_is_not_finite_is_raised():
    with pytest.raises(NotFinite, match="curvature is nan"):
        cg.solve(lambda v: v * np.nan, np.ones(2), max_iterations=1, tolerance=0)
