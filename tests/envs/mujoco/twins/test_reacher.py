import numpy as np
import pytest
from twin_episodes import count_equal_steps, make_twin


@pytest.mark.slow
def test_twenty_episodes_equal_gymnasiums_to_the_bit():
    assert count_equal_steps("Reacher-v5") > 999


@pytest.mark.slow
def test_target_is_uniform_within_its_circle():
    kernel = make_twin("Reacher-v5", 50)
    state, targets = np.zeros(kernel.state_size), []
    for start in np.random.default_rng(0).random((2000, kernel.start_size)):
        kernel.reset(kernel.params, start, state)
        targets.append(state[3:5].copy())
    radii = np.linalg.norm(targets, axis=1)
    assert radii.max() <= 0.2
    assert np.mean(radii < 0.1) == pytest.approx(0.25, abs=0.03)
    np.testing.assert_allclose(np.mean(targets, axis=0), 0.0, atol=0.01)
