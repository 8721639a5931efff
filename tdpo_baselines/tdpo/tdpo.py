"""Truly Deterministic Policy Optimization: Algorithms 1, 3 and 4 of arXiv 2205.15379; 2 is in common/devine.py.

Differences from the paper
  1. Branches restart from the saved state of their main trajectory; no prefix is simulated twice.
  2. Branch times and starts are stratified by default, and branch times may favour the first steps; all remain
     unbiased. Several branches share one main trajectory.
  3. Differences may be two-sided (antithetic), and a perturbation may be held for several steps.
  4. The gradient is that of the payoff, the per-step discounted average eta (1 - gamma) / (1 - gamma^T),
     so that C, delta_max and sigma keep their meaning whatever the horizon.
  5. Damping helps the solver but is left out of the trust region. delta_max and sigma may decay.
  6. Branches may be cut short and advantages clipped: less variance for a bias, which vanishes as the
     branches grow to the horizon.
  7. If the payoff drops too far below its best, the best parameters are taken up again.
  8. With a single start all main trajectories are one: it is rolled out and counted once.
  9. Few rows: what conjugate gradient works with are not parameters but rows, see common/few_rows.py.
 10. Advanced variant: steps of the line search are counted; ties go to the smaller step; the scale of the
     exploration follows the even part of two-sided advantages, between a floor and a ceiling, and the
     gradient stays unbiased when the scales differ.
 11. Misprints: values discount by gamma^(i - t) (Algorithm 2); the last product of Algorithm 3 is with
     the action vector; the surrogate is g'd - C/2 d'Hd.

Glossary (N trajectories, K branches each, O observation, A action, P parameters)
  theta       policy parameters                                  [P]
  g           gradient of the payoff                             [P]
  H v         Hessian of E[W^2] + C1/C2 E[L_G2], times v         [P]
  std         sigma, standard deviation of the perturbations     [A]
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..common.networks import mlp
from ..common.networks.normalisation import RunningStats, folded, unfolded
from ..common.optim import cg
from ..common.parallel.checks import NotFinite, require_finite, require_memory, require_trajectories
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..harness.config import Settings, option
from . import few_rows
from .blocks import ROWS_PER_BLOCK, Blocks
from .devine import (
    Plan,
    TimeLaw,
    Vines,
    action_gradients,
    clipped,
    discounts,
    draw_plan,
    gather_vines,
    num_branches,
    roll_vines,
)
from .exploration_scale import ExplorationScale
from .line_search import LineSearch, search_line, step_coefficients
from .safeguard import Safeguard

TINY = 1e-100  # what a schedule decays to at last


@dataclass(frozen=True)
class Config(Settings):
    variant: str = option(
        "basic", "advanced: line search in the environment, adaptive exploration scale", choices=("basic", "advanced")
    )
    num_trajectories: int = option(
        48, "main trajectories per update, over all ranks (paper: 48 or 72)", low=1, high=10**6
    )
    num_branches: int = option(4, "branches per main trajectory; ignored if branch_times=all", low=1, high=10**6)
    gamma: float = option(0.99, "discount per step; 1 averages over the horizon (paper, leg: 0.99975)", above=0, high=1)
    hidden_sizes: tuple[int, ...] = option((64, 64), "hidden layers, tanh (paper: 64,64)", low=1, high=4096)
    output_gain: float = option(0.001, "scale of the initial output weights (authors' code: 0.001)", low=0, high=10)

    use_observation_normalisation: bool = option(
        False, "take derivatives of a network that sees observations scaled to mean 0 and deviation 1 (paper: no)"
    )

    branch_times: str = option(
        "geometric",
        "law nu of the branch times; all: every step and coordinate (Theorem 4.1)",
        choices=("geometric", "uniform", "all"),
    )
    early_branch_steps: int | None = option(
        None,
        "three quarters of the branch times are spread over the first so many steps, and weigh less, so that g stays "
        "unbiased: for tasks that are decided early; none: all are by the law; ignored if branch_times=all",
        low=1,
        high=10**9,
    )
    is_stratified: bool = option(True, "systematic instead of independent branch times and starts")
    directions: str = option(
        None,
        "perturb one action coordinate per branch, or all at once; none: coordinate, advanced variant: gaussian",
        choices=("coordinate", "gaussian"),
    )
    is_two_sided: bool = option(True, "antithetic pairs: each branch is rolled out with +delta and -delta")
    held_steps: int = option(
        1, "steps for which a perturbation is held (paper: 1; authors' advanced run: 10)", low=1, high=10**6
    )

    max_branch_steps: int | None = option(
        None, "branches end after this many steps, which biases and calms g; none: at the horizon", low=1, high=10**9
    )
    branch_growth_steps: float | None = option(
        None,
        "timesteps after which max_branch_steps has doubled: max_branch_steps * (1 + steps / this); none: constant",
        above=0,
        high=1e18,
    )
    advantage_clip: float | None = option(
        None,
        "advantages are limited to this many times the median size of those not zero; none: not",
        above=0,
        high=1e12,
    )

    reward_scale: float = option(
        5.0, "alpha of the paper's recipe: per-step reward between a null and an optimal policy", low=1e-12, high=1e12
    )
    action_scale: float = option(5.0, "beta of the paper's recipe: size of the actions", low=1e-9, high=1e9)
    exploration_std: float = option(None, "sigma of the perturbations; none: beta / 60", above=0, high=1e12)
    c2: float = option(
        None, "penalty on E[W^2]; 0 always steps to the trust region; none: 3600 alpha / beta^2", low=0, high=1e18
    )
    c1_over_c2: float = option(
        1.0, "penalty on the policy's sensitivity relative to c2 (paper: 1, authors' advanced run: 0)", low=0, high=1e12
    )
    delta_max: float = option(
        None, "trust region: largest r.m.s. change of the action per update; none: beta / 600", above=0, high=1e12
    )
    delta_decay_steps: float | None = option(
        None,
        "timesteps after which delta_max has halved: delta_max / (1 + steps / this); none: constant",
        above=0,
        high=1e18,
    )
    exploration_decay_steps: float | None = option(
        None,
        "timesteps after which exploration_std has halved, in the same way; none: constant",
        above=0,
        high=1e18,
    )

    max_drop: float | None = option(
        None,
        "if the payoff falls below the best so far by this multiple of the best's size, go back to the best parameters "
        "and halve the trust region, which then recovers by a tenth per update; three times in a row, and the best is "
        "forgotten as a fluke; none: never go back",
        above=0,
        high=1e12,
    )
    max_drop_after: float = option(
        0.0, "timesteps before which max_drop does not count: early payoffs are too erratic for it", low=0, high=1e18
    )
    schedule_power: float = option(
        1.0,
        "schedules go as 1 + (steps / their steps)^this: larger is flatter at first, steeper later",
        above=0,
        high=10,
    )

    line_search_size: int = option(
        9, "advanced: step coefficients tried, zero among them (authors' code: 9)", low=2, high=1000
    )
    line_search_span: float = option(
        1e-5, "advanced: smallest coefficient but zero; the largest is 1 (authors' code: 1e-5)", above=0, high=1
    )
    line_search_replicates: int = option(
        24,
        "advanced: trajectories that try each coefficient, from the same starts (authors' code: 24)",
        low=1,
        high=10**6,
    )
    exploration_learning_rate: float = option(
        1e-2, "advanced: Adam's step of log sigma per update (authors' code: 0.01)", low=0, high=1
    )

    cg_iterations: int = option(10, "conjugate gradient iterations at most (authors' code: 11)", low=1, high=10**4)
    cg_tolerance: float = option(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)
    cg_damping: float = option(
        1e-2, "multiple of the identity added to H in the solver (authors' default: 0.01)", low=0, high=1e12
    )

    def __post_init__(self):
        super().__post_init__()
        alpha, beta = self.reward_scale, self.action_scale
        directions = "gaussian" if self.variant == "advanced" else "coordinate"
        recipe = {
            "exploration_std": beta / 60,
            "c2": 3600 * alpha / beta**2,
            "delta_max": beta / 600,
            "directions": directions,
        }
        for name, value in recipe.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        how = environment.how_branches_start
        return [f"branches start {how}"] if how else []


def check(config: Config, environment, num_ranks: int) -> None:
    """Refuse what cannot run: too few trajectories, too long a window, too much memory."""
    N, D = config.num_trajectories, config.held_steps
    require_trajectories(N, num_ranks)
    if D > environment.horizon:
        raise ValueError(f"held_steps must be at most the horizon ({environment.horizon}), got {D}")
    if config.max_branch_steps is not None and config.max_branch_steps < D:
        raise ValueError(f"max_branch_steps must be at least held_steps ({D}), got {config.max_branch_steps}")
    if config.variant == "advanced" and config.directions != "gaussian":
        raise ValueError("directions must be gaussian in the advanced variant, whose exploration scale adapts to them")
    O, A = environment.observation_size, environment.action_size
    K = num_branches(config, environment.horizon, A)
    P = mlp.num_parameters((O, *config.hidden_sizes, A))
    main = N / num_ranks * (environment.horizon * (O + A + 2) + 5 * K * environment.state_size)
    rows = 4 * N * K * D * (O + 2 * A + 4) + N * K * D / ROWS_PER_BLOCK * P + 20 * P
    require_memory("num_trajectories, num_branches, held_steps and hidden_sizes", 8 * (main + rows))


def exploration(config, environment, state, rng, shape) -> None:
    """None: the policy is deterministic, and explores in branches alone."""
    return None


def time_law(config: Config, horizon: int) -> TimeLaw:
    return TimeLaw(
        config.branch_times,
        gamma=config.gamma,
        horizon=horizon,
        held_steps=config.held_steps,
        early_steps=config.early_branch_steps,
    )


def scheduled(config: Config, total_timesteps: int, horizon: int) -> Config:
    """The config with its schedules worked out for this many steps so far."""

    def growth(steps: float | None) -> float:
        with np.errstate(over="ignore"):
            return float(1 + np.float64(total_timesteps / (steps or np.inf)) ** config.schedule_power)

    longest = config.max_branch_steps
    return config.changed(
        delta_max=max(config.delta_max / growth(config.delta_decay_steps), TINY),
        exploration_std=max(config.exploration_std / growth(config.exploration_decay_steps), TINY),
        max_drop=config.max_drop if total_timesteps >= config.max_drop_after else None,
        max_branch_steps=longest and round(min(longest * growth(config.branch_growth_steps), max(longest, horizon))),
    )


# Algorithm 1: gradient, surrogate, step.


def step_of_blocks(
    config: Config, vines: Vines, theta: np.ndarray, std: np.ndarray, alive: float, blocks: Blocks
) -> "Step":
    """The step, its gradient and products summed over the rows of all ranks. `alive` as in `row_weights`."""
    g = policy_gradient(vines, theta, std, blocks)
    product = surrogate_hessian(vines, theta, alive, blocks, config.c1_over_c2)
    return best_step(config, cg.solve(product, g, **solver_options(config)))


def step_of_few_rows(
    config: Config, vines: Vines, theta: np.ndarray, std: np.ndarray, alive: float, layer_sizes: tuple[int, ...]
) -> "Step":
    """The same step without the sensitivity's part, where there are few rows."""
    observations = np.ascontiguousarray(vines.observations.reshape(-1, vines.observations.shape[-1]))
    weights, c = row_weights(vines, alive), action_gradients(vines, std).ravel()
    weights = np.repeat(weights, c.size // weights.size)
    solution = few_rows.solve(theta, observations, layer_sizes, weights, c, **solver_options(config))
    return best_step(config, solution)


def solver_options(config: Config) -> dict[str, Any]:
    return {
        "max_iterations": config.cg_iterations,
        "tolerance": config.cg_tolerance,
        "damping": config.cg_damping,
    }


def row_weights(vines: Vines, alive: float) -> np.ndarray:
    """Of a branch's rows in H, [N, K]. The expectation is over the states that were visited: `alive` is the share of
    the visitation before the trajectories ended."""
    N, K, D, _ = vines.deltas.shape
    return 2 * vines.weights / alive / (N * K * D)


def policy_gradient(vines: Vines, theta: np.ndarray, std: np.ndarray, blocks: Blocks) -> np.ndarray:
    """g [P] from the vines of all ranks."""
    observations, cotangents = blocks.cut(vines.observations), blocks.cut(action_gradients(vines, std))
    return blocks.total(blocks.derivatives.gradient(blocks.share, theta, observations, cotangents))


def surrogate_hessian(vines: Vines, theta: np.ndarray, alive: float, blocks: Blocks, c1_over_c2: float):
    """v -> H v = 2 E[J^T J] v + 2 C1/C2 E[J_s^T J_s] v (Algorithms 3 and 4), summed over all ranks."""
    derivatives = blocks.derivatives
    weights = np.broadcast_to(row_weights(vines, alive)[:, :, None, None], vines.deltas.shape)
    rows = derivatives.tensors(blocks.cut(vines.observations), blocks.cut(weights))
    share, theta = derivatives.tensors(blocks.share, theta)

    def product(vector: np.ndarray) -> np.ndarray:
        sums = derivatives.wasserstein_product(share, theta, vector, *rows)
        if c1_over_c2 > 0:
            sums = sums + c1_over_c2 * derivatives.sensitivity_product(share, theta, vector, *rows)
        return blocks.total(sums)

    return product


class Step(NamedTuple):
    delta_theta: Any = 0.0  # [P]
    gradient_norm: float = 0.0
    cg_residual: float = 0.0  # relative
    cg_iterations: int = 0
    step_w: float = 0.0  # sqrt(1/2 d'Hd): r.m.s. change of the action, with the sensitivity's part
    is_bound: bool = False  # whether the trust region limited the step
    predicted_gain: float = 0.0  # g'd - C/2 d'Hd


def best_step(config: Config, solution: cg.Solution) -> Step:
    """H^-1 g / C2, the surrogate's maximum, shortened to the trust region 1/2 d'Hd <= delta_max^2."""
    if not math.isfinite(solution.b_squared):
        raise NotFinite(f"squared norm of the gradient is {solution.b_squared}")
    half_xHx, norm = solution.curvature / 2, math.sqrt(max(solution.b_squared, 0.0))
    unbound = 1 / config.c2 if config.c2 > 0 else math.inf
    to_boundary = config.delta_max / math.sqrt(half_xHx) if half_xHx > 0 else math.inf
    step_size = min(unbound, to_boundary)
    step_size = step_size if math.isfinite(step_size) else 0.0
    return Step(
        delta_theta=step_size * solution.x,
        gradient_norm=norm,
        cg_residual=math.sqrt(solution.residual_squared) / norm if norm > 0 else 0.0,
        cg_iterations=solution.num_iterations,
        step_w=step_size * math.sqrt(half_xHx),
        is_bound=to_boundary < unbound,
        predicted_gain=step_size * solution.b_x - config.c2 * step_size**2 * half_xHx,
    )


class Learner:
    """Algorithm 1, one iteration at a time. `state` is all that a checkpoint must hold."""

    replay_bytes = 0

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        self.config = config
        self._roller = roller
        self._comm = comm
        self._seed = seed
        self._law = time_law(config, roller.horizon)
        self._payoff_scale = discounts(config.gamma, roller.horizon)[0]
        action_size = roller.layer_sizes[-1]
        rows_per_trajectory = num_branches(config, roller.horizon, action_size) * config.held_steps
        num_rows = config.num_trajectories * rows_per_trajectory
        has_few_rows = config.c1_over_c2 == 0 and num_rows * action_size <= few_rows.MAX_FEW_ROWS
        if has_few_rows:
            comm.first_on_each_host(few_rows.prepare, is_needed=comm.is_computing_alike or comm.rank == 0)
        self._blocks = (
            None if has_few_rows else Blocks(config.num_trajectories, rows_per_trajectory, roller.layer_sizes, comm)
        )
        self.theta = mlp.initial_parameters(roller.layer_sizes, generator(seed, "weights"), config.output_gain)
        self._safeguard = Safeguard(self.theta)
        self._stats = RunningStats.none(roller.layer_sizes[0])
        self._scale = ExplorationScale.initial(config.exploration_std, action_size)

    def state(self) -> dict[str, np.ndarray]:
        parts = {**self._safeguard._asdict(), **self._scale._asdict(), **self._stats._asdict()}
        return {"theta": self.theta, **{name: np.asarray(value) for name, value in parts.items()}}

    replicated = state

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.theta = state["theta"]
        self._safeguard = Safeguard(**{name: state[name] for name in Safeguard._fields})
        self._scale = ExplorationScale(**{name: state[name] for name in ExplorationScale._fields})
        self._stats = RunningStats(**{name: state[name] for name in RunningStats._fields})

    def begin_from(self, state: dict[str, np.ndarray]) -> None:
        """Take over the policy of the stage before, which may have had another task and other options."""
        self.theta = state["theta"]
        self._stats = RunningStats(**{name: state[name] for name in RunningStats._fields})

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect vines, step, and return the row for the log. Raises if anything is not finite."""
        config, roller = scheduled(self.config, total_timesteps, self._roller.horizon), self._roller
        is_advanced = config.variant == "advanced"
        std = np.exp(self._scale.log_std) if is_advanced else np.full(roller.layer_sizes[-1], config.exploration_std)
        plan, vines = self._collect(config, std, iteration)
        discounted_return = vines.discounted_returns.sum() / self.config.num_trajectories
        payoff = discounted_return * self._payoff_scale
        self._safeguard, has_dropped = self._safeguard.after(self.theta, payoff, config.max_drop)
        config = config.changed(delta_max=config.delta_max * self._safeguard.trust)
        step, search = Step(), LineSearch(1.0, 0)
        if has_dropped:
            self.theta = self._safeguard.safe_theta
        elif config.use_observation_normalisation and self._stats.observation_count == 0:
            self._normalise_first_layer(vines)
        else:
            step = self._best_step(config, std, vines)
            if is_advanced:
                search = self._search_line(step, iteration)
                self._adapt_exploration(plan, vines)
            self.theta = self.theta + search.coefficient * step.delta_theta
            if config.use_observation_normalisation:
                self._merge_observations(vines)
        num_mains = config.num_trajectories if roller.start_size > 0 else 1
        num_main_steps = (vines.lengths + vines.num_again)[:num_mains]
        return {
            "num_timesteps": int(num_main_steps.sum() + vines.num_steps.sum()) + search.num_steps,
            "num_episodes": num_mains,
            "return_mean": vines.returns.sum() / config.num_trajectories,
            "discounted_return_mean": discounted_return,
            "payoff": payoff,
            "gradient_norm": step.gradient_norm,
            "cg_residual": step.cg_residual,
            "cg_iterations": step.cg_iterations,
            "step_w": search.coefficient * step.step_w,
            "delta_max": config.delta_max,
            "is_trust_region_bound": int(step.is_bound),
            "predicted_gain": step.predicted_gain,
            "exploration_std": float(np.exp(np.log(std).mean())) if is_advanced else config.exploration_std,
            "has_dropped": int(has_dropped),
            "step_coefficient": search.coefficient,
        }

    def _collect(self, config: Config, std: np.ndarray, iteration: int) -> tuple[Plan, Vines]:
        """The whole update's plan, and what all ranks rolled out of it."""
        roller, comm, N = self._roller, self._comm, config.num_trajectories
        rng = generator(self._seed, "plan", iteration)
        plan = draw_plan(config, rng, std, horizon=roller.horizon, start_size=roller.start_size)
        order = plan.balanced_order()
        mine = roll_vines(config, roller, self._law, self.theta, plan.share(order[comm.share(N)]))
        vines = gather_vines(mine, order, comm)
        require_finite("return", vines.returns)
        require_finite("advantage", vines.advantages)
        return plan, vines

    def _best_step(self, config: Config, std: np.ndarray, vines: Vines) -> Step:
        """The step, computed for normalised observations if asked for, as a change of theta."""
        theta, sizes, stats = self.theta, self._roller.layer_sizes, self._stats
        vines = vines._replace(advantages=clipped(vines.advantages, config.advantage_clip))
        if config.use_observation_normalisation:
            theta = unfolded(theta, sizes, stats)
            vines = vines._replace(observations=(vines.observations - stats.mean) / stats.std)
        alive = self._law.alive(vines.lengths)
        if self._blocks is None:
            step = self._comm.alike(lambda: step_of_few_rows(config, vines, theta, std, alive, sizes))
        else:
            step = step_of_blocks(config, vines, theta, std, alive, self._blocks)
        require_finite("parameter", theta + step.delta_theta)
        if config.use_observation_normalisation:
            step = step._replace(delta_theta=folded(theta + step.delta_theta, sizes, stats) - self.theta)
        return step

    def _merge_observations(self, vines: Vines) -> None:
        self._stats = self._stats.merged(vines.lengths, vines.observation_sums, vines.observation_squares)

    def _normalise_first_layer(self, vines: Vines) -> None:
        """The first observations only tell their scale: the initial network is made for it."""
        self._merge_observations(vines)
        self.theta = folded(self.theta, self._roller.layer_sizes, self._stats)

    def _search_line(self, step: Step, iteration: int) -> LineSearch:
        config, roller = self.config, self._roller
        num_replicates = config.line_search_replicates if roller.start_size > 0 else 1
        starts = generator(self._seed, "line_search", iteration).random((num_replicates, roller.start_size))
        coefficients = step_coefficients(config.line_search_size, config.line_search_span)
        return search_line(roller, self._comm, coefficients, self.theta, step.delta_theta, starts)

    def _adapt_exploration(self, plan: Plan, vines: Vines) -> None:
        config = self.config
        self._scale = self._scale.adapted(
            plan.directions,
            vines,
            initial_std=config.exploration_std,
            learning_rate=config.exploration_learning_rate,
        )
