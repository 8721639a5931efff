"""Deep Deterministic Policy Gradient (Lillicrap et al. 2015, arXiv 1509.02971), Algorithm 1.

Optional: parameter noise instead of action noise (Plappert et al. 2017, arXiv 1706.01905).

Differences from the papers
  1. Updates come in rounds: `steps_per_round` steps of every stream, then `updates_per_round` updates.
  2. Several streams, each with its part of the replay, share every minibatch; gradients are their mean.
  3. A mere time limit is not an end: the value of the state after it is bootstrapped (`time_limit`).
  4. Actions enter the critic with the observation, not in its second layer; there is no batch normalisation.
  5. Target actions are clipped to their range, which matters for a linear output only.
  6. Parameter noise is drawn anew for every segment and is the same for all streams. There is no layer normalisation;
     the noise is scaled by the r.m.s. of each layer's parameters instead.

This file has the mathematics of one update and of parameter noise. The loop around it (replay, Adam, Polyak averages)
is `ReplayLearner` in common/learners/replay_learner.py.

Glossary (M rows of a minibatch, O observation, A action, P parameters of the actor, Q of the critic)
  symbol       name in code               shape    meaning, where (arXiv 1509.02971 unless noted)
  theta^mu     actor                      [P]      actor mu, Algorithm 1
  theta^Q      critics                    [Q]      critic Q, Algorithm 1
  theta^mu'    target_actor               [P]      Polyak average of theta^mu, Algorithm 1
  theta^Q'     target_critics             [Q]      Polyak average of theta^Q, Algorithm 1
  s, a, r, s'  batch.observations, ...    [M, .]   transitions, Algorithm 1
  y            y                          [M]      target, eq. 5
  grad L       critic_gradient            [Q]      of eq. 4, with weight decay (section 7)
  gamma        gamma                               discount
  tau          target_rate                         rate of the Polyak averages
  theta~       perturbed                  [P]      actor with parameter noise, arXiv 1706.01905, section 3
  sigma        noise_scale                         scale of the parameter noise, arXiv 1706.01905, section 3
  d, delta     distance, parameter_noise_std       change of the actions, and its desired value, ibid.
  alpha        ADAPTATION                          ibid.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..common.learners.replay_learner import Networks, ReplayLearner, UpdateRule
from ..common.learners.settings import OffPolicySettings, check_off_policy, coloured_exploration
from ..common.networks import mlp
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..common.sampling.replay import Transitions
from ..options.config import baselines, paper

ADAPTATION = 1.01  # factor of the parameter noise's scale, per segment (openai/baselines)
INITIAL_NOISE_SCALE = 0.1  # relative to each layer's parameters


@dataclass(frozen=True)
class Config(OffPolicySettings):
    """Options of DDPG."""

    critic_l2: float = paper(
        0.0, "weight of the critic's squared parameters (openai/baselines: .01 of weights)", low=0, high=1e6
    )
    parameter_noise_std: float | None = baselines(
        None,
        "explore with noise on the actor's parameters that changes actions by this much, in units of half their range, "
        "instead of noise on actions (openai/baselines: 0.2); none: noise on actions",
        above=0,
        high=1e3,
    )


def targets(networks: Networks, target_actor, target_critics, batch: Transitions, noise, *, gamma: float):
    """Return y = r + gamma Q'(s', mu'(s')) (eq. 5). The noise is TD3's and is not used. [M]"""
    actions = networks.clip(networks.act(target_actor, batch.next_observations).outputs)
    (value,) = networks.values(target_critics, batch.next_observations, actions)
    return batch.rewards + gamma * (1 - batch.is_terminal) * value


def critic_gradient(networks: Networks, critic, batch: Transitions, y, *, l2: float):
    """Return the gradient of L = mean (Q(s, a) - y)^2 (eq. 4), plus weight decay l2 |theta^Q|^2 (section 7). [Q]"""
    gradient = networks.critic_gradient(critic, batch, lambda value: 2 * (value - y) / len(y))
    return gradient + 2 * l2 * critic if l2 else gradient


def actor_gradient(networks: Networks, actor, critic, batch: Transitions):
    """Return minus the policy gradient, the mean of grad_a Q(s, a) grad_theta mu(s) at a = mu(s) (eq. 6). [P]"""
    return -networks.policy_gradient(actor, critic, batch)


def update_rule(config: Config) -> UpdateRule:
    """Return the updates of Algorithm 1 for the learner."""
    return UpdateRule(
        targets=partial(targets, gamma=config.gamma),
        critic_gradient=partial(critic_gradient, l2=config.critic_l2),
        actor_gradient=actor_gradient,
    )


def perturb(theta: np.ndarray, sizes: tuple[int, ...], *, noise_scale: float, white: np.ndarray) -> np.ndarray:
    """Return theta~ = theta + sigma x r.m.s. of the layer x white noise (arXiv 1706.01905, section 3). [P]"""
    layer_scales = np.empty_like(theta)
    for layer in mlp.layer_slices(sizes):
        layer_scales[layer] = np.sqrt(np.mean(theta[layer] ** 2))
    return theta + noise_scale * layer_scales * white


def adapt_noise_scale(noise_scale: float, distance: float, delta: float) -> float:
    """Return alpha sigma if actions change by less than delta, else sigma / alpha (arXiv 1706.01905, section 3)."""
    return noise_scale * (ADAPTATION if distance < delta else 1 / ADAPTATION)


check = check_off_policy


def exploration(config: Config, environment, state, rng: np.random.Generator, shape):
    """Return the noise [E, T, A] on actions, or None with parameter noise, which is not drawn for evaluation."""
    if config.parameter_noise_std is not None:
        return None
    return coloured_exploration(config, environment, state, rng, shape)


class Learner(ReplayLearner):
    """DDPG, some rounds at a time."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        super().__init__(config, update_rule(config), roller, comm, seed)
        self._noise_scale = INITIAL_NOISE_SCALE
        has_parameter_noise = config.parameter_noise_std is not None
        self._forward = comm.warm_up(
            lambda: mlp.Forward(roller.layer_sizes, roller.style), is_needed=has_parameter_noise
        )

    def explore(self, number: int, *, is_random: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters to act with in a round, and the offsets [n, L, A] to add to their actions."""
        theta, offsets = super().explore(number, is_random=is_random)
        if is_random or self.config.parameter_noise_std is None:
            return theta, offsets
        white = generator(self._seed, "noise", 1 + number).standard_normal(len(theta))
        perturbed = perturb(theta, self.networks.sizes, noise_scale=self._noise_scale, white=white)
        if self.replay.num_filled:
            distance = self._action_distance(theta, perturbed)
            self._noise_scale = adapt_noise_scale(self._noise_scale, distance, self.config.parameter_noise_std)
        return perturbed, np.zeros_like(offsets)

    def _action_distance(self, theta: np.ndarray, perturbed: np.ndarray) -> float:
        """Return d, the r.m.s. difference of the actions on the latest observations, in units of half their range."""
        O, N = self.networks.sizes[0], self.config.num_trajectories
        observations = self.replay.latest(self.config.steps_per_round)[..., :O].astype(np.float64)
        change = self._forward(perturbed, observations) - self._forward(theta, observations)
        squares = np.mean((change / np.array(self.roller.style.scale)) ** 2, axis=(1, 2))  # [n]
        return np.sqrt(self._comm.sum(squares, N) / N)

    def replicated(self) -> dict[str, Any]:
        """Return the part of the state that is the same on all ranks."""
        return {**super().replicated(), "parameter_noise": {"scale": np.asarray(self._noise_scale)}}

    def begin_from(self, state: dict[str, Any]) -> None:
        """Take over the networks of the stage before, but none of its experience."""
        super().begin_from(state)
        self._noise_scale = float(state["parameter_noise"]["scale"])
