"""Show an episode at any moment."""

import numpy as np
import pytest
from untrained import untrained

from tdpo_baselines.evaluating.trained import evaluate
from tdpo_baselines.viewing.episode import Episode, median_episode


def test_states_are_those_of_the_rollout_and_the_return_is_the_evaluation_s():
    evaluation = evaluate(untrained("pendulum-20hz"), num_episodes=3)
    episode = Episode(evaluation, 1)
    assert episode.num_steps == 200 and episode.duration == 10
    moments = episode.at(np.arange(200) / 20)
    observed = evaluation.rollouts.observations[1]  # [T, 3]
    np.testing.assert_array_equal(np.cos(moments.signals["angle (rad)"]), observed[:, 0])
    np.testing.assert_array_equal(moments.signals["rate (rad/s)"], observed[:, 2])
    assert episode.at(np.array([10.0])).signals["return"][0] == pytest.approx(evaluation.results["return"][1])


def test_states_in_between_are_interpolated_and_actions_held():
    episode = Episode(evaluate(untrained("pendulum-20hz"), num_episodes=1), 0)
    angles = episode.at(np.array([0.05, 0.075, 0.1])).signals["angle (rad)"]
    assert angles[1] == pytest.approx((angles[0] + angles[2]) / 2)
    assert set(episode.at(np.array([0.075])).signals) == {"angle (rad)", "rate (rad/s)", "torque (N m)", "return"}


def test_moments_beyond_the_end_show_the_end():
    episode = Episode(evaluate(untrained("pendulum-20hz"), num_episodes=1), 0)
    end, later = (episode.at(np.array([seconds])).scene.chain for seconds in (10.0, 99.0))
    np.testing.assert_array_equal(end, later)


@pytest.mark.parametrize("options", [{}, {"delay_steps": 3}])
def test_leg_has_a_drawing_and_a_mujoco_model_also_with_delayed_actions(options):
    moments = Episode(evaluate(untrained("leg-100hz", **options), num_episodes=1), 0).at(np.array([0.0, 0.1]))
    assert moments.scene.chain.shape == (2, 3, 2) and moments.positions.shape == (2, 3) and moments.model.nq == 3
    assert {"height (m)", "ground force (N)", "hip torque (N m)", "return"} <= set(moments.signals)


def test_gymnasium_task_has_the_positions_of_its_rollout():
    evaluation = evaluate(untrained("InvertedPendulum-v5"), num_episodes=2)
    moments = Episode(evaluation, 1).at(np.array([0.0, 0.04]))
    np.testing.assert_array_equal(moments.positions[0], evaluation.rollouts.observations[1, 0, :2])
    np.testing.assert_allclose(moments.positions[1], evaluation.rollouts.observations[1, 1, :2], atol=1e-12)
    assert moments.scene is None and moments.signals["return"].tolist() == [0, 1]


def test_environment_without_a_picture_is_refused():
    for name in ("chain", "MountainCarContinuous-v0"):
        with pytest.raises(ValueError, match="no picture"):
            Episode(evaluate(untrained(name), num_episodes=1), 0)


def test_median_episode_is_the_one_in_the_middle():
    evaluation = evaluate(untrained("pendulum-20hz"), num_episodes=5)
    assert evaluation.results["return"][median_episode(evaluation)] == np.median(evaluation.results["return"])
