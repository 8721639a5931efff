import numpy as np
import pytest

from tdpo_baselines.common.optim import cg


@pytest.fixture
def system():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((20, 20))
    return factor @ factor.T + np.eye(20), rng.standard_normal(20)


def test_equals_a_direct_solve(system):
    matrix, b = system
    solution = cg.solve(lambda v: matrix @ v, b, max_iterations=200, tolerance=1e-13)
    np.testing.assert_allclose(solution.x, np.linalg.solve(matrix, b), rtol=1e-9)


def test_tells_what_the_solution_is_like(system):
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
