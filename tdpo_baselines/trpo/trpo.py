"""Trust Region Policy Optimization (Schulman et al. 2015, arXiv 1502.05477), single path, with GAE (arXiv 1506.02438).

Differences from the paper
  1. Advantages by GAE from a value function that Adam fits to their returns, as in openai/baselines.
  2. Advantages are standardised over the steps of all ranks.
  3. A mere time limit is not an end: the value of the state after it is bootstrapped (`time_limit`).
  4. The environment may clip an action; probabilities are those of the action before that.
  5. With normalised observations the first update only measures their scale.
  6. Damping is added to F, in the solver and in the length of the step, as in openai/baselines. Unlike there, products
     with F are over all steps, not a fifth of them, and a step is accepted up to max_kl, not 1.5 times that.
  7. The policy's entropy may be rewarded, as in openai/baselines.

Collecting, advantages, the value function and normalisation are in `ActorCritic` of common/learners/actor_critic.py.

Glossary (N streams, n of them on this rank, L steps of each per update, O observation, A action, P parameters)
  symbol      name in code      shape      meaning, where
  theta       theta             [P]        parameters of the mean action
  sigma       exp(log_std)      [A]        standard deviation of the action
  A           advantages        [n, L]     eq. 14; arXiv 1506.02438, eq. 16
  L(theta)    surrogate                    E[ratio x advantage], eq. 14
  D_KL        kl                           mean KL(old, new), eq. 14
  delta       max_kl                       trust region, eq. 14
  g           g                 [P + A]    gradient of the surrogate, appendix C
  A, here F   fisher_product    [P + A]    Fisher matrix J^T M J times a vector, appendix C.1
  s           x                 [P + A]    search direction F^-1 g, appendix C
  beta                                     sqrt(2 delta / s^T F s), appendix C
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from ..common.learners.actor_critic import ActorCritic, Batch, Policy, surrogate_and_kl
from ..common.learners.settings import OnPolicySettings, check_on_policy, gaussian_exploration
from ..common.networks import mlp
from ..common.networks.batch_mlp import differentiate_parameters, run_forward
from ..common.networks.jacobian import Jacobian, compile_jacobian
from ..common.optim import cg
from ..common.optim.minibatch import MinibatchAdam
from ..common.parallel.checks import require_finite, require_memory
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..options.config import baselines, ours, paper

Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Config(OnPolicySettings):
    """Options of TRPO."""

    lam: float = paper(0.98, "lambda of GAE (openai/baselines trpo_mpi)", low=0, high=1)
    max_kl: float = paper(0.01, "trust region: mean KL divergence per update (openai/baselines)", above=0, high=10)
    cg_iterations: int = paper(10, "conjugate gradient iterations at most (openai/baselines)", low=1, high=10**4)
    line_search_tries: int = paper(10, "steps tried, each a fraction of the one before (all)", low=1, high=1000)
    line_search_shrink: float = paper(0.8, "that fraction (sb3-contrib)", above=0, high=0.99)

    cg_damping: float = baselines(0.1, "multiple of the identity added to F (openai/baselines)", low=0, high=1e12)
    value_learning_rate: float = baselines(1e-3, "Adam's step for the value function (all but SB2)", above=0, high=1)
    value_epochs: int = baselines(10, "passes over the steps of an update (sb3-contrib)", low=1, high=1000)
    value_minibatch_size: int = baselines(
        None,
        "steps per gradient of the value, over all ranks; none: 128 (sb3-contrib), or by num_value_minibatches",
        low=1,
        high=10**9,
    )
    num_value_minibatches: int = baselines(
        None, "gradients of the value per pass, instead of value_minibatch_size", low=1, high=10**9
    )
    entropy_coefficient: float = baselines(0.0, "weight of the policy's entropy (all)", low=0, high=1e6)

    cg_tolerance: float = ours(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)

    def __post_init__(self):
        super().__post_init__()
        self.fill_in_minibatch("value_minibatch_size", "num_value_minibatches", 128)

    @property
    def steps_per_value_gradient(self) -> int:
        """Rows of a minibatch of the value function."""
        return self.value_minibatch_size or self.num_steps // self.num_value_minibatches


def surrogate_gradient(batch: Batch, policy: Policy, jacobian: Jacobian, *, num_steps: int) -> np.ndarray:
    """Return each stream's part of g, the gradient of eq. 14's objective at the old policy. [n, P + A]"""
    std = np.exp(policy.log_std)
    z, advantages = batch.offsets / std, batch.advantages[..., None]
    of_theta = jacobian.vjp(advantages * z / std / num_steps)  # [n, P]
    of_log_std = np.sum(advantages * (z**2 - 1), axis=1) / num_steps  # [n, A]
    return np.concatenate([of_theta, of_log_std], axis=1)


def fisher_product(v: np.ndarray, policy: Policy, jacobian: Jacobian, *, num_steps: int, total) -> np.ndarray:
    """Return F v = J^T M J v (appendix C.1), M = 1 / sigma^2 for the mean and 2 for log sigma. [P + A]

    `total` sums the streams of all ranks: [n, P] -> [P].
    """
    A = len(policy.log_std)
    weights = 1 / np.exp(policy.log_std) ** 2 / num_steps
    of_theta = total(jacobian.vjp(weights * jacobian.jvp(v[:-A])))
    return np.append(of_theta, 2 * v[-A:])


def natural_step(product: Product, g: np.ndarray, config: Config) -> tuple[np.ndarray, int]:
    """Return beta x with F x = g and beta = sqrt(2 delta / x^T F x) (appendix C), and the iterations that x took.

    To second order the step [P + A] reaches a mean KL divergence of delta. It is zero if g is.
    """
    solution = cg.solve(
        product, g, max_iterations=config.cg_iterations, tolerance=config.cg_tolerance, damping=config.cg_damping
    )
    x = solution.x
    xFx = solution.curvature + config.cg_damping * x @ x
    return (np.sqrt(2 * config.max_kl / xFx) * x if xFx > 0 else np.zeros_like(x)), solution.num_iterations


def line_search(old: Policy, change: np.ndarray, evaluate, config: Config) -> tuple[Policy, float, float, float] | None:
    """Shrink a step until it improves the surrogate within the trust region (appendix C); None if no step does.

    `evaluate(policy)` returns the surrogate and the mean KL divergence over all ranks. Return the new policy, the
    fraction of the step, the surrogate and the divergence.
    """
    for tried in range(config.line_search_tries if change.any() else 0):
        coefficient = config.line_search_shrink**tried
        of_theta, of_log_std = np.split(coefficient * change, [len(old.theta)])
        new = Policy(old.theta + of_theta, old.log_std + of_log_std)
        surrogate, kl = evaluate(new)
        if np.isfinite(surrogate) and surrogate > 0 and kl <= config.max_kl:
            return new, coefficient, surrogate, kl
    return None


@njit(error_model="numpy")
def differentiate_value(theta, rows, decay, sizes, gradient):
    """Write the gradient of the mean squared error of the values over rows [R, O + 1], and return this mean.

    A row is an observation and its target.
    """
    R, observations = rows.shape[0], rows[:, :-1].copy()
    units = run_forward(theta, sizes, observations)
    error = units[-R:] - rows[:, -1]
    differentiate_parameters(
        theta, sizes, observations, units, (2 * error / R).reshape(R, 1).astype(np.float32), gradient
    )
    return np.mean(error * error)


def check(config: Config, environment, num_ranks: int) -> None:
    """Raise ValueError if the options cannot run."""
    names = ("value_minibatch_size", "num_value_minibatches")
    check_on_policy(config, environment, num_ranks, **{name: getattr(config, name) for name in names})
    N, n, A = config.num_trajectories, -(-config.num_trajectories // num_ranks), environment.action_size
    num_parameters = mlp.num_parameters((environment.observation_size, *config.hidden_sizes, A))
    factors = 4 * n * config.steps_per_trajectory * (2 * A + 3) * sum(config.hidden_sizes)  # of Jacobian
    require_memory(
        "num_trajectories, steps_per_trajectory and hidden_sizes", factors + (20 * n + 8 * N) * num_parameters
    )


exploration = gaussian_exploration


class PolicyStep(NamedTuple):
    """Columns of the log about the policy's step; zeros if there was none."""

    gradient_norm: float = 0.0
    cg_iterations: int = 0
    kl: float = 0.0
    surrogate_gain: float = 0.0
    step_coefficient: float = 0.0


class Learner(ActorCritic):
    """TRPO, one update at a time."""

    config: Config

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        comm.warm_up(partial(compile_jacobian, np.float32))
        self._total = partial(comm.sum, num_items=config.num_trajectories)
        self._value_adam = MinibatchAdam(
            differentiate_value,
            np.array(self.value_sizes),
            config.steps_per_value_gradient,
            comm,
            max_norm=None,
            epsilon=1e-8,
        )

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect segments, step, fit the values, and return the row for the log."""
        segments = self.collect(iteration)
        batch = self.prepare(segments)
        step = PolicyStep() if batch is None else self._improve_policy(batch)
        value_error = 0.0 if batch is None else self._fit_values(batch, iteration)
        action_std = float(np.exp(self.log_std).mean())
        return self.streams.row() | step._asdict() | {"action_std": action_std, "value_error": value_error}

    def _improve_policy(self, batch: Batch) -> PolicyStep:
        """Take a natural gradient step, shortened by the line search (appendix C, steps 1 and 2)."""
        g, product = self.derivatives(batch)
        require_finite("gradient", g)
        gradient_norm = float(np.sqrt(g @ g))
        change, cg_iterations = natural_step(product, g, self.config)
        accepted = line_search(self.policy, change, partial(self.evaluate, batch), self.config)
        if accepted is None:
            return PolicyStep(gradient_norm, cg_iterations)
        self.policy, coefficient, surrogate, kl = accepted
        return PolicyStep(gradient_norm, cg_iterations, kl, surrogate, coefficient)

    def derivatives(self, batch: Batch) -> tuple[np.ndarray, Product]:
        """Return g [P + A] and v -> F v at the present policy, over the steps of all ranks."""
        policy, num_steps = self.policy, self.config.num_steps
        jacobian = Jacobian(policy.theta, batch.observations, self.sizes, dtype=np.float32)
        g = self._total(surrogate_gradient(batch, policy, jacobian, num_steps=num_steps))
        g[len(policy.theta) :] += self.config.entropy_coefficient  # the entropy is the sum of log sigma, and a constant
        return g, lambda v: fisher_product(v, policy, jacobian, num_steps=num_steps, total=self._total)

    def evaluate(self, batch: Batch, new: Policy) -> tuple[float, float]:
        """Return the surrogate, with the gain in entropy, and the mean KL divergence, over the steps of all ranks."""
        parts = surrogate_and_kl(batch, self.policy, new, self.forward)
        surrogate, kl = self._total(parts) / self.config.num_trajectories
        return surrogate + self.config.entropy_coefficient * np.sum(new.log_std - self.log_std), kl

    def _fit_values(self, batch: Batch, iteration: int) -> float:
        """Fit the values to their targets; return the r.m.s. error on the way, in units of the rewards."""
        config = self.config
        theta, adam, loss = self._value_adam.minimise(
            self.value_theta,
            self.adam,
            self.gather_rows(batch.observations, batch.targets),
            num_epochs=config.value_epochs,
            rng=generator(self._seed, "minibatches", iteration),
            learning_rate=config.value_learning_rate,
        )
        require_finite("parameter of the value", theta)
        self.value_theta, self.adam = theta, adam
        return float(np.sqrt(loss)) * self.value_scale
