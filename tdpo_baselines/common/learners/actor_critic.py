"""What TRPO and PPO1 share: a Gaussian policy, its experience, and a value function that judges it.

Networks see normalised observations, and values are fitted in units of the returns. The scale of what the
policy sees is folded into its first layer, so that what acts and what is saved needs no statistics, and new
statistics never change the policy (but they do change what the value function sees); the scale of the
returns into the last layer of the value function. Unlike in openai/baselines normalised observations are
not clipped.

Shapes: N streams of which this rank has n, L steps of each per update, O observation, A action.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...harness.config import Settings, option
from ..networks import mlp
from ..networks.normalisation import RunningStats, folded, unfolded
from ..optim.adam import Adam
from ..parallel.checks import require_memory, require_trajectories
from ..parallel.comm import Comm
from ..parallel.seeding import generator
from ..sampling.streams import Segments, Streams
from .gae import generalised_advantages


@dataclass(frozen=True)
class OnPolicySettings(Settings):
    num_trajectories: int = option(
        2, "streams of episodes, over all ranks (with the next: 2048 steps, SB3)", low=1, high=10**6
    )
    steps_per_trajectory: int = option(
        1024, "steps of each stream per update (SB3's PPO: 2048 of one stream)", low=2, high=10**9
    )
    gamma: float = option(0.99, "discount per step (openai/baselines)", above=0, high=1)
    lam: float = option(0.95, "lambda of GAE (openai/baselines ppo1, SB3)", low=0, high=1)
    hidden_sizes: tuple[int, ...] = option((64, 64), "hidden layers of policy and value, tanh (SB3)", low=1, high=4096)
    output_gain: float = option(0.01, "scale of the policy's initial output weights (all)", low=0, high=10)
    initial_std: float = option(1.0, "initial standard deviation of the action (all)", above=0, high=1e6)
    use_observation_normalisation: bool = option(
        True, "networks see observations scaled to mean 0 and deviation 1 (openai/baselines: yes)"
    )
    use_return_normalisation: bool = option(True, "values are fitted in units of the returns' r.m.s. (CleanRL: alike)")


def check_on_policy(config: OnPolicySettings, environment, num_ranks: int, **minibatch: int) -> None:
    """Refuse what cannot run: too few streams, a minibatch larger than the batch, too much memory."""
    N, L = config.num_trajectories, config.steps_per_trajectory
    require_trajectories(N, num_ranks)
    for name, size in minibatch.items():
        if size > N * L:
            raise ValueError(f"{name} must be at most num_trajectories x steps_per_trajectory ({N * L}), got {size}")
    O, A = environment.observation_size, environment.action_size
    require_memory("num_trajectories and steps_per_trajectory", 8 * N * L * (4 * O + 4 * A + 8))


def gaussian_exploration(config, environment, state: dict, rng: np.random.Generator, shape: tuple[int, ...]):
    """The noise [...] that the policy of a checkpoint acts with; None if the checkpoint does not tell it."""
    return np.exp(state["log_std"]) * rng.standard_normal(shape) if "log_std" in state else None


class Policy(NamedTuple):
    """A Gaussian with a network for its mean, which sees normalised observations."""

    theta: np.ndarray  # [P]
    log_std: np.ndarray  # [A]


class Batch(NamedTuple):
    """The steps of this rank's streams, ready to learn from."""

    observations: np.ndarray  # [n, L, O] as the networks see them
    means: np.ndarray  # [n, L, A] of the policy that acted
    offsets: np.ndarray  # [n, L, A] from them
    advantages: np.ndarray  # [n, L] standardised over all ranks
    targets: np.ndarray  # [n, L] of the value function, in its units


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


def scaled_output(theta: np.ndarray, sizes: tuple[int, ...], scale: float) -> np.ndarray:
    """Parameters of the same network with outputs `scale` times as large."""
    first = mlp.num_parameters(sizes[:-1])
    return np.concatenate([theta[:first], scale * theta[first:]])


class ActorCritic:
    """The policy, the value function, and the scales of what they see."""

    def __init__(self, config: OnPolicySettings, roller, comm: Comm, seed: int):
        self._config, self._comm, self._seed = config, comm, seed
        N, L = config.num_trajectories, config.steps_per_trajectory
        self.streams = Streams(roller, comm, seed, num_streams=N, num_steps=L, gamma=config.gamma)
        self.sizes = roller.layer_sizes
        self.value_sizes = (*self.sizes[:-1], 1)
        self.forward = comm.first_on_each_host(lambda: mlp.Forward(self.sizes))
        self._value_forward = comm.first_on_each_host(lambda: mlp.Forward(self.value_sizes))
        self.theta = mlp.initial_parameters(self.sizes, generator(seed, "weights"), config.output_gain)  # raw
        self.log_std = np.full(self.sizes[-1], np.log(config.initial_std))
        self._value_theta = mlp.initial_parameters(self.value_sizes, generator(seed, "value_weights"), 1.0)
        self._stats = RunningStats.none(self.sizes[0])
        self._target_sums = np.zeros(2)  # number and sum of squares of the value targets

    @property
    def policy(self) -> Policy:
        theta = self.theta
        if self._config.use_observation_normalisation:
            theta = unfolded(theta, self.sizes, self._stats)
        return Policy(theta, self.log_std)

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self.theta, self.log_std = policy
        if self._config.use_observation_normalisation:
            self.theta = folded(self.theta, self.sizes, self._stats)

    @property
    def value_theta(self) -> np.ndarray:
        """Of a network with outputs in units of `value_scale`."""
        return scaled_output(self._value_theta, self.value_sizes, 1 / self.value_scale)

    @value_theta.setter
    def value_theta(self, theta: np.ndarray) -> None:
        self._value_theta = scaled_output(theta, self.value_sizes, self.value_scale)

    @property
    def value_scale(self) -> float:
        num, square = self._target_sums
        return float(np.sqrt(square / num)) if self._config.use_return_normalisation and square > 0 else 1.0

    def collect(self, iteration: int) -> Batch | None:
        """The next steps of this rank's streams.

        None in the first update with normalised observations: it only tells their scale.
        """
        segments = self.streams.collect(self.theta, self._noise(iteration), iteration)
        is_first = self._stats.observation_count == 0
        self._merge_observations(segments)
        if self._config.use_observation_normalisation and is_first:
            self.policy = Policy(self.theta, self.log_std)
            return None
        return self._prepared(segments)

    def _noise(self, iteration: int) -> np.ndarray:
        N, L, A = self._config.num_trajectories, self._config.steps_per_trajectory, self.sizes[-1]
        white = generator(self._seed, "actions", iteration).standard_normal((N, L, A))
        return np.exp(self.log_std) * white[self._comm.share(N)]

    def _merge_observations(self, segments: Segments) -> None:
        rows = segments.observations
        sums = np.concatenate([rows.sum(axis=1), (rows**2).sum(axis=1)], axis=1)
        sums, squares = np.split(self._comm.gather(sums, self._config.num_trajectories), 2, axis=1)
        self._stats = self._stats.merged(np.full(len(sums), float(rows.shape[1])), sums, squares)

    def _seen(self, observations: np.ndarray) -> np.ndarray:
        """Observations as the networks see them."""
        if not self._config.use_observation_normalisation:
            return observations
        return (observations - self._stats.mean) / self._stats.std

    def _values(self, seen: np.ndarray) -> np.ndarray:
        return self._value_forward(self._value_theta, seen)[..., 0]

    def _prepared(self, segments: Segments) -> Batch:
        config, N = self._config, self._config.num_trajectories
        seen = self._seen(segments.observations)
        values = self._values(seen)
        is_cut = segments.is_last.copy()
        is_cut[:, -1] = True
        next_values = np.roll(values, -1, axis=1)  # what is seen after a step is what is seen before the next
        next_values[is_cut] = self._values(self._seen(segments.next_observations[is_cut]))
        advantages = generalised_advantages(segments, values, next_values, gamma=config.gamma, lam=config.lam)
        targets = advantages + values
        squares = self._comm.sum((targets**2).sum(axis=1), N)
        self._target_sums = self._target_sums + [N * targets.shape[1], squares]
        means = self.forward(self.policy.theta, seen)
        scaled = standardised(advantages, N, self._comm)
        return Batch(seen, means, segments.offsets, scaled, targets / self.value_scale)

    def rows(self, *columns: np.ndarray) -> np.ndarray:
        """Columns [n, L, ...] of this rank side by side, for all ranks. [N L, D]"""
        parts = [column if column.ndim == 3 else column[..., None] for column in columns]
        packed = np.concatenate(parts, axis=2)
        return self._comm.gather(packed, self._config.num_trajectories).reshape(-1, packed.shape[2])

    def state(self) -> dict[str, Any]:
        own = {"theta": self.theta, "log_std": self.log_std, "value_theta": self._value_theta}
        return {**own, "target_sums": self._target_sums, **self._stats._asdict(), **self.streams.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.begin_from(state)
        self.streams.load_state(state)

    def begin_from(self, state: dict[str, Any]) -> None:
        """Take over the policy and the value function of the stage before, but none of its episodes."""
        self.theta, self.log_std, self._value_theta = state["theta"], state["log_std"], state["value_theta"]
        self._target_sums = state["target_sums"]
        self._stats = RunningStats(**{name: state[name] for name in RunningStats._fields})


class OnPolicyLearner:
    """What every learner must have, for one that is an agent and the moments of its Adam."""

    replay_bytes = 0

    def __init__(self, agent: ActorCritic, num_fitted: int):
        self._agent, self._adam = agent, Adam.of_size(num_fitted)

    @property
    def theta(self) -> np.ndarray:
        return self._agent.theta

    def state(self) -> dict[str, Any]:
        """All that a checkpoint must hold."""
        return {**self._agent.state(), **self._adam.state()}

    replicated = state

    def load_state(self, state: dict[str, Any]) -> None:
        self._agent.load_state(state)
        self._adam = Adam.from_state(state)

    def begin_from(self, state: dict[str, Any]) -> None:
        self._agent.begin_from(state)
        self._adam = Adam.from_state(state)
