"""TRPO's derivatives against finite differences, its segments against a plain loop, and that it learns."""

import gymnasium
import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.actor_critic import Policy
from tdpo_baselines.common.learners.gae import generalised_advantages
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.gym_roller import NUM_SEEDS, GymRoller
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.streams import Segments, Streams
from tdpo_baselines.harness import registry
from tdpo_baselines.trpo import trpo

GAMMA = 0.9


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_advantages_equal_a_slow_reference(lam):
    rng = np.random.default_rng(0)
    rewards, values, next_values = rng.normal(size=(3, 4, 40))
    is_last = rng.random((4, 40)) < 0.15
    is_terminal = is_last & (rng.random((4, 40)) < 0.5)
    segments = Segments(*[np.zeros(0)] * 4, rewards, is_last, is_terminal)
    result = generalised_advantages(segments, values, next_values, gamma=GAMMA, lam=lam)
    for n, t in np.ndindex(4, 40):
        expected, factor = 0.0, 1.0
        for k in range(t, 40):
            future = 0.0 if is_terminal[n, k] else next_values[n, k]
            expected += factor * (rewards[n, k] + GAMMA * future - values[n, k])
            factor *= GAMMA * lam
            if is_last[n, k]:
                break
        assert result[n, t] == pytest.approx(expected, rel=1e-12, abs=1e-12)


class CutsItselfOff(gymnasium.Env):
    """Truncates itself after 25 steps, long before its registered limit, and refuses to go on."""

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


def test_episode_cut_off_with_its_segment_does_not_go_on():
    gymnasium.register("CutsItselfOff-v0", entry_point=CutsItselfOff, max_episode_steps=1000)
    environment = registry.make_environment("CutsItselfOff-v0", registry.resolve_options("CutsItselfOff-v0", {}))
    roller = GymRoller(environment, (4,), GAMMA)
    streams = Streams(roller, Comm(), 0, num_streams=1, num_steps=50, gamma=GAMMA)
    for iteration in range(2):
        segments = streams.collect(np.zeros(roller.num_parameters), np.zeros((1, 50, 1)), iteration)
        assert np.flatnonzero(segments.is_last[0]).tolist() == [24, 49] and not segments.is_terminal.any()
    row = streams.row()
    assert row["num_episodes"] == 4 and row["return_mean"] == 25.0


@pytest.mark.parametrize(("name", "num_ends"), [("Hopper-v5", 6), ("Pendulum-v1", 3)])
def test_segments_are_the_steps_of_a_plain_loop(name, num_ends):
    """Over three updates, episodes that go on from one to the next, ended by the environment or by its time limit."""
    limit, num_steps = 45, 60
    environment = registry.make_environment(name, registry.resolve_options(name, {"max_episode_steps": limit}))
    roller = GymRoller(environment, (8,), GAMMA)
    theta = mlp.initial_parameters(roller.layer_sizes, np.random.default_rng(1), 1.0)
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


def make_learner(kernel, **options):
    values = {"num_trajectories": 3, "steps_per_trajectory": 40, "hidden_sizes": (6,), "output_gain": 1.0}
    config = trpo.Config.from_values({**values, "value_minibatch_size": 32, **options})
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma)
    return trpo.Learner(config, roller, Comm(), seed=1)


@pytest.mark.parametrize("is_normalised", [False, True])
def test_gradient_and_fisher_products_equal_finite_differences(is_normalised):
    learner = make_learner(linear_quadratic.kernel(), use_observation_normalisation=is_normalised, initial_std=0.7)
    agent = learner._agent
    agent.log_std = np.log(np.array([0.5, 2.0]))  # as different as it gets
    batch = agent.collect(0) or agent.collect(1)
    old = agent.policy
    g, product = learner._surrogate_derivatives(batch, old)

    def surrogate_and_kl(change):
        moved = Policy(old.theta + change[: len(old.theta)], old.log_std + change[len(old.theta) :])
        return trpo.surrogate_and_kl(batch, old, moved, agent.forward).mean(axis=0)

    rng, h = np.random.default_rng(2), 1e-4
    for _ in range(3):
        v = rng.normal(size=len(g))
        up, down = surrogate_and_kl(h * v), surrogate_and_kl(-h * v)
        assert (up[0] - down[0]) / (2 * h) == pytest.approx(g @ v, rel=1e-4)
        assert (up[1] + down[1]) / h**2 == pytest.approx(v @ product(v), rel=1e-4)


def test_update_stays_in_its_trust_region_and_keeps_what_it_promised():
    learner = make_learner(linear_quadratic.kernel(), max_kl=0.02)
    rows = [learner.iterate(i, 0) for i in range(4)]
    assert all(0 < row["kl"] <= 0.02 and row["surrogate_gain"] > 0 for row in rows[1:])
    assert rows[0]["step_coefficient"] == 0  # the first only tells the scale of the observations


def test_step_that_leaves_the_trust_region_is_shortened():
    """Far out the divergence is not quadratic any more: the full step goes too far."""
    learner = make_learner(linear_quadratic.kernel(), max_kl=2.0, cg_damping=1e-4)
    rows = [learner.iterate(i, 0) for i in range(8)][1:]
    assert all(row["kl"] <= 2.0 for row in rows)
    assert any(0 < row["step_coefficient"] < 1 for row in rows)


def test_value_function_learns_the_returns_of_a_known_policy():
    """With lambda 1, targets are returns; the value of the linear-quadratic cost is quadratic in the state."""
    options = {"steps_per_trajectory": 300, "lam": 1.0, "hidden_sizes": (32,), "value_epochs": 20, "max_kl": 1e-9}
    learner = make_learner(linear_quadratic.kernel(), **options, gamma=GAMMA, initial_std=0.01)
    errors = [learner.iterate(i, 0)["value_error"] for i in range(16)][1:]
    assert errors[-1] < 0.15 * errors[0]


def test_trpo_approaches_the_optimum_of_the_linear_quadratic_toy():
    options = {"num_trajectories": 8, "steps_per_trajectory": 90, "hidden_sizes": (), "gamma": 0.95, "lam": 0.95}
    learner = make_learner(linear_quadratic.kernel(), **options, output_gain=0.0, initial_std=0.5, max_kl=0.03)
    for i in range(80):
        learner.iterate(i, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.25 * best
    assert linear_quadratic.mean_cost(np.zeros((2, 2))) > 1.5 * best
