"""Proximal Policy Optimization (Schulman et al. 2017, arXiv 1707.06347), Algorithm 1 with the clipped surrogate.

Differences from the paper and from openai/baselines
  1. Minibatches are drawn from the steps of all ranks: `minibatch_size` does not depend on the number of ranks.
  2. Advantages are standardised over the steps of all ranks.
  3. A mere time limit is not an end: the value of the state after it is bootstrapped (`time_limit`).
  4. The environment may clip an action; probabilities are those of the action before that.
  5. With normalised observations the first update only measures their scale.
  6. The learning rate falls with the global count of timesteps alone.

Collecting, advantages, the value function and normalisation are in `ActorCritic` of common/learners/actor_critic.py.

Glossary (N streams, n of them on this rank, L steps of each per update, R rows of a minibatch, O observation, A action,
P and V parameters)
  symbol      name in code        shape          meaning, where
  theta       parameters          [P + A + V]    the policy's theta and log_std, and the value function's theta
  r(theta)    ratio               [R]            new over old probability of an action, eq. 6
  A           advantages          [n, L]         eq. 11; arXiv 1506.02438, eq. 16
  epsilon     clip                               limit of the ratio, eq. 7
  V^targ      targets             [n, L]         targets of the value function, eq. 9
  c1, c2      value_coefficient, entropy_coefficient, eq. 9
  S           entropy                            of the policy, eq. 9
  K           num_epochs                         Algorithm 1
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from ..common.learners.actor_critic import ActorCritic, Batch, Policy, surrogate_and_kl
from ..common.learners.settings import OnPolicySettings, check_on_policy, gaussian_exploration
from ..common.networks.batch_mlp import differentiate_parameters, run_forward
from ..common.networks.mlp import num_parameters
from ..common.optim.adam import Adam
from ..common.optim.minibatch import MinibatchAdam
from ..common.parallel.checks import require_finite
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..options.config import baselines, paper


@dataclass(frozen=True)
class Config(OnPolicySettings):
    """Options of PPO1."""

    clip: float = paper(0.2, "ratios are rewarded up to this far from 1 (all)", above=0, high=1e6)
    num_epochs: int = paper(10, "passes over the steps of an update (openai/baselines, SB3)", low=1, high=1000)
    minibatch_size: int = paper(
        None,
        "steps per gradient, over all ranks; a remainder is left out; none: 64 (SB3), or by num_minibatches",
        low=1,
        high=10**9,
    )
    learning_rate: float = paper(3e-4, "Adam's step (openai/baselines, SB3)", above=0, high=1)
    value_coefficient: float = paper(0.5, "weight of the value function's loss (SB3)", low=0, high=1e6)
    entropy_coefficient: float = paper(0.0, "weight of the policy's entropy (openai/baselines, SB3)", low=0, high=1e6)

    decay_timesteps: float | None = baselines(
        None,
        "the learning rate falls linearly to 0 at this many timesteps (openai/baselines: num_timesteps); none: never",
        above=0,
        high=1e18,
    )
    num_minibatches: int = baselines(None, "gradients per pass, instead of minibatch_size", low=1, high=10**9)
    is_clip_decayed: bool = baselines(False, "the clip falls with the learning rate (SB2's PPO1)")
    adam_epsilon: float = baselines(1e-5, "Adam's epsilon (openai/baselines, SB3)", above=0, high=1)
    max_gradient_norm: float | None = baselines(
        0.5, "gradients are clipped to this norm (SB3, CleanRL; openai/baselines ppo1: none)", above=0, high=1e12
    )

    def __post_init__(self):
        super().__post_init__()
        self.fill_in_minibatch("minibatch_size", "num_minibatches", 64)

    @property
    def steps_per_gradient(self) -> int:
        """Rows of a minibatch."""
        return self.minibatch_size or self.num_steps // self.num_minibatches

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        """Return a warning if the learning rate reaches 0 before the end of the run."""
        end = self.decay_timesteps or math.inf
        text = (
            f"warning: nothing is learned after decay_timesteps={end:g}; pass --set decay_timesteps={num_timesteps:g}"
        )
        return [text] * (num_timesteps > end)


def decay_at(total_timesteps: int, config: Config) -> float:
    """Return the fraction of the learning rate, and of the clip, that is left."""
    return 1.0 if config.decay_timesteps is None else max(0.0, 1 - total_timesteps / config.decay_timesteps)


def old_log_probabilities(batch: Batch, log_std: np.ndarray) -> np.ndarray:
    """Return the log probability of each action when it was taken, up to a constant. [n, L]"""
    z = batch.offsets / np.exp(log_std)
    return np.sum(-(z**2) / 2 - log_std, axis=2)


@njit(error_model="numpy")
def clipped_surrogate(ratio, advantages, clip):
    """Return min(r A, clip(r, 1 - epsilon, 1 + epsilon) A), the terms of L^CLIP (eq. 7), and r times dL/dr. [R], [R]"""
    gain = np.minimum(ratio * advantages, np.minimum(np.maximum(ratio, 1 - clip), 1 + clip) * advantages)
    is_clipped = np.where(advantages > 0, ratio > 1 + clip, ratio < 1 - clip)
    return gain, np.where(is_clipped, 0.0, ratio * advantages)


@njit(error_model="numpy")
def differentiate(parameters, rows, decay, problem, gradient):
    """Write the gradient of the mean of -L^CLIP + c1 L^VF - c2 S (eq. 9) over rows, and return the mean.

    A row [O + A + 3] is an observation, the action, its log probability when it was taken, its advantage and the
    target of the value function. `problem` comes from `make_problem`.
    """
    sizes, value_sizes, P, clip, is_clip_decayed, c1, c2 = problem
    R, O, A = rows.shape[0], sizes[0], sizes[-1]
    theta, log_std, value_theta = parameters[:P], parameters[P : P + A], parameters[P + A :]
    observations, taken, (old, advantages, targets) = rows[:, :O].copy(), rows[:, O : O + A], rows[:, O + A :].T
    units, value_units = run_forward(theta, sizes, observations), run_forward(value_theta, value_sizes, observations)

    std = np.exp(log_std)
    z = (taken - units[-R * A :].reshape(R, A)) / std
    ratio = np.exp((-z * z / 2 - log_std).sum(axis=1) - old)  # eq. 6
    gain, slope = clipped_surrogate(ratio, advantages, clip * decay if is_clip_decayed else clip)
    error = value_units[-R:] - targets

    slope = -slope.reshape(R, 1) / R  # of the loss, by the log probability -z^2 / 2 - log_std
    of_means, of_values = (slope * z / std).astype(np.float32), (2 * c1 / R * error).reshape(R, 1).astype(np.float32)
    differentiate_parameters(theta, sizes, observations, units, of_means, gradient[:P])
    gradient[P : P + A] = (slope * (z * z - 1)).sum(axis=0) - c2
    differentiate_parameters(value_theta, value_sizes, observations, value_units, of_values, gradient[P + A :])
    return np.mean(c1 * error * error - gain) - c2 * log_std.sum()  # the entropy S is this sum, up to a constant


def make_problem(config: Config, sizes: tuple[int, ...]) -> tuple:
    """Return what `differentiate` needs to know."""
    numbers = config.clip, config.is_clip_decayed, config.value_coefficient, config.entropy_coefficient
    return np.array(sizes), np.array([*sizes[:-1], 1]), num_parameters(sizes), *numbers


def check(config: Config, environment, num_ranks: int) -> None:
    """Raise ValueError if the options cannot run."""
    sizes = {"minibatch_size": config.minibatch_size, "num_minibatches": config.num_minibatches}
    check_on_policy(config, environment, num_ranks, **sizes)
    if config.is_clip_decayed and config.decay_timesteps is None:
        raise ValueError(
            "is_clip_decayed needs decay_timesteps; pass --set decay_timesteps=N, the timesteps at which the clip is 0"
        )


exploration = gaussian_exploration


class Change(NamedTuple):
    """Columns of the log about an update; zeros if there was none."""

    step_norm: float = 0.0
    loss: float = 0.0
    kl: float = 0.0
    surrogate_gain: float = 0.0


class Learner(ActorCritic):
    """PPO1, one update at a time."""

    config: Config

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self.adam = Adam.of_size(len(self.parameters))
        self._minibatch_adam = MinibatchAdam(
            differentiate,
            make_problem(config, self.sizes),
            config.steps_per_gradient,
            comm,
            max_norm=config.max_gradient_norm,
            epsilon=config.adam_epsilon,
        )

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect segments, minimise the loss on them, and return the row for the log."""
        segments = self.collect(iteration)
        batch = self.prepare(segments)
        change = Change() if batch is None else self._improve(batch, iteration, decay_at(total_timesteps, self.config))
        action_std = float(np.exp(self.log_std).mean())
        return self.streams.row() | change._asdict() | {"action_std": action_std}

    def _improve(self, batch: Batch, iteration: int, decay: float) -> Change:
        """Minimise the loss, and measure how far the policy went."""
        N = self.config.num_trajectories
        old, before = self.policy, self.parameters
        mean_loss = self._minimise(batch, iteration, decay)
        parts = surrogate_and_kl(batch, old, self.policy, self.forward)
        surrogate, mean_kl = self._comm.sum(parts, N) / N
        return Change(float(np.linalg.norm(self.parameters - before)), mean_loss, mean_kl, surrogate)

    @property
    def parameters(self) -> np.ndarray:
        """All that Adam fits, in units of normalised observations and returns. [P + A + V]"""
        return np.concatenate([*self.policy, self.value_theta])

    def _minimise(self, batch: Batch, iteration: int, decay: float) -> float:
        """Minimise the loss by epochs of minibatches (Algorithm 1, line 6); return the mean loss on the way."""
        config = self.config
        taken, old = batch.means + batch.offsets, old_log_probabilities(batch, self.log_std)
        parameters, adam, mean_loss = self._minibatch_adam.minimise(
            self.parameters,
            self.adam,
            self.gather_rows(batch.observations, taken, old, batch.advantages, batch.targets),
            num_epochs=config.num_epochs,
            rng=generator(self._seed, "minibatches", iteration),
            learning_rate=config.learning_rate,
            decay=decay,
        )
        require_finite("parameter", parameters)
        self.adam = adam
        P, A = len(self.theta), len(self.log_std)
        self.policy, self.value_theta = Policy(parameters[:P], parameters[P : P + A]), parameters[P + A :]
        return mean_loss
