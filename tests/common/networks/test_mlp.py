import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks import tf_mlp as policy


def compiled_actions(theta, sizes, observations):
    act = mlp.compile_act(sizes)
    return np.array([mlp.act_once(act, sizes, theta, observation) for observation in observations])


@pytest.mark.parametrize("sizes", [(2, 64, 64, 1), (3, 7, 2), (4, 2), (11, 9, 8, 17, 3), (1, 1, 1), (3, 40, 21, 1)])
def test_compiled_policy_equals_tensorflow(sizes):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(mlp.num_parameters(sizes))
    observations = 3 * rng.standard_normal((50, sizes[0]))
    expected = policy.actions(theta, observations, sizes).numpy()
    np.testing.assert_allclose(compiled_actions(theta, sizes, observations), expected, rtol=1e-12, atol=1e-12)


def test_tanh_is_accurate_to_the_last_place():
    x = np.concatenate([[0.0, -0.0, 1e-300, 1e-9, -1e-5, 19.9, 20.1, -1e6, np.inf], np.linspace(-25, 25, 2001)])
    ours = np.array([mlp.tanh_of(value) for value in x])
    np.testing.assert_allclose(ours, np.tanh(x), rtol=4e-16, atol=0)
    assert np.signbit(ours[1])


@pytest.mark.parametrize("num", [2, 3, 4])
@pytest.mark.parametrize("sizes", [(3, 10, 9, 2), (2, 20, 35, 12)])
def test_lanes_do_not_depend_on_each_other(sizes, num):
    rng = np.random.default_rng(0)
    theta, observations = rng.standard_normal(mlp.num_parameters(sizes)), rng.standard_normal((num, sizes[0]))
    together = np.zeros(mlp.num_activations(sizes))
    together[: observations.size] = observations.ravel()
    mlp.compile_act(sizes)(theta, together, num)
    start = mlp.num_activations(sizes[:-1])
    actions = together[start : start + num * sizes[-1]].reshape(num, sizes[-1])
    assert np.array_equal(actions, compiled_actions(theta, sizes, observations))


def test_not_a_number_passes_through():
    theta = np.full(mlp.num_parameters((1, 4, 1)), 1.0)
    assert np.isnan(compiled_actions(theta, (1, 4, 1), np.array([[np.nan]]))).all()


def test_initial_output_is_scaled_and_hidden_layers_are_xavier():
    sizes = (4, 64, 64, 2)
    theta = mlp.initial_parameters(sizes, np.random.default_rng(0), output_gain=0.001)
    first, second = theta[: 4 * 64], theta[4 * 64 + 64 : 4 * 64 + 64 + 64 * 64]
    assert np.abs(first).max() <= np.sqrt(6 / 68) and np.std(second) == pytest.approx(np.sqrt(2 / 128), rel=0.05)
    assert np.abs(theta[-2 - 128 : -2]).max() <= 0.001 * np.sqrt(6 / 66)
    assert np.all(theta[-2:] == 0)
