import numpy as np

from tdpo_baselines.common.optim.adam import Adam
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow

tf = load_tensorflow()  # before any operation: sets the threads


def test_steps_are_those_of_tensorflow():
    rng = np.random.default_rng(0)
    theta = tf.Variable(rng.standard_normal(5))
    optimiser = tf.keras.optimizers.Adam(0.01, epsilon=1e-8)
    optimiser.build([theta])
    ours, adam = theta.numpy(), Adam.of_size(5)
    for _ in range(20):
        gradient = rng.standard_normal(5)
        optimiser.apply_gradients([(tf.constant(gradient), theta)])
        adam, change = adam.step(gradient, learning_rate=0.01)
        ours = ours - change
    np.testing.assert_allclose(ours, theta.numpy(), rtol=1e-5, atol=1e-7)  # Keras keeps the rate in float32
    assert adam.count == 20


def test_first_step_has_the_size_of_the_learning_rate():
    _, change = Adam.of_size(2).step(np.array([1e-3, -1e3]), learning_rate=0.1)
    np.testing.assert_allclose(change, [0.1, -0.1], rtol=1e-4)
