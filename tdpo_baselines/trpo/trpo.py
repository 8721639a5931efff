"""Trust Region Policy Optimization (Schulman et al. 2015, arXiv 1502.05477) with GAE (arXiv 1506.02438).

Differences from the paper
  1. Advantages by GAE from a value function that Adam fits to their returns, as in openai/baselines.
  2. Advantages are standardised over all ranks' steps, not per rank.
  3. A time limit is not an end: the value of the state it cut off is bootstrapped.
  4. What is executed may be limited by the environment; probabilities are those of the action before that.
  5. With normalised observations the first update only tells their scale.
  6. Unlike openai/baselines: Fisher products are of all steps, not of a fifth of them; a step is accepted up to
     max_kl, not 1.5 times that.

Glossary (N streams, L steps of each per update, O observation, A action, P parameters)
  theta       parameters of the mean action                      [P]
  log_std     log standard deviation of the action               [A]
  g           gradient of the surrogate E[advantage ratio]       [P + A]
  F v         Fisher matrix of the policy, times v               [P + A]
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

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
from ..common.networks import mlp
from ..common.networks.jacobian import Tangent
from ..common.optim import cg
from ..common.optim.minibatch import Descent
from ..common.parallel.checks import require_finite, require_memory
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..harness.config import option


@dataclass(frozen=True)
class Config(OnPolicySettings):
    lam: float = option(0.98, "lambda of GAE (openai/baselines trpo_mpi)", low=0, high=1)
    max_kl: float = option(0.01, "trust region: mean KL divergence per update (openai/baselines)", above=0, high=10)
    cg_iterations: int = option(10, "conjugate gradient iterations at most (openai/baselines)", low=1, high=10**4)
    cg_tolerance: float = option(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)
    cg_damping: float = option(0.1, "multiple of the identity added to F (openai/baselines)", low=0, high=1e12)
    line_search_tries: int = option(10, "steps tried, each a fraction of the one before (all)", low=1, high=1000)
    line_search_shrink: float = option(0.8, "that fraction (sb3-contrib)", above=0, high=0.99)
    value_learning_rate: float = option(1e-3, "Adam's step for the value function (all but SB2)", above=0, high=1)
    value_epochs: int = option(10, "passes over the steps of an update (sb3-contrib)", low=1, high=1000)
    value_minibatch_size: int = option(
        128, "steps per gradient of the value function, over all ranks (sb3-contrib)", low=1, high=10**9
    )


def check(config: Config, environment, num_ranks: int) -> None:
    check_on_policy(config, environment, num_ranks, value_minibatch_size=config.value_minibatch_size)
    N, n, A = config.num_trajectories, -(-config.num_trajectories // num_ranks), environment.action_size
    num_parameters = mlp.num_parameters((environment.observation_size, *config.hidden_sizes, A))
    factors = 4 * n * config.steps_per_trajectory * (2 * A + 3) * sum(config.hidden_sizes)  # see common/tangent.py
    require_memory(
        "num_trajectories, steps_per_trajectory and hidden_sizes", factors + (20 * n + 8 * N) * num_parameters
    )


exploration = gaussian_exploration


def value_loss(theta, rows, sizes):
    """Squared error of rows [R, O + 1], observation and target. In TensorFlow. [R]"""
    from ..common.networks.tf_mlp import actions

    return (actions(theta, rows[:, :-1], sizes)[:, 0] - rows[:, -1]) ** 2


class Step(NamedTuple):
    """What an update did to the policy, for the log."""

    gradient_norm: Any = 0.0
    cg_iterations: int = 0
    kl: Any = 0.0
    surrogate_gain: Any = 0.0
    step_coefficient: float = 0.0  # of the full step; 0: none was taken


class Learner(OnPolicyLearner):
    """One update at a time."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        self.config = config
        self._comm, self._seed = comm, seed
        agent = ActorCritic(config, roller, comm, seed)
        self._value_descent = Descent(
            lambda theta, rows, decay: value_loss(theta, rows, agent.value_sizes),
            config.value_minibatch_size,
            comm,
            max_norm=None,
            epsilon=1e-8,
        )
        super().__init__(agent, mlp.num_parameters(agent.value_sizes))

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect segments, step, fit the values, and return the row for the log."""
        batch = self._agent.collect(iteration)
        step, value_error = Step(), 0.0
        if batch is not None:
            step = self._improve_policy(batch)
            value_error = self._fit_values(batch, iteration)
        action_std = float(np.exp(self._agent.log_std).mean())
        return self._agent.streams.row() | step._asdict() | {"action_std": action_std, "value_error": value_error}

    def _improve_policy(self, batch: Batch) -> Step:
        """A step along F^-1 g to the boundary of the trust region, shortened until it keeps what it promised."""
        config, comm, N = self.config, self._comm, self.config.num_trajectories
        old = self._agent.policy
        g, product = self._surrogate_derivatives(batch, old)
        require_finite("gradient", g)
        solution = cg.solve(
            product,
            g,
            max_iterations=config.cg_iterations,
            tolerance=config.cg_tolerance,
            damping=config.cg_damping,
        )
        x, num_iterations = solution.x, solution.num_iterations
        xFx = solution.curvature + config.cg_damping * x @ x
        norm = float(np.sqrt(solution.b_squared))
        if xFx <= 0:
            return Step(norm)
        full_step = np.sqrt(2 * config.max_kl / xFx) * x
        for tried in range(config.line_search_tries):
            coefficient = config.line_search_shrink**tried
            of_mean, of_std = np.split(coefficient * full_step, [len(old.theta)])
            new = Policy(old.theta + of_mean, old.log_std + of_std)
            surrogate, kl = comm.sum(surrogate_and_kl(batch, old, new, self._agent.forward), N) / N
            if np.isfinite(surrogate) and surrogate > 0 and kl <= config.max_kl:
                self._agent.policy = new
                return Step(norm, num_iterations, kl, surrogate, coefficient)
        return Step(norm, num_iterations)

    def _surrogate_derivatives(self, batch: Batch, policy: Policy):
        """g [P + A], and v -> F v, from the steps of all ranks."""
        N, L, A = self.config.num_trajectories, self.config.steps_per_trajectory, len(policy.log_std)
        comm, std = self._comm, np.exp(policy.log_std)
        tangent = Tangent(policy.theta, batch.observations, self._agent.sizes)
        z, advantages = batch.offsets / std, batch.advantages[..., None]
        of_mean = tangent.pulled_back(advantages * z / std / (N * L))  # [n, P]
        of_std = np.sum(advantages * (z**2 - 1), axis=1) / (N * L)  # [n, A]
        g = comm.sum(np.concatenate([of_mean, of_std], axis=1), N)
        weights = 1 / std**2 / (N * L)

        def product(v: np.ndarray) -> np.ndarray:
            of_mean = comm.sum(tangent.pulled_back(weights * tangent.image(v[:-A])), N)
            return np.append(of_mean, 2 * v[-A:])

        return g, product

    def _fit_values(self, batch: Batch, iteration: int) -> float:
        """By minibatches of all ranks' steps; the r.m.s. error on the way, in units of the returns."""
        agent, config = self._agent, self.config
        theta, adam, loss = self._value_descent.run(
            agent.value_theta,
            self._adam,
            agent.rows(batch.observations, batch.targets),
            num_epochs=config.value_epochs,
            rng=generator(self._seed, "minibatches", iteration),
            learning_rate=config.value_learning_rate,
        )
        require_finite("parameter of the value", theta)
        agent.value_theta, self._adam = theta, adam
        return float(np.sqrt(loss)) * agent.value_scale
