"""Jacobians against TensorFlow's automatic differentiation."""

import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp, tf_mlp
from tdpo_baselines.common.networks.jacobian import Jacobian, SensitivityJacobian
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow

tf = load_tensorflow()  # before any operation: sets the threads

SIZES = [(3, 8, 6, 2), (3, 7, 1), (3, 2), (2, 5, 6, 4, 3)]
N, L = 2, 5


def dense(function, theta):
    """Return d function / d theta by reverse passes."""
    theta = tf.constant(theta)
    with tf.GradientTape() as tape:
        tape.watch(theta)
        output = function(theta)
    return tape.jacobian(output, theta).numpy()


def actions_and_sensitivities(theta, rows, sizes, style):
    """Return a and da/ds for each row, [R, 1 + O, A]."""
    rows = tf.constant(rows)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        output = tf_mlp.apply(theta, rows, sizes, style)
    return tf.concat([output[:, None], tf.transpose(tape.batch_jacobian(output, rows), (0, 2, 1))], axis=1)


OUTPUTS = {Jacobian: tf_mlp.apply, SensitivityJacobian: actions_and_sensitivities}


STYLES = [mlp.PLAIN, mlp.Style(has_linear_part=True)]


def problem(kind, sizes, style=mlp.PLAIN):
    """Return theta, observations [n, L, O] and the dense Jacobian [n, rows, A, P]."""
    rng = np.random.default_rng(0)
    theta, observations = rng.standard_normal(mlp.num_parameters(sizes, style)), rng.standard_normal((N, L, sizes[0]))
    rows = observations.reshape(-1, sizes[0])
    return (
        theta,
        observations,
        dense(lambda t: OUTPUTS[kind](t, rows, sizes, style), theta).reshape(N, -1, sizes[-1], len(theta)),
    )


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("style", STYLES)
def test_products_are_those_of_the_dense_jacobian(kind, sizes, style):
    theta, observations, expected = problem(kind, sizes, style)
    rng = np.random.default_rng(1)
    vector, cotangents = rng.standard_normal(len(theta)), rng.standard_normal(expected.shape[:3])
    jacobian = kind(theta, observations, sizes)
    np.testing.assert_allclose(jacobian.jvp(vector), expected @ vector, rtol=1e-10, atol=1e-12)
    vjp = np.einsum("nla,nlap->np", cotangents, expected)
    np.testing.assert_allclose(jacobian.vjp(cotangents), vjp, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("style", STYLES)
def test_gram_matrix_is_that_of_the_dense_jacobian(sizes, style):
    theta, observations, expected = problem(Jacobian, sizes, style)
    rows = expected[0].reshape(-1, len(theta))
    np.testing.assert_allclose(Jacobian(theta, observations[:1], sizes).gram(), rows @ rows.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_group_has_the_same_bits_alone_and_among_others(kind, dtype):
    sizes = (3, 8, 6, 2)
    theta, observations, expected = problem(kind, sizes)
    cotangents = np.random.default_rng(1).standard_normal(expected.shape[:3])
    together = kind(theta, observations, sizes, dtype).vjp(cotangents)
    assert together.dtype == np.float64
    for n in range(N):
        alone = kind(theta, observations[n : n + 1], sizes, dtype).vjp(cotangents[n : n + 1])
        assert np.array_equal(alone[0], together[n])


@pytest.mark.parametrize("style", STYLES)
def test_squared_norms_are_the_diagonal_of_the_gram_matrix_and_of_each_group_alone(style):
    sizes = (3, 8, 6, 2)
    theta, observations, _ = problem(Jacobian, sizes, style)
    together = Jacobian(theta, observations, sizes).squared_norms()
    for n in range(N):
        alone = Jacobian(theta, observations[n : n + 1], sizes)
        assert np.array_equal(alone.squared_norms()[0], together[n])
        np.testing.assert_allclose(together[n].ravel(), np.diag(alone.gram()), rtol=1e-12)


def test_single_precision_is_close():
    sizes = (3, 8, 6, 2)
    theta, observations, expected = problem(Jacobian, sizes)
    jacobian = Jacobian(theta, observations, sizes, np.float32)
    np.testing.assert_allclose(jacobian.jvp(theta), expected @ theta, rtol=1e-4, atol=1e-4)


def test_no_groups_give_no_sums():
    jacobian = Jacobian(np.ones(mlp.num_parameters((2, 3, 1))), np.zeros((0, 4, 2)), (2, 3, 1))
    assert jacobian.vjp(jacobian.jvp(np.ones(13))).shape == (0, 13)
