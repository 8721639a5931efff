"""Proximal Policy Optimization (Schulman et al. 2017, arXiv 1707.06347), clipped, as openai/baselines' ppo1.

Differences from openai/baselines
  1. Minibatches are of all ranks' steps: `minibatch_size` is what a gradient is taken of, whatever the ranks.
  2. Advantages are standardised over all ranks' steps, not per rank.
  3. A time limit is not an end: the value of the state it cut off is bootstrapped.
  4. What is executed may be limited by the environment; probabilities are those of the action before that.
  5. With normalised observations the first update only tells their scale.
  6. The learning rate falls from the global count of timesteps alone.

Glossary (N streams, L steps of each per update, O observation, A action)
  ratio       new over old probability of an action              [R]
  clip        how far from 1 a ratio is rewarded
  parameters  policy's theta, log_std and value's theta in a row [P + A + V]
"""

import math
from dataclasses import dataclass

import numpy as np

from ..common.learners.actor_critic import (
    ActorCritic,
    Batch,
    OnPolicyLearner,
    OnPolicySettings,
    Policy,
    check_on_policy,
    gaussian_exploration,
    surrogate_and_kl,
)
from ..common.networks.mlp import num_parameters
from ..common.optim.minibatch import Descent
from ..common.parallel.checks import require_finite
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..common.parallel.tensorflow_setup import load_tensorflow
from ..harness.config import option


@dataclass(frozen=True)
class Config(OnPolicySettings):
    clip: float = option(0.2, "ratios are rewarded up to this far from 1 (all)", above=0, high=10)
    num_epochs: int = option(10, "passes over the steps of an update (openai/baselines, SB3)", low=1, high=1000)
    minibatch_size: int = option(
        64, "steps per gradient, over all ranks; what is left over is left out (SB3)", low=1, high=10**9
    )
    learning_rate: float = option(3e-4, "Adam's step (openai/baselines, SB3)", above=0, high=1)
    decay_timesteps: float | None = option(
        None,
        "the learning rate falls linearly to 0 at this many timesteps (openai/baselines: num_timesteps); none: stays",
        above=0,
        high=1e18,
    )
    is_clip_decayed: bool = option(False, "the clip falls with the learning rate (SB2's PPO1)")
    adam_epsilon: float = option(1e-5, "Adam's epsilon (openai/baselines, SB3)", above=0, high=1)
    max_gradient_norm: float | None = option(
        0.5, "gradients are shortened to this length (SB3, CleanRL; openai/baselines ppo1: none)", above=0, high=1e12
    )
    value_coefficient: float = option(0.5, "weight of the value function's loss (SB3)", low=0, high=1e6)
    entropy_coefficient: float = option(0.0, "weight of the policy's entropy (openai/baselines, SB3)", low=0, high=1e6)

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        end = self.decay_timesteps or math.inf
        text = (
            f"warning: nothing is learned after decay_timesteps={end:g}; pass --set decay_timesteps={num_timesteps:g}"
        )
        return [text] * (num_timesteps > end)


def check(config: Config, environment, num_ranks: int) -> None:
    check_on_policy(config, environment, num_ranks, minibatch_size=config.minibatch_size)
    if config.is_clip_decayed and config.decay_timesteps is None:
        raise ValueError("is_clip_decayed needs decay_timesteps: at how many timesteps the clip is to be 0")


exploration = gaussian_exploration


def loss(parameters, rows, decay, *, config: Config, sizes: tuple[int, ...]):
    """Of rows [R, O + A + 3]: observation, action, its log probability when it was taken, advantage, target of the
    value. In TensorFlow. [R]"""
    tf = load_tensorflow()
    from ..common.networks.tf_mlp import actions

    O, A, P = sizes[0], sizes[-1], num_parameters(sizes)
    theta, log_std, value_theta = parameters[:P], parameters[P : P + A], parameters[P + A :]
    observations, taken = rows[:, :O], rows[:, O : O + A]
    old, advantages, targets = tf.unstack(rows[:, O + A :], axis=1)
    z = (taken - actions(theta, observations, sizes)) / tf.exp(log_std)
    ratio = tf.exp(tf.reduce_sum(-(z**2) / 2 - log_std, axis=1) - old)
    clip = config.clip * (decay if config.is_clip_decayed else 1.0)
    gain = tf.minimum(ratio * advantages, tf.clip_by_value(ratio, 1 - clip, 1 + clip) * advantages)
    error = actions(value_theta, observations, (*sizes[:-1], 1))[:, 0] - targets
    entropy = tf.reduce_sum(log_std)  # but for a constant
    return config.value_coefficient * error**2 - gain - config.entropy_coefficient * entropy


class Learner(OnPolicyLearner):
    """One update at a time."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        self.config = config
        self._comm, self._seed = comm, seed
        agent = ActorCritic(config, roller, comm, seed)
        self._descent = Descent(
            lambda *arguments: loss(*arguments, config=config, sizes=agent.sizes),
            config.minibatch_size,
            comm,
            max_norm=config.max_gradient_norm,
            epsilon=config.adam_epsilon,
        )
        num_fitted = num_parameters(agent.sizes) + agent.sizes[-1] + num_parameters(agent.value_sizes)
        super().__init__(agent, num_fitted)

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect segments, descend on them, and return the row for the log."""
        agent, N = self._agent, self.config.num_trajectories
        batch = agent.collect(iteration)
        surrogate = kl = mean_loss = change = 0.0
        if batch is not None:
            old, before = agent.policy, self._parameters()
            mean_loss = self._descend(batch, iteration, self._decay(total_timesteps))
            surrogate, kl = self._comm.sum(surrogate_and_kl(batch, old, agent.policy, agent.forward), N) / N
            change = float(np.linalg.norm(self._parameters() - before))
        own = {"step_norm": change, "loss": mean_loss, "kl": kl, "surrogate_gain": surrogate}
        return agent.streams.row() | own | {"action_std": float(np.exp(agent.log_std).mean())}

    def _decay(self, total_timesteps: int) -> float:
        timesteps = self.config.decay_timesteps
        return 1.0 if timesteps is None else max(0.0, 1 - total_timesteps / timesteps)

    def _parameters(self) -> np.ndarray:
        return np.concatenate([*self._agent.policy, self._agent.value_theta])  # [P + A + V]

    def _descend(self, batch: Batch, iteration: int, decay: float) -> float:
        """Epochs of minibatches; the mean loss on the way."""
        agent, config = self._agent, self.config
        z = batch.offsets / np.exp(agent.log_std)
        old = np.sum(-(z**2) / 2 - agent.log_std, axis=2)  # [n, L] log probability but for a constant
        rows = agent.rows(batch.observations, batch.means + batch.offsets, old, batch.advantages, batch.targets)
        parameters, adam, mean_loss = self._descent.run(
            self._parameters(),
            self._adam,
            rows,
            num_epochs=config.num_epochs,
            rng=generator(self._seed, "minibatches", iteration),
            learning_rate=config.learning_rate,
            decay=decay,
        )
        require_finite("parameter", parameters)
        self._adam = adam
        P, A = len(agent.theta), len(agent.log_std)
        agent.policy = Policy(parameters[:P], parameters[P : P + A])
        agent.value_theta = parameters[P + A :]
        return mean_loss
