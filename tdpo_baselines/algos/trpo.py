"""Trust Region Policy Optimization (Schulman et al. 2015, arXiv 1502.05477) with GAE (arXiv 1506.02438).

Differences from the paper
  1. Advantages by GAE from a value function that Adam fits to their returns, as in openai/baselines.
  2. Advantages are standardised over all ranks' steps, not per rank.
  3. A time limit is not an end: the value of the state it cut off is bootstrapped.
  4. What is executed may be limited by the environment; probabilities are those of the action before that.
  5. With normalised observations the first update fits values only: it tells the observations' scale.

Glossary (N streams, L steps of each per update, O observation, A action, P parameters)
  theta       parameters of the mean action                      [P]
  log_std     log standard deviation of the action               [A]
  g           gradient of the surrogate E[advantage ratio]       [P + A]
  F v         Fisher matrix of the policy, times v               [P + A]
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..common import cg, mlp
from ..common.adam import Adam
from ..common.blocks import Blocks
from ..common.checks import require_finite, require_memory, require_trajectories
from ..common.comm import Comm
from ..common.returns import generalised_advantages
from ..common.running_stats import RunningStats, folded, unfolded
from ..common.seeding import generator
from ..common.segments import Episodes, Segments, Streams
from ..config import Settings, option


@dataclass(frozen=True)
class Config(Settings):
    num_trajectories: int = option(2, "streams of episodes, over all ranks", low=1, high=10**6)
    steps_per_trajectory: int = option(
        1024, "steps of each stream per update (openai/baselines: 1024 per rank)", low=2, high=10**9
    )
    gamma: float = option(0.99, "discount per step (openai/baselines: 0.99)", above=0, high=1)
    lam: float = option(0.98, "lambda of GAE (openai/baselines: 0.98)", low=0, high=1)
    hidden_sizes: tuple[int, ...] = option((64, 64), "hidden layers of policy and value, tanh", low=1, high=4096)
    output_gain: float = option(0.01, "scale of the policy's initial output weights", low=0, high=10)
    initial_std: float = option(1.0, "initial standard deviation of the action", above=0, high=1e6)
    use_observation_normalisation: bool = option(
        True, "networks see observations scaled to mean 0 and deviation 1 (openai/baselines: yes)"
    )
    max_kl: float = option(
        0.01, "trust region: mean KL divergence per update (openai/baselines: 0.01)", above=0, high=10
    )
    cg_iterations: int = option(10, "conjugate gradient iterations at most", low=1, high=10**4)
    cg_tolerance: float = option(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)
    cg_damping: float = option(0.1, "multiple of the identity added to F (openai/baselines: 0.1)", low=0, high=1e12)
    line_search_tries: int = option(10, "steps tried, each a fraction of the one before", low=1, high=1000)
    line_search_shrink: float = option(0.8, "that fraction (sb3-contrib: 0.8)", above=0, high=0.99)
    value_learning_rate: float = option(1e-3, "Adam's step for the value function", above=0, high=1)
    value_epochs: int = option(5, "passes over the steps of an update (openai/baselines: 5)", low=1, high=1000)
    value_minibatch: int = option(64, "steps per gradient of the value function, over all ranks", low=1, high=10**9)


def check(config: Config, environment, num_ranks: int) -> None:
    """Refuse what cannot run: too few streams, too much memory."""
    N, L = config.num_trajectories, config.steps_per_trajectory
    require_trajectories(N, num_ranks)
    if config.value_minibatch > N * L:
        raise ValueError(f"value_minibatch must be at most num_trajectories x steps_per_trajectory ({N * L})")
    O, A = environment.observation_size, environment.action_size
    require_memory("num_trajectories and steps_per_trajectory", 8 * N * L * (4 * O + 4 * A + 8))


class Batch(NamedTuple):
    """The steps of this rank's streams, ready to learn from."""

    observations: np.ndarray  # [n, L, O] raw
    means: np.ndarray  # [n, L, A] of the policy that acted
    offsets: np.ndarray  # [n, L, A]
    advantages: np.ndarray  # [n, L] standardised over all ranks
    targets: np.ndarray  # [n, L] of the value function


class Policy(NamedTuple):
    """A Gaussian with a network for its mean."""

    theta: np.ndarray  # [P]
    log_std: np.ndarray  # [A]


def standardised(advantages: np.ndarray, num_streams: int, comm: Comm) -> np.ndarray:
    """With mean 0 and deviation 1 over the steps of all ranks."""
    moments = np.stack([advantages.mean(axis=1), (advantages**2).mean(axis=1)], axis=1)  # [n, 2]
    mean, square = comm.sum(moments, num_streams) / num_streams
    return (advantages - mean) / (np.sqrt(max(square - mean**2, 0.0)) + 1e-8)


def surrogate_and_kl(batch: Batch, old: Policy, new: Policy, forward) -> np.ndarray:
    """Mean of advantage times ratio, and mean KL(old, new), per stream. [n, 2]"""
    shift = forward(new.theta, batch.observations) - batch.means  # [n, L, A]
    old_std, new_std = np.exp(old.log_std), np.exp(new.log_std)
    old_z, new_z = batch.offsets / old_std, (batch.offsets - shift) / new_std
    log_ratio = np.sum((old_z**2 - new_z**2) / 2 + old.log_std - new.log_std, axis=2)
    kl = np.sum(new.log_std - old.log_std + (old_std**2 + shift**2) / (2 * new_std**2) - 0.5, axis=2)
    return np.stack([np.mean(batch.advantages * np.exp(log_ratio), axis=1), kl.mean(axis=1)], axis=1)


class Learner:
    """One update at a time. `state` is all that a checkpoint must hold."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        self.config = config
        self._roller, self._comm, self._seed = roller, comm, seed
        N, L = config.num_trajectories, config.steps_per_trajectory
        self._streams = Streams(roller, comm, seed, num_streams=N, num_steps=L, gamma=config.gamma)
        self._sizes = roller.layer_sizes
        self._value_sizes = (*self._sizes[:-1], 1)
        self._forward = comm.root_first(lambda: mlp.Forward(self._sizes))
        self._value_forward = comm.root_first(lambda: mlp.Forward(self._value_sizes))
        self._blocks = Blocks(N, L, self._sizes, comm)
        self._value_blocks = Blocks(config.value_minibatch, 1, self._value_sizes, comm)
        self.theta = mlp.initial_parameters(self._sizes, generator(seed, "weights"), config.output_gain)
        self._log_std = np.full(self._sizes[-1], np.log(config.initial_std))
        self._value_theta = mlp.initial_parameters(self._value_sizes, generator(seed, "value_weights"), 1.0)
        self._adam = Adam.of_size(len(self._value_theta))
        self._stats = RunningStats.none(self._sizes[0])
        self._last_returns = np.full(2, np.nan)  # undiscounted and discounted, of the last update with an end

    def state(self) -> dict[str, np.ndarray]:
        adam = {f"adam_{name}": value for name, value in self._adam._asdict().items()}
        own = {"log_std": self._log_std, "value_theta": self._value_theta, "last_returns": self._last_returns}
        parts = {"theta": self.theta, **own, **adam, **self._stats._asdict(), **self._streams.episodes._asdict()}
        return {name: np.asarray(value) for name, value in parts.items()}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.begin_from(state)
        self._last_returns = state["last_returns"]
        self._streams.episodes = Episodes(**{name: state[name] for name in Episodes._fields})

    def begin_from(self, state: dict[str, np.ndarray]) -> None:
        """Take over the policy and the value function of a first stage, but none of its episodes."""
        self.theta, self._log_std, self._value_theta = state["theta"], state["log_std"], state["value_theta"]
        self._adam = Adam(**{name: state[f"adam_{name}"] for name in Adam._fields})
        self._stats = RunningStats(**{name: state[name] for name in RunningStats._fields})

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect segments, step, fit the values, and return the row for the log."""
        config = self.config
        segments = self._streams.collect(self.theta, np.exp(self._log_std), iteration)
        require_finite("reward", segments.rewards)
        is_first = self._stats.observation_count == 0
        self._merge_observations(segments)
        batch = self._prepared(segments)
        step = Step()
        if config.use_observation_normalisation and is_first:
            self.theta = folded(self.theta, self._sizes, self._stats)
        else:
            step = self._improve_policy(batch)
        value_error = self._fit_values(batch, iteration)
        action_std = float(np.exp(self._log_std).mean())
        return self._episode_row() | step._asdict() | {"action_std": action_std, "value_error": value_error}

    def _merge_observations(self, segments: Segments) -> None:
        rows = segments.observations
        sums = np.concatenate([rows.sum(axis=1), (rows**2).sum(axis=1)], axis=1)
        sums, squares = np.split(self._comm.gather(sums, self.config.num_trajectories), 2, axis=1)
        self._stats = self._stats.merged(np.full(len(sums), float(rows.shape[1])), sums, squares)

    def _seen(self, observations: np.ndarray) -> np.ndarray:
        """Observations as the networks see them."""
        if not self.config.use_observation_normalisation:
            return observations
        return (observations - self._stats.mean) / self._stats.std

    def _prepared(self, segments: Segments) -> Batch:
        config = self.config
        values, next_values = (
            self._value_forward(self._value_theta, self._seen(rows))[..., 0]
            for rows in (segments.observations, segments.next_observations)
        )
        advantages = generalised_advantages(segments, values, next_values, gamma=config.gamma, lam=config.lam)
        scaled = standardised(advantages, config.num_trajectories, self._comm)
        means = self._forward(self.theta, segments.observations)
        return Batch(segments.observations, means, segments.offsets, scaled, advantages + values)

    def _improve_policy(self, batch: Batch) -> "Step":
        """A step along F^-1 g to the boundary of the trust region, shortened until it keeps what it promised."""
        config, comm, N = self.config, self._comm, self.config.num_trajectories
        old = Policy(self.theta, self._log_std)
        inner = unfolded(self.theta, self._sizes, self._stats) if config.use_observation_normalisation else self.theta
        g, product = self._surrogate_derivatives(batch, inner)
        require_finite("gradient", g)
        x, residual, num_iterations = cg.solve(
            lambda v: product(v) + config.cg_damping * v,
            g,
            max_iterations=config.cg_iterations,
            tolerance=config.cg_tolerance,
        )
        xFx = x @ (g - residual)
        norm = float(np.linalg.norm(g))
        if xFx <= 0:
            return Step(norm)
        full_step = np.sqrt(2 * config.max_kl / xFx) * x
        for tried in range(config.line_search_tries):
            step = config.line_search_shrink**tried * full_step
            new = self._moved(inner, step)
            surrogate, kl = comm.sum(surrogate_and_kl(batch, old, new, self._forward), N) / N
            if np.isfinite(surrogate) and surrogate > 0 and kl <= config.max_kl:
                self.theta, self._log_std = new
                return Step(norm, num_iterations, kl, surrogate, config.line_search_shrink**tried)
        return Step(norm, num_iterations)

    def _moved(self, inner: np.ndarray, step: np.ndarray) -> Policy:
        """The policy after a change of the parameters of the network that sees normalised observations."""
        theta = inner + step[: len(inner)]
        if self.config.use_observation_normalisation:
            theta = folded(theta, self._sizes, self._stats)
        return Policy(theta, self._log_std + step[len(inner) :])

    def _surrogate_derivatives(self, batch: Batch, inner: np.ndarray):
        """g [P + A], and v -> F v, from the steps of all ranks."""
        N, L, A = self.config.num_trajectories, self.config.steps_per_trajectory, self._sizes[-1]
        blocks, comm, std = self._blocks, self._comm, np.exp(self._log_std)
        z = batch.offsets / std
        cotangents = batch.advantages[..., None] * z / std / (N * L)  # [n, L, A]
        log_std_part = np.sum(batch.advantages[..., None] * (z**2 - 1), axis=1) / (N * L)  # [n, A]
        packed = np.concatenate([self._seen(batch.observations), cotangents], axis=2)
        rows, cotangents = np.split(comm.gather(packed, N), [self._sizes[0]], axis=2)
        derivatives, cut = blocks.derivatives, lambda array: blocks.cut(array[:, :, None])
        share, theta, observations = derivatives.tensors(blocks.share, inner, cut(rows))
        g = blocks.total(derivatives.gradient(share, theta, observations, cut(cotangents)))
        (weights,) = derivatives.tensors(cut(np.broadcast_to(1 / std**2 / (N * L), (N, L, A))))

        def product(v: np.ndarray) -> np.ndarray:
            of_mean = blocks.total(derivatives.wasserstein_product(share, theta, v[:-A], observations, weights))
            return np.append(of_mean, 2 * v[-A:])

        return np.append(g, comm.sum(log_std_part, N)), product

    def _fit_values(self, batch: Batch, iteration: int) -> float:
        """By minibatches of all ranks' steps, of which every rank computes its blocks; the r.m.s. error on the way."""
        config, N = self.config, self.config.num_trajectories
        packed = np.concatenate([self._seen(batch.observations), batch.targets[..., None]], axis=2)
        rows = self._comm.gather(packed, N).reshape(-1, packed.shape[2])
        observations, targets = rows[:, :-1], rows[:, -1]
        rng, size, blocks = generator(self._seed, "minibatches", iteration), config.value_minibatch, self._value_blocks
        errors = []
        for _ in range(config.value_epochs):
            order = rng.permutation(len(rows))
            for first in range(0, len(rows) - size + 1, size):
                chosen = order[first : first + size]
                error = targets[chosen] - self._value_forward(self._value_theta, observations[chosen])[:, 0]  # [M]
                errors.append(np.mean(error**2))
                inputs = (observations[chosen].reshape(size, 1, 1, -1), error.reshape(size, 1, 1, 1) / size)
                sums = blocks.derivatives.gradient(blocks.share, self._value_theta, *map(blocks.cut, inputs))
                self._adam, change = self._adam.step(2 * blocks.total(sums), learning_rate=config.value_learning_rate)
                self._value_theta = self._value_theta + change
        require_finite("value", self._value_theta)
        return float(np.sqrt(np.mean(errors)))

    def _episode_row(self) -> dict[str, float]:
        """Returns are of the episodes that ended in this update; where none did, of the last that did."""
        episodes, config = self._streams.episodes, self.config
        num_ended = int(episodes.num_ended.sum())
        if num_ended:
            sums = np.array([episodes.ended_returns.sum(), episodes.ended_discounted.sum()])
            self._last_returns = sums / num_ended
        scale = 1 / np.sum(config.gamma ** np.arange(self._roller.horizon))
        return {
            "num_timesteps": int(episodes.num_simulated.sum()),
            "num_episodes": num_ended,
            "return_mean": float(self._last_returns[0]),
            "discounted_return_mean": float(self._last_returns[1]),
            "payoff": float(self._last_returns[1] * scale),
        }


class Step(NamedTuple):
    """What an update did to the policy, for the log."""

    gradient_norm: Any = 0.0
    cg_iterations: int = 0
    kl: Any = 0.0
    surrogate_gain: Any = 0.0
    step_coefficient: float = 0.0  # of the full step; 0: none was taken
