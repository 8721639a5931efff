import numpy as np

from tdpo_baselines.common.optim.adam import BETA1
from tdpo_baselines.tdpo.exploration_scale import RANGE, ExplorationScale


def test_derivative_is_that_of_the_expected_advantage():
    """An advantage of delta^2 in the first coordinate has mean sigma^2; its derivative by log sigma is 2 sigma^2."""
    directions = 0.5 * np.random.default_rng(0).standard_normal((200, 1000, 2))
    scale = ExplorationScale.initial(0.5, 2).adapt(
        directions, np.ones((200, 1000)), directions[..., 0] ** 2, initial_std=0.5, learning_rate=0.01
    )
    np.testing.assert_allclose(scale.mean / (1 - BETA1), [2 * 0.5**2, 0.0], atol=0.02)


def test_exploration_scale_follows_where_larger_perturbations_gain():
    rng = np.random.default_rng(0)
    scale = ExplorationScale.initial(0.5, 2)
    for _ in range(500):
        z = rng.standard_normal((50, 4, 2))
        directions = np.exp(scale.log_std) * z
        gains = z[..., 0] ** 2 - z[..., 1] ** 2  # the first coordinate should explore more, the second less
        scale = scale.adapt(directions, np.ones((50, 4)), gains, initial_std=0.5, learning_rate=0.05)
    np.testing.assert_allclose(np.exp(scale.log_std), 0.5 * np.array(RANGE)[::-1])
