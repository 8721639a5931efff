import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp, tf_mlp


@pytest.mark.parametrize("style", [mlp.PLAIN, mlp.Style("relu", True, (1.0, 0.0), (2.0, 3.0))])
@pytest.mark.parametrize("sizes", [(3, 8, 6, 2), (3, 2)])
def test_network_is_the_compiled_one(sizes, style):
    rng = np.random.default_rng(0)
    theta, rows = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((7, sizes[0]))
    expected = mlp.Forward(sizes, style)(theta, rows)
    np.testing.assert_allclose(tf_mlp.apply(theta, rows, sizes, style), expected, rtol=1e-12, atol=1e-12)


def test_parameters_may_come_in_layers():
    sizes = (3, 8, 2)
    rng = np.random.default_rng(0)
    theta, rows = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((4, 3))
    layers = tf_mlp.split_layers(theta, sizes)
    assert [(weights.shape, len(biases)) for weights, biases in layers] == [((3, 8), 8), ((8, 2), 2)]
    assert np.array_equal(tf_mlp.apply(layers, rows, sizes), tf_mlp.apply(theta, rows, sizes))


def test_linear_policy_has_no_hidden_layer():
    theta = np.array([1.0, 2.0, 3.0])
    assert tf_mlp.apply(theta, np.array([[10.0, 100.0]]), (2, 1)).numpy() == [[213.0]]
