"""Streams of episodes against a plain loop over the environment."""

from dataclasses import replace

import gymnasium
import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.checks import NotFinite
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.gym_roller import NUM_SEEDS, GymEnvironment, GymRoller
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.streams import TIME_LIMITS, Streams
from tdpo_baselines.options import registry

GAMMA = 0.9


class CutsItselfOff(gymnasium.Env):
    """Truncates itself after 25 steps, long before its registered limit, and fails if stepped further."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(1), {}

    def step(self, action):
        assert self._step < 25
        self._step += 1
        return np.array([self._step / 25.0]), 1.0, False, self._step == 25, {}


def test_episode_cut_off_with_its_segment_does_not_continue():
    gymnasium.register("CutsItselfOff-v0", entry_point=CutsItselfOff, max_episode_steps=1000)
    environment = registry.make_environment("CutsItselfOff-v0", registry.resolve_options("CutsItselfOff-v0", {}))
    roller = GymRoller(environment, (4,), GAMMA)
    streams = Streams(roller, Comm(), 0, num_streams=1, num_steps=50, gamma=GAMMA)
    for iteration in range(2):
        segments = streams.collect(np.zeros(roller.num_parameters), np.zeros((1, 50, 1)), iteration)
        assert np.flatnonzero(segments.is_last[0]).tolist() == [24, 49] and not segments.is_terminal.any()
    row = streams.row()
    assert row["num_episodes"] == 4 and row["return_mean"] == 25.0
    streams = Streams(roller, Comm(), 0, num_streams=1, num_steps=50, gamma=GAMMA, time_limit="terminal")
    segments = streams.collect(np.zeros(roller.num_parameters), np.zeros((1, 50, 1)), 0)
    np.testing.assert_array_equal(segments.is_terminal, segments.is_last)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("nan at the end", "return of stream"), ("large at the end", "observation or reward, in float32, of stream")],
)
def test_final_observation_that_is_not_finite_stops_the_run_before_it_is_learned_from(fault, message):
    env = gymnasium.make("careless:Careless-v0", disable_env_checker=True, fault=fault, first=70)
    roller = GymRoller(GymEnvironment(env), (4,), GAMMA)
    streams = Streams(roller, Comm(), 0, num_streams=2, num_steps=40, gamma=GAMMA)
    theta, offsets = np.zeros(roller.num_parameters), np.zeros((2, 40, 2))
    streams.collect(theta, offsets, 0)
    with pytest.raises(NotFinite, match=message):
        streams.collect(theta, offsets, 1)


@pytest.mark.parametrize("is_horizon_terminal", [False, True])
@pytest.mark.parametrize("time_limit", TIME_LIMITS)
def test_limit_is_terminal_if_the_option_or_by_default_the_environment_says_so(time_limit, is_horizon_terminal):
    kernel = replace(linear_quadratic.ending_kernel(), is_horizon_terminal=is_horizon_terminal, horizon=7)
    roller = KernelRoller(kernel, (4,), GAMMA)
    streams = Streams(roller, Comm(), 3, num_streams=2, num_steps=40, gamma=GAMMA, time_limit=time_limit)
    offsets = 2.0 * np.random.default_rng(0).standard_normal((2, 40, 2))
    segments = streams.collect(np.zeros(roller.num_parameters), offsets, 0)
    is_outside = np.abs(segments.next_observations).max(axis=2) > 1.2
    is_limit_terminal = {"auto": is_horizon_terminal, "terminal": True, "bootstrap": False}[time_limit]
    expected = segments.is_last if is_limit_terminal else is_outside
    np.testing.assert_array_equal(segments.is_terminal, expected)
    assert is_outside.any() and (segments.is_last & ~is_outside).any()


@pytest.mark.parametrize(("name", "num_ends"), [("Hopper-v5", 6), ("Pendulum-v1", 3)])
def test_segments_are_the_steps_of_a_plain_loop(name, num_ends):
    """Over three updates, with episodes that continue, and end by the environment or by its time limit."""
    limit, num_steps = 45, 60
    options = {"max_episode_steps": limit} | ({"compiled": False} if name in registry.TWINS else {})
    environment = registry.make_environment(name, registry.resolve_options(name, options))
    roller = GymRoller(environment, (8,), GAMMA)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(1), 1.0)
    streams = Streams(roller, Comm(), 3, num_streams=2, num_steps=num_steps, gamma=GAMMA)
    forward, env, observation, total = mlp.Forward(roller.layer_sizes), gymnasium.make(name), None, 0.0
    ended = []
    for iteration in range(3):
        offsets = 0.3 * np.random.default_rng(iteration).standard_normal((2, num_steps, roller.layer_sizes[-1]))
        segments = streams.collect(theta, offsets, iteration)
        for t in range(num_steps):
            if observation is None:
                start = generator(3, "starts", iteration, 1, t).random()
                observation, elapsed, total, worth = env.reset(seed=int(start * NUM_SEEDS))[0], 0, 0.0, 0.0
            np.testing.assert_array_equal(segments.observations[1, t], observation)
            action = forward(theta, segments.observations[1, t]) + segments.offsets[1, t]
            executed = np.clip(action, env.action_space.low, env.action_space.high)
            np.testing.assert_array_equal(segments.actions[1, t], executed)
            observation, reward, is_terminal, *_ = env.step(executed)
            elapsed, total, worth = elapsed + 1, total + reward, worth + GAMMA**elapsed * reward
            np.testing.assert_array_equal(segments.next_observations[1, t], observation)
            assert segments.rewards[1, t] == reward and segments.is_terminal[1, t] == is_terminal
            assert segments.is_last[1, t] == (is_terminal or elapsed == limit)
            if segments.is_last[1, t]:
                ended.append((iteration, total, worth))
                observation = None
        of_update = np.array([paid for at, *paid in ended if at == iteration])
        assert streams.episodes.num_ended[1] == len(of_update)
        assert streams.episodes.ended_returns[1] == pytest.approx(of_update[:, 0].sum(), rel=1e-9)
        assert streams.episodes.ended_discounted[1] == pytest.approx(of_update[:, 1].sum(), rel=1e-9)
        both = streams.episodes.ended_discounted.sum() / streams.episodes.num_ended.sum()
        row = streams.row()
        assert row["num_timesteps"] == 2 * num_steps and streams.episodes.num_ended[1] == 0
        assert row["payoff"] == pytest.approx(both * (1 - GAMMA) / (1 - GAMMA**limit), rel=1e-9)
    assert len(ended) >= num_ends


def make_streams(num_steps: int = 20) -> tuple[Streams, np.ndarray]:
    roller = KernelRoller(linear_quadratic.kernel(), (4,), GAMMA)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(1), 1.0)
    return Streams(roller, Comm(), 3, num_streams=2, num_steps=num_steps, gamma=GAMMA), theta


def test_row_without_an_ended_episode_repeats_the_returns_of_the_last_one():
    streams, theta = (
        make_streams()
    )  # episodes end after 30 steps: in the second and the third update, not in the fourth
    rows = []
    for iteration in range(4):
        streams.collect(theta, np.zeros((2, 20, 2)), iteration)
        rows.append(streams.row())
    assert [row["num_episodes"] for row in rows] == [0, 2, 2, 0]
    assert np.isnan(rows[0]["return_mean"]) and rows[2]["return_mean"] != rows[1]["return_mean"]
    assert rows[3]["return_mean"] == rows[2]["return_mean"]


def test_continued_from_their_state_streams_are_the_same():
    (streams, theta), (other, _) = make_streams(), make_streams()
    offsets = np.random.default_rng(0).normal(size=(4, 2, 20, 2))
    for iteration in range(2):
        streams.collect(theta, offsets[iteration], iteration)
    streams.row()
    other.load_state({name: array.copy() for name, array in streams.state().items()})
    for iteration in range(2, 4):
        mine, its = (one.collect(theta, offsets[iteration], iteration) for one in (streams, other))
        for name in mine._fields:
            np.testing.assert_array_equal(getattr(mine, name), getattr(its, name))
    assert streams.row()["return_mean"] == other.row()["return_mean"]


def test_stream_does_not_depend_on_the_share_of_its_rank():
    class SecondOfTwo(Comm):
        """The share of one of two ranks, without the other's results."""

        rank, size = 1, 2

        def gather(self, mine, num_items):
            return np.concatenate([np.zeros_like(mine), mine])

    streams, theta = make_streams()
    roller = KernelRoller(linear_quadratic.kernel(), (4,), GAMMA)
    alone = Streams(roller, SecondOfTwo(), 3, num_streams=2, num_steps=20, gamma=GAMMA)
    offsets = np.random.default_rng(0).normal(size=(2, 2, 20, 2))
    for iteration in range(2):
        both = streams.collect(theta, offsets[iteration], iteration)
        one = alone.collect(theta, offsets[iteration, 1:], iteration)
        np.testing.assert_array_equal(one.observations[0], both.observations[1])
        np.testing.assert_array_equal(one.rewards[0], both.rewards[1])
