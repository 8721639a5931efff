import numpy as np
import pytest

from tdpo_baselines.common.optim.adam import Adam, descend, descend_and_average
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow

tf = load_tensorflow()  # before any operation: sets the threads


def zeros(size):
    return [np.zeros(size, np.float32) for _ in range(2)]


def test_steps_are_those_of_tensorflow():
    rng = np.random.default_rng(0)
    theta = tf.Variable(rng.standard_normal(5).astype(np.float32))
    optimiser = tf.keras.optimizers.Adam(0.01, epsilon=1e-8)
    optimiser.build([theta])
    ours, (mean, square), adam = theta.numpy(), zeros(5), Adam.of_size(5)
    exact = ours.astype(float)
    for count in range(1, 21):
        gradient = rng.standard_normal(5).astype(np.float32)
        optimiser.apply_gradients([(tf.constant(gradient), theta)])
        descend(ours, mean, square, gradient, count, 0.01, 1e-8)
        adam, change = adam.step(gradient, learning_rate=0.01)
        exact -= change
    for found in (ours, exact):
        np.testing.assert_allclose(found, theta.numpy(), rtol=1e-5, atol=1e-7)
    assert adam.count == 20


def test_first_step_has_the_size_of_the_learning_rate():
    (theta, mean), square = zeros(2), zeros(2)[0]
    descend(theta, mean, square, np.array([1e-3, -1e3], np.float32), 1, 0.1, 1e-8)
    _, change = Adam.of_size(2).step(np.array([1e-3, -1e3]), learning_rate=0.1)
    np.testing.assert_allclose([-theta, change], [[0.1, -0.1]] * 2, rtol=1e-4)


def test_average_follows_the_step():
    rng = np.random.default_rng(0)
    theta, average, gradient = rng.normal(size=(3, 7)).astype(np.float32)
    alone, before = theta.copy(), average.copy()
    descend(alone, *zeros(7), gradient, 1, 0.1, 1e-8)
    descend_and_average(theta, *zeros(7), average, gradient, 1, 0.1, 1e-8, 0.25)
    np.testing.assert_array_equal(theta, alone)
    assert average == pytest.approx(0.75 * before + 0.25 * theta, rel=1e-5)
