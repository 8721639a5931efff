"""Derivatives against explicit Jacobians, and that a block's sum does not depend on the share."""

import numpy as np
import pytest
import tensorflow as tf

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks import tf_mlp as policy
from tdpo_baselines.common.networks.jacobian import Tangent
from tdpo_baselines.common.optim import cg
from tdpo_baselines.tdpo import few_rows

SIZES = (3, 8, 6, 2)
NUM_BLOCKS, ROWS = 3, 5


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    num_parameters = mlp.num_parameters(SIZES)
    return {
        "theta": rng.standard_normal(num_parameters),
        "vector": rng.standard_normal(num_parameters),
        "observations": rng.standard_normal((NUM_BLOCKS, ROWS, SIZES[0])),
        "weights": rng.random((NUM_BLOCKS, ROWS, SIZES[-1])),
        "cotangents": rng.standard_normal((NUM_BLOCKS, ROWS, SIZES[-1])),
    }


@pytest.fixture(scope="module")
def derivatives():
    return policy.PolicyDerivatives(SIZES, NUM_BLOCKS, ROWS)


def all_blocks():
    return np.array([0, NUM_BLOCKS], dtype=np.int32)


def jacobian(function, theta):
    """Dense d function / d theta, by reverse passes."""
    theta = tf.constant(theta)
    with tf.GradientTape() as tape:
        tape.watch(theta)
        output = function(theta)
    return tape.jacobian(output, theta).numpy()


@pytest.mark.parametrize("name", ["wasserstein", "sensitivity"])
def test_vector_product_equals_the_dense_hessian(name, problem, derivatives):
    function = {"wasserstein": policy.actions, "sensitivity": policy.sensitivities}[name]
    product = getattr(derivatives, f"{name}_product")
    rows = problem["observations"].reshape(-1, SIZES[0])
    dense = jacobian(lambda theta: function(theta, rows, SIZES), problem["theta"])  # [R, ..., P]
    dense = dense.reshape(len(rows), -1, SIZES[-1], dense.shape[-1])  # [R, 1 or O, A, P]
    hessian = np.einsum("ra,roap,roaq->pq", problem["weights"].reshape(len(rows), -1), dense, dense)
    sums = product(all_blocks(), problem["theta"], problem["vector"], problem["observations"], problem["weights"])
    expected = hessian @ problem["vector"]
    assert np.linalg.norm(sums.sum(axis=0) - expected) <= 1e-10 * np.linalg.norm(expected)


def test_sensitivity_is_the_jacobian_of_the_action(problem):
    rows = tf.constant(problem["observations"][0])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        output = policy.actions(problem["theta"], rows, SIZES)
    expected = tf.transpose(tape.batch_jacobian(output, rows), (0, 2, 1))  # [R, O, A]
    np.testing.assert_allclose(policy.sensitivities(problem["theta"], rows, SIZES), expected, atol=1e-13)


def test_gradient_equals_the_dense_jacobian(problem, derivatives):
    rows = problem["observations"].reshape(-1, SIZES[0])
    dense = jacobian(lambda theta: policy.actions(theta, rows, SIZES), problem["theta"])
    expected = np.einsum("ra,rap->p", problem["cotangents"].reshape(-1, SIZES[-1]), dense)
    sums = derivatives.gradient(all_blocks(), problem["theta"], problem["observations"], problem["cotangents"])
    np.testing.assert_allclose(sums.sum(axis=0), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("sizes", "num_rows"), [(SIZES, 15), ((1, 3), 1), ((1, 1, 1), 3), ((5, 17, 9, 8, 1), 40)])
@pytest.mark.parametrize("num_iterations", [1, 4])
def test_few_rows_iterate_like_all_parameters(sizes, num_rows, num_iterations):
    """By the dense Jacobian; widths and rows that are multiples of a tile, and that are not."""
    rng = np.random.default_rng(0)
    theta, rows = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((num_rows, sizes[0]))
    dense = jacobian(lambda theta: policy.actions(theta, rows, sizes), theta).reshape(-1, len(theta))  # [R A, P]
    weights, c = rng.random(len(dense)), rng.standard_normal(len(dense))
    limits = {"max_iterations": num_iterations, "tolerance": 1e-9, "damping": 0.1}
    expected = cg.solve(lambda v: dense.T @ (weights * (dense @ v)), c @ dense, **limits)
    found = few_rows.solve(theta, rows, sizes, weights, c, **limits)
    assert found.num_iterations == expected.num_iterations == min(num_iterations, len(dense))
    for name, value in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("sizes", [SIZES, (3, 7, 1), (3, 2)])
def test_tangent_is_the_dense_jacobian(sizes):
    rng = np.random.default_rng(0)
    theta, vector = rng.standard_normal((2, mlp.num_parameters(sizes)))
    observations = rng.standard_normal((2, 20, sizes[0]))
    dense = jacobian(lambda theta: policy.actions(theta, observations.reshape(-1, sizes[0]), sizes), theta)
    dense = dense.reshape(2, 20, sizes[-1], -1)  # [n, L, A, P]
    tangent, cotangents = Tangent(theta, observations, sizes), rng.standard_normal(dense.shape[:3])
    np.testing.assert_allclose(tangent.image(vector), dense @ vector, rtol=1e-5, atol=1e-5)
    expected = np.einsum("nla,nlap->np", cotangents, dense)
    np.testing.assert_allclose(tangent.pulled_back(cotangents), expected, rtol=1e-5, atol=1e-5)
    for n in range(2):
        alone = Tangent(theta, observations[n : n + 1], sizes).pulled_back(cotangents[n : n + 1])
        assert np.array_equal(alone[0], tangent.pulled_back(cotangents)[n])


def test_blocks_sum_to_the_same_bits_in_any_share(problem, derivatives):
    arguments = (problem["theta"], problem["vector"], problem["observations"], problem["weights"])
    together = derivatives.sensitivity_product(all_blocks(), *arguments)
    for block in range(NUM_BLOCKS):
        alone = derivatives.sensitivity_product(np.array([block, block + 1], dtype=np.int32), *arguments)
        assert np.array_equal(alone[block], together[block])
        assert not np.delete(alone, block, axis=0).any()


def test_linear_policy_has_no_hidden_layer():
    theta = np.array([1.0, 2.0, 3.0])
    assert policy.actions(theta, np.array([[10.0, 100.0]]), (2, 1)).numpy() == [[213.0]]
