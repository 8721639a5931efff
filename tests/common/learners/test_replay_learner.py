"""Updates from a replay: networks, Adam and Polyak averages, one rank against shared gradients, exploration, state."""

import linear_quadratic
import numpy as np
import paid_at_end
import pytest
from replay_problem import copies, make_learner

from tdpo_baselines.common.learners import replay_learner
from tdpo_baselines.common.learners.replay_learner import Fitted
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.optim.adam import Adam
from tdpo_baselines.common.sampling.replay import Transitions
from tdpo_baselines.ddpg import ddpg
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.td3 import td3


def transitions(learner) -> Transitions:
    """Return all transitions of the first stream."""
    rows = learner.replay.filled[0].astype(np.float64)
    return Transitions.from_rows(rows, learner.networks.sizes[0], learner.networks.sizes[-1])


def test_networks_are_those_that_act():
    kernel = linear_quadratic.limited_kernel()
    learner = make_learner(td3, kernel)
    observations = np.random.default_rng(0).normal(size=(10, 2))
    executed = mlp.Forward(learner.networks.sizes, learner.roller.style)(learner.theta, observations)
    centre, scale = np.array(learner.roller.style.centre), np.array(learner.roller.style.scale)
    actions = learner.networks.act(learner.agent.actor.theta, observations).outputs
    assert centre + scale * actions == pytest.approx(executed, rel=1e-5)


def test_step_continues_from_its_moments_and_averages_if_asked():
    rng = np.random.default_rng(0)
    theta, mean, slope = rng.normal(size=(3, 6)).astype(np.float32)
    fitted = Fitted.of(theta, np.ones(6), Adam(mean, mean**2, 3.0))
    fitted.descend(slope, 0.1, 0.0)
    assert np.all(fitted.target == 1) and fitted.adam.count == 4
    assert np.all(np.sign(theta - fitted.theta) == np.sign(0.9 * mean + 0.1 * slope))
    fitted.descend(slope, 0.1, 0.25)
    assert fitted.target == pytest.approx(0.75 + 0.25 * fitted.theta, rel=1e-5) and fitted.adam.count == 5


def test_targets_are_averaged_after_every_update_of_the_actor():
    learner = make_learner(ddpg, random_timesteps=0, target_rate=0.25, rounds_per_iteration=1, updates_per_round=1)
    before = copies(learner.agent)
    learner.iterate(0, 0)
    for old, new in zip(before, learner.agent):
        assert new.target == pytest.approx(old.target + 0.25 * (new.theta - old.target), rel=1e-4, abs=1e-6)
        assert not np.array_equal(np.float32(old.target), new.theta)


def test_updates_of_one_rank_equal_updates_with_shared_gradients(monkeypatch):
    """The former of whole minibatches, the latter of the streams' shares: equal within single precision."""
    options = {"num_trajectories": 2, "random_timesteps": 0, "rounds_per_iteration": 1}
    solo = make_learner(td3, **options)
    monkeypatch.setattr(replay_learner, "MAX_SOLO_ROWS", 0)
    shared = make_learner(td3, **options)
    for learner in (solo, shared):
        learner.iterate(0, 0)
    for mine, its in zip(solo.agent, shared.agent):
        for one, other in zip((mine.theta, mine.target, *mine.adam), (its.theta, its.target, *its.adam)):
            assert one == pytest.approx(other, rel=1e-3, abs=1e-4)
    assert solo.num_updates == shared.num_updates == solo.agent.critics.adam.count == 7


def test_exploration_is_noise_in_units_of_the_range_and_random_actions_fill_it():
    learner = make_learner(td3, linear_quadratic.limited_kernel(), noise_std=0.3, steps_per_round=4000)
    scale = (linear_quadratic.HIGH - linear_quadratic.LOW) / 2
    theta, offsets = learner.explore(0, is_random=False)
    assert np.array_equal(theta, learner.theta) and offsets[0].std(axis=0) == pytest.approx(0.3 * scale, rel=0.1)
    theta, offsets = learner.explore(0, is_random=True)
    assert not theta.any() and np.abs(offsets[0]).max(axis=0) == pytest.approx(scale, rel=0.01)


def test_no_update_is_made_while_actions_are_random_or_transitions_too_few():
    learner = make_learner(ddpg, random_timesteps=119)
    assert [learner.iterate(i, 60 * i)["num_updates"] for i in range(3)] == [0, 7, 21]
    learner = make_learner(ddpg, random_timesteps=0, batch_size=100)
    assert [learner.iterate(i, 60 * i)["num_updates"] for i in range(2)] == [0, 7]


def test_minibatches_are_drawn_from_the_whole_replay():
    learner = make_learner(td3, updates_per_round=100, random_timesteps=10**6)
    for i in range(3):
        learner.iterate(i, 0)
    rows, _ = learner.sample(0, 0)
    kept = [tuple(row) for row in learner.replay.filled[0]]
    drawn = [kept.index(tuple(row)) for row in rows.reshape(-1, rows.shape[2])]
    assert np.bincount(drawn, minlength=180).max() < 25 and len(set(drawn)) > 170  # 1200 draws of 180


def test_every_stream_gives_its_share_of_a_minibatch():
    learner = make_learner(td3, num_trajectories=3, random_timesteps=10**6)
    learner.iterate(0, 0)
    for stream in range(3):
        rows, _ = learner.sample(0, stream)
        assert rows.shape[:2] == (7, 4)
        kept = {tuple(row) for row in learner.replay.filled[stream]}
        assert {tuple(row) for row in rows.reshape(-1, rows.shape[2])} <= kept


def test_transitions_have_the_ends_of_the_environment_and_executed_actions_in_units_of_their_range():
    options = {"random_timesteps": 0, "noise_std": 2.0, "updates_per_round": 0}
    learner = make_learner(td3, linear_quadratic.limited_kernel(), **options)
    for i in range(10):
        learner.iterate(i, 10**6)
    rows = transitions(learner)
    assert np.abs(rows.actions).max() == 1 and np.mean(np.abs(rows.actions) == 1) > 0.2  # large noise, limited
    low, high = linear_quadratic.LOW, linear_quadratic.HIGH
    cost = linear_quadratic.cost(rows.observations, (low + high) / 2 + (high - low) / 2 * rows.actions)
    assert rows.rewards == pytest.approx(-cost, rel=1e-4, abs=1e-5)
    is_outside = np.abs(rows.next_observations).max(axis=1) > 1.2
    np.testing.assert_array_equal(rows.is_terminal == 1, is_outside)
    assert 5 < is_outside.sum() < len(is_outside) / 2


def test_transitions_are_those_of_the_segments_with_time_limits_not_terminal():
    learner = make_learner(td3, use_tanh_output=False, random_timesteps=10**6)
    learner.iterate(0, 0)
    rows = transitions(learner)
    assert len(rows.rewards) == 60 and np.all(rows.is_terminal == 0)
    continues = np.all(rows.observations[1:] == rows.next_observations[:-1], axis=1)
    num_ends = 60 // learner.roller.horizon
    assert (~continues).sum() in (num_ends, num_ends - 1)
    cost = linear_quadratic.cost(rows.observations, rows.actions * np.array(learner.roller.style.scale))
    assert rows.rewards == pytest.approx(-cost, rel=1e-5)
    assert np.abs(rows.actions).max() <= 1 and rows.actions.std() == pytest.approx(3**-0.5, 0.15)


@pytest.mark.parametrize("algorithm", [ddpg, td3])
def test_value_of_a_task_that_ends_at_its_horizon_is_its_return(algorithm):
    """Bootstrapping adds the last payment to the value again and again."""
    options = {"gamma": 1.0, "random_timesteps": 0, "updates_per_round": 200, "target_rate": 0.2, "hidden_sizes": (8,)}
    values = {}
    for time_limit in ("auto", "bootstrap"):
        learner = make_learner(algorithm, paid_at_end.kernel(), **options, time_limit=time_limit)
        for i in range(4):
            learner.iterate(i, 10**6)
        critics, rows = learner.agent.critics.theta, transitions(learner)
        is_paid = np.flatnonzero(rows.rewards)
        assert np.all(rows.is_terminal[is_paid] == (time_limit == "auto")) and len(is_paid) == 48
        values[time_limit] = learner.networks.values(critics, rows.observations, rows.actions)[0].mean()
    assert values["auto"] == pytest.approx(-1, abs=0.2) and values["bootstrap"] < -3


@pytest.mark.parametrize(
    ("algorithm", "options", "num_before", "max_solo_rows"),
    [(td3, {"noise": "ou"}, 2, 512), (ddpg, {"parameter_noise_std": 0.3}, 1, 0)],  # after updates, and before the first
)
def test_continued_from_its_checkpoint_a_run_is_the_same(
    algorithm, options, num_before, max_solo_rows, tmp_path, monkeypatch
):
    monkeypatch.setattr(replay_learner, "MAX_SOLO_ROWS", max_solo_rows)
    learner, other = (make_learner(algorithm, **options, num_trajectories=2, random_timesteps=240) for _ in range(2))
    for i in range(num_before):
        learner.iterate(i, 120 * i)
    assert learner.num_updates == (0 if num_before == 1 else 7)
    checkpoint.save(tmp_path, 1, learner.state(), keep=1)
    other.load_state(checkpoint.load_newest(tmp_path))
    rows = [[one.iterate(i, 120 * i) for i in range(num_before, 4)] for one in (learner, other)]
    assert rows[0] == rows[1] and np.array_equal(learner.theta, other.theta)


def test_replicated_state_is_the_state_without_the_rows_of_the_replay():
    learner = make_learner(td3)
    learner.iterate(0, 0)
    state, replicated = learner.state(), learner.replicated()
    assert set(state) == set(replicated)
    assert set(state["replay"]) - set(replicated["replay"]) == {"rows"}
    assert state["replay"]["rows"].shape == (1, 60, 8)


def test_next_stage_takes_over_the_networks_but_no_experience():
    before, after = make_learner(td3, random_timesteps=0), make_learner(td3, random_timesteps=0)
    before.iterate(0, 0)
    after.begin_from(before.replicated())
    np.testing.assert_array_equal(after.theta, before.theta)
    assert after.num_updates == before.num_updates == 14 and after.replay.num_filled == 0
