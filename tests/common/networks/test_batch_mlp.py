"""Networks for minibatches against the compiled network in double precision and TensorFlow's gradients."""

import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp, tf_mlp
from tdpo_baselines.common.networks.batch_mlp import BatchMlp, tanh
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow

SIZES = (3, 20, 17, 2)
STYLES = [mlp.Style(hidden, is_squashed) for hidden in ("relu", "tanh") for is_squashed in (False, True)]


def problem(sizes=SIZES, num_rows=37):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=mlp.num_parameters(sizes)) / 3
    return theta.astype(np.float32), rng.normal(size=(num_rows, sizes[0])).astype(np.float32), rng


def distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("style", STYLES)
def test_outputs_are_those_of_the_network_that_acts(style):
    theta, inputs, _ = problem()
    expected = mlp.Forward(SIZES, style)(theta.astype(float), inputs.astype(float))
    assert distance(BatchMlp(SIZES, style)(theta, inputs).outputs, expected) < 1e-6


@pytest.mark.parametrize("sizes", [SIZES, (4, 1), (17, 400, 300, 6)])
@pytest.mark.parametrize("style", STYLES)
def test_derivatives_equal_those_of_tensorflow(sizes, style):
    tf = load_tensorflow()
    theta, inputs, rng = problem(sizes)
    cotangents = rng.normal(size=(len(inputs), sizes[-1])).astype(np.float32)
    at, to = tf.constant(theta), tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch([at, to])
        total = tf.reduce_sum(cotangents * tf_mlp.apply(at, to, sizes, style))
    expected = [part.numpy() for part in tape.gradient(total, [at, to])]
    forward = BatchMlp(sizes, style)(theta, inputs)
    assert distance(forward.parameter_vjp(cotangents), expected[0]) < 1e-5
    assert distance(forward.input_vjp(cotangents), expected[1]) < 1e-5


def test_tanh_is_that_of_double_precision():
    x = np.linspace(-12, 12, 100_001).astype(np.float32)
    found = np.array([tanh(number) for number in x])
    assert np.abs(found - np.tanh(x.astype(float))).max() < 4e-7 and np.abs(found).max() <= 1
    assert np.isnan(tanh(np.float32(np.nan)))


@pytest.mark.parametrize("style", STYLES)
def test_not_a_number_spreads(style):
    theta, inputs, _ = problem()
    inputs[5, 1] = np.nan
    forward = BatchMlp(SIZES, style)(theta, inputs)
    assert np.all(np.isnan(forward.outputs).any(axis=1) == (np.arange(37) == 5))
    assert np.isnan(forward.parameter_vjp(np.ones((37, 2)))).any()


def test_a_row_does_not_depend_on_the_others():
    theta, inputs, _ = problem()
    network = BatchMlp(SIZES, mlp.Style("tanh"))
    np.testing.assert_array_equal(network(theta, inputs[11:14]).outputs, network(theta, inputs).outputs[11:14])
