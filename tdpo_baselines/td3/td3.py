"""Twin Delayed Deep Deterministic Policy Gradient (Fujimoto et al. 2018, arXiv 1802.09477), Algorithm 1.

Differences from the paper
  1. Updates come in rounds: `steps_per_round` steps of every stream, then `updates_per_round` updates.
  2. Several streams, each with its part of the replay, share every minibatch; gradients are their mean.
  3. A mere time limit is not an end: the value of the state after it is bootstrapped (`time_limit`).
  4. Exploration noise may be coloured, and the actor's output linear.
  5. Target actions are clipped to their range, also where the environment does not clip, as in the authors' code.

This file has the mathematics of one update. The loop around it (exploration, replay, Adam, Polyak averages) is
`ReplayLearner` in common/learners/replay_learner.py.

Glossary (M rows of a minibatch, O observation, A action, P parameters of the actor, Q of a critic)
  symbol             name in code               shape    meaning, line of Algorithm 1
  phi                actor                      [P]      actor pi, line 1
  theta_1, theta_2   critics                    [2 Q]    critics Q_1 and Q_2, line 1
  phi'               target_actor               [P]      Polyak average of phi, line 2
  theta'             target_critics             [2 Q]    Polyak averages of theta_1 and theta_2, line 2
  s, a, r, s'        batch.observations, ...    [M, .]   transitions, line 7
  epsilon            noise                      [M, A]   clipped noise, line 8
  a~                 actions                    [M, A]   smoothed target actions, line 8
  y                  y                          [M]      target, line 9
  gamma              gamma                               discount, line 9
  sigma~, c          target_noise_std, _clip             scale and limit of epsilon, line 8
  d                  policy_delay                        updates of the critics per update of the actor, line 11
  tau                target_rate                         rate of the Polyak averages, lines 13 and 14
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..common.learners.replay_learner import Networks, ReplayLearner, UpdateRule
from ..common.learners.settings import OffPolicySettings, check_off_policy, coloured_exploration
from ..common.parallel.comm import Comm
from ..common.sampling.replay import Transitions
from ..options.config import paper


@dataclass(frozen=True)
class Config(OffPolicySettings):
    """Options of TD3."""

    policy_delay: int = paper(2, "updates of the critics per update of the actor (paper)", low=1, high=10**6)
    target_noise_std: float = paper(0.2, "standard deviation of the noise on target actions (paper)", low=0, high=1e3)
    target_noise_clip: float = paper(0.5, "limit of that noise (paper)", low=0, high=1e3)


def target_noise(rng: np.random.Generator, shape: tuple[int, ...], *, std: float, clip: float) -> np.ndarray:
    """Draw epsilon ~ clip(N(0, sigma~), -c, c) (line 8). [..., A]"""
    return np.clip(std * rng.standard_normal(shape, np.float32), -clip, clip)


def target_actions(networks: Networks, target_actor, next_observations, noise):
    """Return a~ = pi_phi'(s') + epsilon, target policy smoothing (line 8; section 5.3). [M, A]"""
    return networks.clip(networks.act(target_actor, next_observations).outputs + noise)


def targets(networks: Networks, target_actor, target_critics, batch: Transitions, noise, *, gamma: float):
    """Return y = r + gamma min_i Q_theta'_i(s', a~), clipped double Q-learning (line 9; section 4.2, eq. 10). [M]"""
    actions = target_actions(networks, target_actor, batch.next_observations, noise)
    value_1, value_2 = networks.values(target_critics, batch.next_observations, actions)
    return batch.rewards + gamma * (1 - batch.is_terminal) * np.minimum(value_1, value_2)


def critic_gradient(networks: Networks, critics, batch: Transitions, y):
    """Return the gradient of sum_i mean (y - Q_theta_i(s, a))^2 (line 10). [2 Q]"""
    return networks.critic_gradient(critics, batch, lambda values: 2 * (values - y) / len(y))


def actor_gradient(networks: Networks, actor, critics, batch: Transitions):
    """Return -grad J(phi) = -mean grad_a Q_theta_1(s, a) grad_phi pi_phi(s), at a = pi_phi(s) (line 12). [P]"""
    return -networks.policy_gradient(actor, critics, batch)


def update_rule(config: Config) -> UpdateRule:
    """Return lines 8 to 14 for the learner: the actor and the targets change with every d-th update (section 5.2)."""
    return UpdateRule(
        targets=partial(targets, gamma=config.gamma),
        critic_gradient=critic_gradient,
        actor_gradient=actor_gradient,
        target_noise=partial(target_noise, std=config.target_noise_std, clip=config.target_noise_clip),
        num_critics=2,
        policy_delay=config.policy_delay,
    )


check = check_off_policy
exploration = coloured_exploration


class Learner(ReplayLearner):
    """TD3, some rounds at a time."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        super().__init__(config, update_rule(config), roller, comm, seed)
