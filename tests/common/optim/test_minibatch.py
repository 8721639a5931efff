"""Adam on minibatches, on one rank and shared in blocks, against plain NumPy."""

import numpy as np
import pytest
from numba import njit

from tdpo_baselines.common.optim import minibatch
from tdpo_baselines.common.optim.adam import Adam
from tdpo_baselines.common.optim.minibatch import MinibatchAdam, clip_by_norm
from tdpo_baselines.common.parallel.comm import Comm


@njit
def differentiate(theta, rows, decay, problem, gradient):
    """Differentiate `decay` times the squared error of a linear function of all columns but the last, its target."""
    inputs = rows[:, :-1].copy()
    error = inputs @ theta - rows[:, -1]
    gradient[:] = (2 * decay / len(rows) * (error @ inputs)).astype(np.float32)
    return decay * np.mean(error**2)


def by_hand(rows, *, num_epochs, rng, size, learning_rate, decay, max_norm):
    theta, mean, square, losses = np.zeros(3), np.zeros(3), np.zeros(3), []
    count = 0
    for _ in range(num_epochs):
        order = rng.permutation(len(rows))
        for first in range(0, len(rows) - size + 1, size):
            inputs, targets = np.split(rows[order[first : first + size]], [3], axis=1)
            error = inputs @ theta - targets[:, 0]
            losses.append(decay * np.mean(error**2))
            gradient = 2 * decay * error @ inputs / size
            gradient *= min(1.0, max_norm / np.linalg.norm(gradient))
            count += 1
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            step = mean / (1 - 0.9**count) / (np.sqrt(square / (1 - 0.999**count)) + 1e-5)
            theta = theta - decay * learning_rate * step
    return theta, np.mean(losses)


@pytest.mark.parametrize("rows_per_block", [256, 16])  # one block; 50 rows in 4 blocks, the last not full
def test_steps_are_those_of_adam_on_minibatches(monkeypatch, rows_per_block):
    monkeypatch.setattr(minibatch, "ROWS_PER_BLOCK", rows_per_block)
    rows = np.random.default_rng(0).normal(size=(230, 4))
    rows[:, 3] += rows[:, :3] @ [1.0, 2.0, 3.0]  # gradients are longer than max_norm at first
    schedule = {"num_epochs": 3, "learning_rate": 0.05, "decay": 0.5}
    fit = MinibatchAdam(differentiate, (), 50, Comm(), max_norm=0.8, epsilon=1e-5)
    theta, adam, loss = fit.minimise(np.zeros(3), Adam.of_size(3), rows, rng=np.random.default_rng(1), **schedule)
    expected, mean_loss = by_hand(rows, rng=np.random.default_rng(1), size=50, max_norm=0.8, **schedule)
    assert theta == pytest.approx(expected, rel=1e-4) and loss == pytest.approx(mean_loss, rel=1e-5)
    assert adam.count == 12 and np.linalg.norm(theta) > 0.1


def test_minimising_continues_from_its_moments():
    rows = np.random.default_rng(0).normal(size=(64, 4))
    fit = MinibatchAdam(differentiate, (), 64, Comm(), max_norm=None, epsilon=1e-8)
    options = {"rng": np.random.default_rng(1), "learning_rate": 0.05}
    whole, _, _ = fit.minimise(np.zeros(3), Adam.of_size(3), rows, num_epochs=4, **options)
    options["rng"] = np.random.default_rng(1)
    theta, adam, _ = fit.minimise(np.zeros(3), Adam.of_size(3), rows, num_epochs=2, **options)
    parts, _, _ = fit.minimise(theta, adam, rows, num_epochs=2, **options)
    np.testing.assert_array_equal(parts, whole)


def test_gradients_are_clipped_by_their_norm_only_if_they_are_longer():
    for size in (2, 64, 200):
        gradient = np.random.default_rng(size).normal(size=size).astype(np.float32)
        for max_norm, expected in (
            (0.5, 0.5 * gradient / np.linalg.norm(gradient)),
            (99.0, gradient),
            (np.inf, gradient),
        ):
            clipped = gradient.copy()
            clip_by_norm(clipped, max_norm)
            assert clipped == pytest.approx(expected, rel=1e-6)
