"""Gaussian policy and value function of TRPO and PPO1, and the batches they learn from.

Networks see normalised observations, and values are fitted in units of the returns. The scale of the observations is
folded into the policy's first layer, so acting and checkpoints need no statistics, and new statistics never change the
policy (but they do change what the value function sees); the scale of the returns is folded into the value function's
last layer. Unlike in openai/baselines, normalised observations are not clipped.

Shapes: N streams, n of them on this rank, L steps of each per update, O observation, A action, P parameters.
"""

from typing import Any, NamedTuple

import numpy as np

from ..networks import mlp
from ..networks.code_cache import cached_jit
from ..networks.normalisation import RunningStats, fold_normalisation, unfold_normalisation
from ..optim.adam import Adam
from ..parallel.comm import Comm
from ..parallel.seeding import generator
from ..sampling.streams import Segments, Streams
from .settings import OnPolicySettings


class Policy(NamedTuple):
    """A Gaussian whose mean is a network of normalised observations."""

    theta: np.ndarray  # [P]
    log_std: np.ndarray  # [A]


class Batch(NamedTuple):
    """The steps of this rank's streams, ready to learn from."""

    observations: np.ndarray  # [n, L, O] as the networks see them
    means: np.ndarray  # [n, L, A] of the policy that acted
    offsets: np.ndarray  # [n, L, A] from the means
    advantages: np.ndarray  # [n, L] standardised over all ranks
    targets: np.ndarray  # [n, L] of the value function, in its units


def generalised_advantage_estimation(
    segments: Segments, values: np.ndarray, next_values: np.ndarray, *, gamma: float, lam: float
) -> np.ndarray:
    """Return GAE(gamma, lambda), the sums of (gamma lambda)^l delta_{t+l} (arXiv 1506.02438, eq. 16). [n, L]

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t). Nothing follows a terminal state; after a mere time limit, or at the end
    of a segment, V(s_{t+1}) stands for the rest of the episode.
    """
    delta = segments.rewards + gamma * next_values * ~segments.is_terminal - values
    return _discounted_sums(delta, gamma * lam * ~segments.is_last)


@cached_jit()
def _discounted_sums(terms, factors):
    """Return sums with sums[t] = terms[t] + factors[t] sums[t + 1], along the last axis."""
    sums = np.zeros_like(terms)
    for n in range(terms.shape[0]):
        total = 0.0
        for t in range(terms.shape[1] - 1, -1, -1):
            total = terms[n, t] + factors[n, t] * total
            sums[n, t] = total
    return sums


def standardise(advantages: np.ndarray, num_streams: int, comm: Comm) -> np.ndarray:
    """Scale advantages [n, L] to mean 0 and deviation 1 over the steps of all ranks."""
    moments = np.stack([advantages.mean(axis=1), (advantages**2).mean(axis=1)], axis=1)  # [n, 2]
    mean, square = comm.sum(moments, num_streams) / num_streams
    return (advantages - mean) / (np.sqrt(max(square - mean**2, 0.0)) + 1e-8)


def surrogate_and_kl(batch: Batch, old: Policy, new: Policy, forward) -> np.ndarray:
    """Return E[ratio x advantage] and E[KL(old, new)] of each stream (arXiv 1502.05477, eq. 14). [n, 2]

    The ratio is the new over the old probability of an action.
    """
    shift = forward(new.theta, batch.observations) - batch.means  # [n, L, A]
    old_std, new_std = np.exp(old.log_std), np.exp(new.log_std)
    old_z, new_z = batch.offsets / old_std, (batch.offsets - shift) / new_std
    log_ratio = np.sum((old_z**2 - new_z**2) / 2 + old.log_std - new.log_std, axis=2)
    kl = np.sum(new.log_std - old.log_std + (old_std**2 + shift**2) / (2 * new_std**2) - 0.5, axis=2)
    return np.stack([np.mean(batch.advantages * np.exp(log_ratio), axis=1), kl.mean(axis=1)], axis=1)


def scale_output(theta: np.ndarray, sizes: tuple[int, ...], scale: float) -> np.ndarray:
    """Return parameters of the same network with outputs `scale` times as large."""
    scaled = theta.copy()
    scaled[mlp.layer_slices(sizes)[-1]] *= scale
    return scaled


class ActorCritic:
    """Base of the learners: the policy, the value function, the scales of what they see, and one Adam."""

    replay_bytes = 0

    def __init__(self, config: OnPolicySettings, roller, comm: Comm, seed: int):
        self.config, self.roller, self._comm, self._seed = config, roller, comm, seed
        N, L, limit = config.num_trajectories, config.steps_per_trajectory, config.time_limit
        self.streams = Streams(roller, comm, seed, num_streams=N, num_steps=L, gamma=config.gamma, time_limit=limit)
        self.sizes = roller.layer_sizes
        self.value_sizes = (*self.sizes[:-1], 1)
        self.forward = comm.warm_up(lambda: mlp.Forward(self.sizes))
        self._value_forward = comm.warm_up(lambda: mlp.Forward(self.value_sizes))
        self.theta = mlp.init_parameters(self.sizes, generator(seed, "weights"), config.output_gain)  # raw
        self.log_std = np.full(self.sizes[-1], np.log(config.initial_std))
        self._value_theta = mlp.init_parameters(self.value_sizes, generator(seed, "value_weights"), 1.0)
        self.stats = RunningStats.of_size(self.sizes[0])
        self._target_sums = np.zeros(2)  # number and sum of squares of the value targets
        self.adam = Adam.of_size(len(self._value_theta))

    @property
    def policy(self) -> Policy:
        """The policy for normalised observations."""
        theta = self.theta
        if self.config.use_observation_normalisation:
            theta = unfold_normalisation(theta, self.sizes, self.stats)
        return Policy(theta, self.log_std)

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self.theta, self.log_std = policy
        if self.config.use_observation_normalisation:
            self.theta = fold_normalisation(self.theta, self.sizes, self.stats)

    @property
    def value_theta(self) -> np.ndarray:
        """Parameters of the value network with outputs in units of `value_scale`."""
        return scale_output(self._value_theta, self.value_sizes, 1 / self.value_scale)

    @value_theta.setter
    def value_theta(self, theta: np.ndarray) -> None:
        self._value_theta = scale_output(theta, self.value_sizes, self.value_scale)

    @property
    def value_scale(self) -> float:
        """Root mean square of all value targets so far, or 1 without return normalisation."""
        num, square = self._target_sums
        return float(np.sqrt(square / num)) if self.config.use_return_normalisation and square > 0 else 1.0

    def collect(self, iteration: int) -> Segments:
        """Advance this rank's streams with the Gaussian policy."""
        N, L, A = self.config.num_trajectories, self.config.steps_per_trajectory, self.sizes[-1]
        white = generator(self._seed, "actions", iteration).standard_normal((N, L, A))
        return self.streams.collect(self.theta, np.exp(self.log_std) * white[self.streams.mine], iteration)

    def prepare(self, segments: Segments) -> Batch | None:
        """Return the batch of an update's segments, with statistics of observations and returns up to date.

        Return None in the first update with normalised observations, which only measures their scale.
        """
        is_first = self.stats.count == 0
        self._merge_observations(segments.observations)
        if self.config.use_observation_normalisation and is_first:
            self.policy = Policy(self.theta, self.log_std)
            return None
        return self._make_batch(segments)

    def _merge_observations(self, observations: np.ndarray) -> None:
        sums = np.concatenate([observations.sum(axis=1), (observations**2).sum(axis=1)], axis=1)
        sums, squares = np.split(self._comm.gather(sums, self.config.num_trajectories), 2, axis=1)
        self.stats = self.stats.merged(np.full(len(sums), float(observations.shape[1])), sums, squares)

    def _make_batch(self, segments: Segments) -> Batch:
        config, N = self.config, self.config.num_trajectories
        seen = self.normalise(segments.observations)
        values = self.values(seen)
        is_cut = segments.is_last.copy()
        is_cut[:, -1] = True
        next_values = np.roll(values, -1, axis=1)  # the observation after a step is the one before the next
        next_values[is_cut] = self.values(self.normalise(segments.next_observations[is_cut]))
        advantages = generalised_advantage_estimation(segments, values, next_values, gamma=config.gamma, lam=config.lam)
        targets = advantages + values
        squares = self._comm.sum((targets**2).sum(axis=1), N)
        self._target_sums = self._target_sums + [N * targets.shape[1], squares]
        means = self.forward(self.policy.theta, seen)
        return Batch(seen, means, segments.offsets, standardise(advantages, N, self._comm), targets / self.value_scale)

    def normalise(self, observations: np.ndarray) -> np.ndarray:
        """Return observations [..., O] as the networks see them."""
        return self.stats.normalise(observations) if self.config.use_observation_normalisation else observations

    def values(self, seen: np.ndarray) -> np.ndarray:
        """Return the values [...] of normalised observations [..., O], in units of the rewards."""
        return self._value_forward(self._value_theta, seen)[..., 0]

    def gather_rows(self, *columns: np.ndarray) -> np.ndarray:
        """Return columns [n, L, ...] side by side, from all ranks. [N L, D]"""
        parts = [column if column.ndim == 3 else column[..., None] for column in columns]
        packed = np.concatenate(parts, axis=2)
        return self._comm.gather(packed, self.config.num_trajectories).reshape(-1, packed.shape[2])

    def state(self) -> dict[str, Any]:
        """Return everything a checkpoint must hold."""
        return {
            "policy": {"theta": self.theta, "log_std": self.log_std},
            "value": {"theta": self._value_theta, "target_sums": self._target_sums},
            "adam": self.adam._asdict(),
            "observation_stats": self.stats._asdict(),
            "streams": self.streams.state(),
        }

    replicated = state

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.streams.load_state(state["streams"])

    def begin_from(self, state: dict[str, Any]) -> None:
        """Take over the policy and the value function of the stage before, but none of its episodes."""
        self.theta, self.log_std = state["policy"]["theta"], state["policy"]["log_std"]
        self._value_theta, self._target_sums = state["value"]["theta"], state["value"]["target_sums"]
        self.adam, self.stats = Adam(**state["adam"]), RunningStats(**state["observation_stats"])
