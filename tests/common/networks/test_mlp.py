import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp, tf_mlp

SIZES = [(2, 64, 64, 1), (3, 7, 2), (4, 2), (11, 9, 8, 17, 3), (1, 1, 1), (3, 40, 21, 1)]
STYLES = {
    "relu": mlp.Style("relu"),
    "squashed": mlp.Style("tanh", is_squashed=True),
    "scaled": mlp.Style("relu", True, (0.5, -1.0), (2.0, 3.0)),
    "linear": mlp.Style(has_linear_part=True),
    "linear-scaled": mlp.Style("tanh", False, (0.5, -1.0), (2.0, 3.0), has_linear_part=True),
}


def act_on_each(theta, sizes, observations):
    forward = mlp.Forward(sizes)
    return np.array([forward(theta, observation) for observation in observations])


@pytest.mark.parametrize("sizes", SIZES)
def test_compiled_policy_equals_tensorflow(sizes):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(mlp.num_parameters(sizes))
    observations = 3 * rng.standard_normal((50, sizes[0]))
    expected = tf_mlp.apply(theta, observations, sizes).numpy()
    np.testing.assert_allclose(act_on_each(theta, sizes, observations), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", STYLES)
def test_every_style_equals_tensorflow(name):
    rng, sizes = np.random.default_rng(0), (3, 20, 2)
    theta, observations = rng.standard_normal(mlp.num_parameters(sizes, STYLES[name])), rng.standard_normal((9, 3))
    expected = tf_mlp.apply(theta, observations, sizes, STYLES[name]).numpy()
    ours = mlp.Forward(sizes, STYLES[name])(theta, observations)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (3, 5)])
def test_forward_of_many_observations_equals_acting_on_each_bit_for_bit(shape):
    rng, sizes = np.random.default_rng(0), (3, 20, 2)
    theta, observations = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((*shape, 3))
    outputs = mlp.Forward(sizes)(theta, observations)
    expected = act_on_each(theta, sizes, observations.reshape(-1, 3)).reshape(*shape, 2)
    assert outputs.shape == (*shape, 2) and np.array_equal(outputs, expected)


@pytest.mark.parametrize("num", [2, 3, 4])
@pytest.mark.parametrize("sizes", [(3, 10, 9, 2), (2, 20, 35, 12)])
def test_lanes_do_not_depend_on_each_other(sizes, num):
    rng = np.random.default_rng(0)
    theta, observations = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((num, sizes[0]))
    workspace = mlp.make_workspace(sizes)
    workspace.observations[:num] = observations
    mlp.compile_act(sizes)(theta, workspace.activations, num)
    assert np.array_equal(workspace.actions[:num], act_on_each(theta, sizes, observations))


def test_nan_passes_through():
    theta = np.full(mlp.num_parameters((1, 4, 1)), 1.0)
    assert np.isnan(act_on_each(theta, (1, 4, 1), np.array([[np.nan]]))).all()


def test_layers_are_views_of_theta_in_its_documented_order():
    (first, first_biases), (last, last_biases) = mlp.split_layers(np.arange(17.0), (2, 3, 2))
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]] and first_biases.tolist() == [6, 7, 8]
    assert last.tolist() == [[9, 10], [11, 12], [13, 14]] and last_biases.tolist() == [15, 16]


def test_aligned_copy_begins_on_a_cache_line():
    theta = np.arange(101.0)[1:]
    copy = mlp.copy_aligned(theta)
    assert np.array_equal(copy, theta) and copy.ctypes.data % 64 == 0


def test_initial_output_is_scaled_and_hidden_layers_are_xavier():
    sizes = (4, 64, 64, 2)
    theta = mlp.init_parameters(sizes, np.random.default_rng(0), output_gain=0.001)
    (first, _), (second, _), (last, last_biases) = mlp.split_layers(theta, sizes)
    assert np.abs(first).max() <= np.sqrt(6 / 68) and np.std(second) == pytest.approx(np.sqrt(2 / 128), rel=0.05)
    assert np.abs(last).max() <= 0.001 * np.sqrt(6 / 66)
    assert np.all(last_biases == 0)
