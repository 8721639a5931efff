import math

import numpy as np
import pytest

from envs.pendulum import physics


def test_swing_clips_torque_and_rate_in_place():
    state, action = np.array([0.1, 7.99]), np.array([100.0])
    physics.swing(0.05, 2.0, state, action)
    assert action[0] == 2.0
    assert state.tolist() == [0.1 + 8.0 * 0.05, 8.0]


def test_swing_without_torque_falls_from_the_top_and_rests_at_the_bottom():
    for angle, acceleration in ((0.0, 0.0), (0.5, 15 * math.sin(0.5)), (math.pi, 0.0)):
        state = np.array([angle, 0.0])
        physics.swing(0.01, 2.0, state, np.zeros(1))
        assert state[1] == pytest.approx(0.01 * acceleration, abs=1e-15)


def test_starts_cover_their_share_of_the_circle():
    low, high = np.zeros(2), np.zeros(2)
    physics.place(0.5, np.zeros(2), low)
    physics.place(0.5, np.ones(2), high)
    np.testing.assert_allclose([low, high], [[-math.pi / 2, -0.5], [math.pi / 2, 0.5]])


@pytest.mark.parametrize("scale", [-1, 1.1, float("nan")])
def test_bad_start_scale_is_refused(scale):
    with pytest.raises(ValueError, match="start_scale must be between 0 and 1"):
        physics.check_start_scale(scale)


def test_rod_is_upright_at_zero_and_leans_to_the_left_for_positive_angles():
    scene = physics.draw_rod(np.array([[0.0, 1.0], [math.pi / 2, 2.0]]), target=math.pi)
    np.testing.assert_allclose(scene.chain[:, 1], [[0, 1], [-1, 0]], atol=1e-15)
    np.testing.assert_allclose(scene.marks["target"][1], [0, -1.15], atol=1e-15)
    assert scene.signals["rate (rad/s)"].tolist() == [1, 2]
