import gymnasium
import numpy as np
import pytest

from envs.pendulum.long import long_kernel


def test_long_pendulum_equals_gymnasium_pendulum_step_for_step():
    ours, theirs = gymnasium.make("envs:tdpo/PendulumLong-v0", control_rate_hz=20), gymnasium.make("Pendulum-v1")
    observation, _ = ours.reset(seed=7)
    expected, _ = theirs.reset(seed=7)
    rng = np.random.default_rng(0)
    for t in range(200):
        np.testing.assert_allclose(observation, expected, atol=1e-6)  # Gymnasium observes in float32
        np.testing.assert_allclose(ours.unwrapped.state[:2], theirs.unwrapped.state, rtol=0, atol=1e-11)
        action = rng.uniform(-3, 3, 1)
        observation, reward, terminated, truncated, _ = ours.step(action)
        expected, expected_reward, _, _, _ = theirs.step(action)
        assert reward == pytest.approx(expected_reward, abs=1e-10)
        assert (terminated, truncated) == (False, t == 199)


def test_reset_draws_the_starts_of_gymnasiums_pendulum():
    ours, theirs = gymnasium.make("envs:tdpo/PendulumLong-v0"), gymnasium.make("Pendulum-v1")
    for seed in range(5):
        ours.reset(seed=seed)
        theirs.reset(seed=seed)
        np.testing.assert_allclose(ours.unwrapped.state[:2], theirs.unwrapped.state, rtol=1e-15)


@pytest.mark.parametrize("rate", [20, 100, 500])
def test_episode_lasts_ten_seconds_at_any_control_rate(rate):
    kernel = long_kernel(control_rate_hz=rate)
    assert kernel.horizon == 10 * rate and kernel.params.dt == 1 / rate


def test_bad_control_rate_names_the_field():
    with pytest.raises(ValueError, match="control_rate_hz"):
        long_kernel(control_rate_hz=0)
