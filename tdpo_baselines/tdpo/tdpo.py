"""Truly Deterministic Policy Optimization: Algorithms 1, 3 and 4 of arXiv 2205.15379. Algorithm 2 is in devine.py.

Differences from the paper
  1. Branches restart from the saved state of their main trajectory; no prefix is simulated twice.
  2. Branch times and starts are stratified by default, and branch times may favour the first steps; g stays unbiased.
  3. Differences may be two-sided (antithetic). A perturbation may be held for several steps, which averages the
     gradient over neighbouring steps: less variance, little bias where the policy's Jacobian changes slowly.
  4. The gradient is that of the payoff, the per-step discounted average eta (1 - gamma) / (1 - gamma^T), so that C
     keeps its meaning whatever the horizon.
  5. Damping helps the solver but is left out of the trust region; 1 / C_2 is the maximum of the damped surrogate.
     delta_max and sigma may decay.
  6. Branches may be cut short and advantages clipped: less variance for a bias, which vanishes as the branches grow
     to the horizon.
  7. If the payoff drops too far below its best, the best parameters are restored (safeguard.py).
  8. With a single start all main trajectories are one: it is rolled out and counted once.
  9. Products use the exact Jacobian instead of nested automatic differentiation, and few rows are solved for in the
     space of their coefficients: the same iterates except for rounding.
 10. Advanced variant: the line search shortens the step of line 6; its simulated steps are counted; ties go to the
     smaller step. The exploration scale follows the even part of two-sided advantages, between a floor and a ceiling,
     and the gradient stays unbiased when the scales differ.
 11. Misprints of the paper: values discount by gamma^(i - t) (Algorithm 2); the last product of Algorithm 3 is with
     the action vector; Algorithms 3 and 4 leave out the factor 2 of the Hessian in line 4 of Algorithm 1; the
     surrogate is g'd - C/2 d'Hd.

Glossary (N trajectories, K branches each, D held steps, O observation, A action, P parameters; rows are the N K D
perturbed steps, in n groups of L rows)
  symbol           name in code                       shape            where in the paper
  theta            theta                              [P]              Algorithm 1, line 9
  g                g                                  [P]              Algorithm 1, line 3; Algorithm 2, line 10
  H v              hessian_product                    [n, P]           Algorithm 1, line 4
  E_{s ~ rho}      weights, with the factor 2 of H    [n, L, 1]        Algorithm 1, line 4
  delta theta*     Solution.x, then Step.delta_theta  [P]              Algorithm 1, lines 5 and 6
  alpha*           alpha, LineSearch.coefficient                       Algorithm 1, lines 6 and 7
  grad_theta a     Jacobian                           [n, L, A, P]     Algorithm 3, line 6
  grad_theta J     SensitivityJacobian, J = da/ds     [n, L O, A, P]   Algorithm 4, line 7
  sigma            std                                [A]              Algorithm 1, line 8
  C_2, C_1 / C_2   c2, c1_over_c2                                      Algorithm 1, lines 4 and 6
  delta_max        delta_max                                           Algorithm 1, line 6
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..common.learners.settings import no_exploration
from ..common.networks import mlp
from ..common.networks.jacobian import Jacobian, SensitivityJacobian, compile_jacobian
from ..common.networks.normalisation import RunningStats, fold_normalisation, unfold_normalisation
from ..common.optim import cg
from ..common.parallel.checks import NotFinite, require_finite
from ..common.parallel.comm import Comm
from ..common.parallel.execution import MAX_GRAM_ROWS, ROWS_PER_GROUP
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from .config import Config
from .devine import (
    Plan,
    TimeDistribution,
    Vines,
    action_gradients,
    clip_advantages,
    discounts,
    draw_plan,
    gather_by_trajectory,
    roll_vines,
)
from .exploration_scale import ExplorationScale
from .line_search import LineSearch, search_line, step_coefficients
from .safeguard import Safeguard


class Rows(NamedTuple):
    """The perturbed steps of all vines, in groups of whole trajectories; the last group is padded with zeros."""

    observations: np.ndarray  # [n, L, O]
    gradients: np.ndarray  # [n, L, A] of the payoff with respect to the action
    weights: np.ndarray  # [n, L, 1] of the row in H


def make_rows(vines: Vines, std: np.ndarray, gamma: float, alive_fraction: float, num_groups: int = 1) -> Rows:
    """Return the rows that g and H sum over.

    H is an expectation over visited states: `alive_fraction` is the visitation before the trajectories ended. The
    factor 2 makes it the Hessian of W^2.
    """
    N, K, D, A = vines.deltas.shape
    weights = (2 * vines.weights / alive_fraction / (N * K))[:, :, None] * gamma ** np.arange(D) * vines.shares

    def group(rows: np.ndarray, width: int) -> np.ndarray:
        if N % num_groups:
            rows = np.concatenate([rows, np.zeros((-N % num_groups, *rows.shape[1:]))])
        return rows.reshape(num_groups, -1, width)

    gradients = action_gradients(vines, std)
    return Rows(group(vines.observations, vines.observations.shape[-1]), group(gradients, A), group(weights, 1))


# Algorithms 3 and 4. Deterministic policies have W(pi', pi)^2 = |pi'(s) - pi(s)|^2, and L_G2 is taken as
# |d(pi' - pi)/ds|^2 (section 3.1), so both Hessians are Gauss-Newton products of a Jacobian with respect to theta.


def hessian_product(jacobian: Jacobian, weights: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return H v of each group, [n, P] (Algorithm 3: jvp lines 1 to 6, vjp 7 and 8; Algorithm 4: 1 to 8, 9 and 10)."""
    return jacobian.vjp(weights * jacobian.jvp(v))


def sensitivity_weights(weights: np.ndarray, observation_size: int, c1_over_c2: float) -> np.ndarray:
    """Return the weight of each action and of its sensitivities in H, [n, L (1 + O), 1]."""
    n, L, _ = weights.shape
    return (weights * ([1.0] + observation_size * [c1_over_c2])).reshape(n, L * (1 + observation_size), 1)


# Algorithm 1, lines 3 to 6.


def solve_shared(
    rows: Rows,
    theta: np.ndarray,
    sizes: tuple[int, ...],
    total: Callable[[np.ndarray], np.ndarray],
    *,
    c1_over_c2: float,
    **solver: Any,
) -> cg.Solution:
    """Return H^-1 g from this rank's groups of rows; `total` sums [n, P] over the groups of all ranks."""
    kind, weights = Jacobian, rows.weights
    if c1_over_c2 > 0:
        kind, weights = SensitivityJacobian, sensitivity_weights(weights, sizes[0], c1_over_c2)
    jacobian = kind(theta, rows.observations, sizes)
    g = total(Jacobian.vjp(jacobian, rows.gradients))  # of the actions alone
    return cg.solve(lambda v: total(hessian_product(jacobian, weights, v)), g, **solver)


def solve_by_gram(rows: Rows, theta: np.ndarray, sizes: tuple[int, ...], **solver: Any) -> cg.Solution:
    """Return H^-1 g from a single group of few rows, without the sensitivity term.

    With g = J^T c and H = J^T W J every vector of the iteration is J^T u. Its coefficients u stand for it, fewer
    numbers than parameters: H maps u to W G u, and the scalar product is u^T G v, with the Gram matrix G = J J^T.
    """
    jacobian = Jacobian(theta, rows.observations, sizes)
    gram, c = jacobian.gram(), rows.gradients.ravel()
    weights = np.repeat(rows.weights.ravel(), sizes[-1])
    solution = cg.solve(lambda image: weights * image, c, metric=gram.__matmul__, **solver)
    return solution._replace(x=jacobian.vjp(solution.x.reshape(rows.gradients.shape))[0])


class Step(NamedTuple):
    """A change of theta, and the surrogate's prediction of its effect."""

    delta_theta: Any = 0.0  # [P]
    gradient_norm: float = 0.0
    cg_residual: float = 0.0  # relative
    cg_iterations: int = 0
    step_w: float = 0.0  # sqrt(1/2 d'Hd): r.m.s. change of the action, with the sensitivity's part
    is_bound: bool = False  # whether the trust region limits the step
    predicted_gain: float = 0.0  # g'd - C/2 d'Hd


def scale_to_trust_region(solution: cg.Solution, c2: float, delta_max: float) -> Step:
    """Return alpha* H^-1 g: the damped surrogate's maximum, or the boundary 1/2 d'Hd = delta_max^2 (line 6)."""
    if not math.isfinite(solution.b_squared):
        raise NotFinite(f"squared norm of the gradient is {solution.b_squared}")
    half_xHx, norm = solution.curvature / 2, math.sqrt(max(solution.b_squared, 0.0))
    to_maximum = 1 / c2 if c2 > 0 else math.inf
    to_boundary = delta_max / math.sqrt(half_xHx) if half_xHx > 0 else math.inf
    alpha = min(to_maximum, to_boundary)
    alpha = alpha if math.isfinite(alpha) else 0.0
    return Step(
        delta_theta=alpha * solution.x,
        gradient_norm=norm,
        cg_residual=math.sqrt(solution.residual_squared) / norm if norm > 0 else 0.0,
        cg_iterations=solution.num_iterations,
        step_w=alpha * math.sqrt(half_xHx),
        is_bound=to_boundary < to_maximum,
        predicted_gain=alpha * solution.b_x - c2 * alpha**2 * half_xHx,
    )


exploration = no_exploration  # the policy is deterministic and explores in branches alone


class PaperLearner:
    """Algorithm 1 as in the paper, basic or advanced, one iteration at a time."""

    replay_bytes = 0

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        self.config, self.roller, self.comm, self.seed = config, roller, comm, seed
        self._nu = TimeDistribution(config, roller.horizon)
        self._payoff_scale = discounts(config.gamma, roller.horizon)[0]
        comm.warm_up(compile_jacobian)
        action_size = roller.layer_sizes[-1]
        num_rows = config.branches_per_trajectory(roller.horizon, action_size) * config.held_steps  # of a trajectory
        self.is_solved_by_gram = (
            config.c1_over_c2 == 0 and config.num_trajectories * num_rows * action_size <= MAX_GRAM_ROWS
        )
        self._num_groups = -(-config.num_trajectories // max(1, ROWS_PER_GROUP // num_rows))
        self.theta = mlp.init_parameters(roller.layer_sizes, generator(seed, "weights"), config.output_gain)
        self.safeguard = Safeguard(self.theta)
        self.observation_stats = RunningStats.of_size(roller.layer_sizes[0])
        self.exploration_scale = ExplorationScale.initial(config.exploration_std, action_size)

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Collect vines, step, and return the row for the log."""
        config = self.config.at(total_timesteps, self.roller.horizon)
        std = self._exploration_std(config)
        plan, vines = self._collect(config, std, iteration)  # line 2
        self.safeguard, has_dropped = self.safeguard.update(self.theta, self._payoff(vines), config.max_drop)
        config = config.with_values(delta_max=config.delta_max * self.safeguard.trust)
        step, search = Step(), LineSearch()
        if has_dropped:
            self.theta = self.safeguard.theta
        elif config.use_observation_normalisation and self.observation_stats.count == 0:
            self._fit_first_layer(vines)
        else:
            step = self._find_step(config, std, vines)  # lines 3 to 6
            search = self._advance(step, plan, vines, iteration)  # lines 7 to 9
        return self._row(config, std, vines, step, search, has_dropped)

    def _payoff(self, vines: Vines) -> float:
        return vines.discounted_returns.sum() / self.config.num_trajectories * self._payoff_scale

    def _exploration_std(self, config: Config) -> np.ndarray:
        """Return sigma, [A]."""
        if config.is_advanced:
            return np.exp(self.exploration_scale.log_std)
        return np.full(self.roller.layer_sizes[-1], config.exploration_std)

    def _collect(self, config: Config, std: np.ndarray, iteration: int) -> tuple[Plan, Vines]:
        """Return the plan of the whole update and the vines of all ranks (Algorithm 2)."""
        roller, comm = self.roller, self.comm
        rng = generator(self.seed, "plan", iteration)
        plan = draw_plan(config, rng, std, horizon=roller.horizon, start_size=roller.start_size)
        order = plan.balanced_order()
        mine = plan.select(order[comm.share(config.num_trajectories)])
        vines = gather_by_trajectory(roll_vines(config, roller, self._nu, self.theta, mine), order, comm)
        require_finite("return", vines.returns)
        require_finite("advantage", vines.advantages)
        return plan, vines

    def _find_step(self, config: Config, std: np.ndarray, vines: Vines) -> Step:
        """Return the step inside the trust region, computed for normalised observations if asked for."""
        theta, sizes, stats = self.theta, self.roller.layer_sizes, self.observation_stats
        vines = vines._replace(advantages=clip_advantages(vines.advantages, config.advantage_clip))
        if config.use_observation_normalisation:
            theta = unfold_normalisation(theta, sizes, stats)
            vines = vines._replace(observations=stats.normalise(vines.observations))
        step = scale_to_trust_region(self._solve(config, std, vines, theta), config.c2, config.delta_max)
        if config.use_observation_normalisation:
            folded = fold_normalisation(theta + step.delta_theta, sizes, stats)
            step = step._replace(delta_theta=folded - self.theta)
        return step

    def _solve(self, config: Config, std: np.ndarray, vines: Vines, theta: np.ndarray) -> cg.Solution:
        """Return H^-1 g: few rows on every rank by itself, many rows shared among the ranks."""
        comm, num_groups, sizes = self.comm, self._num_groups, self.roller.layer_sizes
        alive_fraction = self._nu.alive_fraction(vines.lengths)
        if self.is_solved_by_gram:
            rows = make_rows(vines, std, config.gamma, alive_fraction)
            return comm.replicated(lambda: solve_by_gram(rows, theta, sizes, **config.solver))
        rows = make_rows(vines, std, config.gamma, alive_fraction, num_groups)
        mine = Rows(*(part[comm.share(num_groups)] for part in rows))
        total = partial(comm.sum, num_items=num_groups)
        return solve_shared(mine, theta, sizes, total, c1_over_c2=config.c1_over_c2, **config.solver)

    def _advance(self, step: Step, plan: Plan, vines: Vines, iteration: int) -> LineSearch:
        """Update theta (line 9), in the advanced variant along a searched line (7), and the exploration scale (8)."""
        search, config = LineSearch(), self.config
        if config.is_advanced:
            search = self._search_line(step, iteration)
            self.exploration_scale = self.exploration_scale.adapt(
                plan.directions,
                vines.weights,
                vines.even_advantages,
                initial_std=config.exploration_std,
                learning_rate=config.exploration_learning_rate,
            )
        self.theta = self.theta + search.coefficient * step.delta_theta
        if config.use_observation_normalisation:
            self._merge_observations(vines)
        return search

    def _search_line(self, step: Step, iteration: int) -> LineSearch:
        config, roller = self.config, self.roller
        num_replicates = config.line_search_replicates if roller.start_size > 0 else 1
        starts = generator(self.seed, "line_search", iteration).random((num_replicates, roller.start_size))
        coefficients = step_coefficients(config.line_search_size, config.line_search_span)
        return search_line(roller, self.comm, coefficients, self.theta, step.delta_theta, starts)

    def _merge_observations(self, vines: Vines) -> None:
        self.observation_stats = self.observation_stats.merged(
            vines.lengths, vines.observation_sums, vines.observation_squares
        )

    def _fit_first_layer(self, vines: Vines) -> None:
        """Scale the initial network to the first observations, without a step."""
        self._merge_observations(vines)
        self.theta = fold_normalisation(self.theta, self.roller.layer_sizes, self.observation_stats)

    def _row(
        self, config: Config, std: np.ndarray, vines: Vines, step: Step, search: LineSearch, has_dropped: bool
    ) -> dict[str, Any]:
        num_mains = config.num_trajectories if self.roller.start_size > 0 else 1
        main_steps = (vines.lengths + vines.repeated_steps)[:num_mains]
        return {
            "num_timesteps": int(main_steps.sum() + vines.branch_steps.sum()) + search.num_steps,
            "num_episodes": num_mains,
            "return_mean": vines.returns.sum() / config.num_trajectories,
            "discounted_return_mean": vines.discounted_returns.sum() / config.num_trajectories,
            "payoff": self._payoff(vines),
            "gradient_norm": step.gradient_norm,
            "cg_residual": step.cg_residual,
            "cg_iterations": step.cg_iterations,
            "step_w": search.coefficient * step.step_w,
            "delta_max": config.delta_max,
            "is_trust_region_bound": int(step.is_bound),
            "predicted_gain": step.predicted_gain,
            "exploration_std": float(np.exp(np.log(std).mean())) if config.is_advanced else config.exploration_std,
            "has_dropped": int(has_dropped),
            "step_coefficient": search.coefficient,
        }

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        names = ("safeguard", "exploration_scale", "observation_stats")
        return {"policy": {"theta": self.theta}, **{name: getattr(self, name)._asdict() for name in names}}

    replicated = state

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.safeguard = Safeguard(**state["safeguard"])
        self.exploration_scale = ExplorationScale(**state["exploration_scale"])

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before, which may have had another task and other options."""
        self.theta = state["policy"]["theta"]
        self.observation_stats = RunningStats(**state["observation_stats"])
