from types import SimpleNamespace

import numpy as np
import pytest

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.tdpo.line_search import search_line, step_coefficients


class Quadratic:
    """A roller whose returns are -(theta - best)^2: the line search's answer is known."""

    start_size, horizon, layer_sizes = 1, 1, (1, 1)

    def start_states(self, starts):
        return starts

    def rollouts(self, theta, states, *, num_recorded):
        value = np.nan if np.abs(theta).max() > 20 else -np.sum((theta - 1.0) ** 2)
        ones = np.ones(len(states))
        return SimpleNamespace(discounted_returns=value * ones, lengths=ones)


def test_line_search_takes_the_best_coefficient_and_rejects_harm():
    coefficients = step_coefficients(5, 1e-3)
    np.testing.assert_allclose(coefficients, [0, 1e-3, 1e-2, 1e-1, 1])
    np.testing.assert_array_equal(step_coefficients(2, 1e-3), [0, 1])
    theta, starts = np.zeros(1), np.zeros((3, 1))
    search = search_line(Quadratic(), Comm(), coefficients, theta, np.array([11.0]), starts)
    assert search.coefficient == pytest.approx(0.1) and search.num_steps == 15
    assert search.gain == pytest.approx(1 - 0.1**2)
    harmful = search_line(Quadratic(), Comm(), coefficients, theta, np.array([-1.0]), starts)
    assert harmful.coefficient == harmful.gain == 0
    diverging = search_line(Quadratic(), Comm(), coefficients, theta, np.array([30.0]), starts)
    assert diverging.coefficient == pytest.approx(0.01)  # of 0.3 and 3: the nearer to 1
    useless = search_line(Quadratic(), Comm(), coefficients, theta, np.array([0.0]), starts)
    assert useless.coefficient == 0  # all are equal: the smallest
