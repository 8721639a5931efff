"""Truly Deterministic Policy Optimization: Algorithms 1 (basic variant) to 4 of arXiv 2205.15379.

Differences from the paper
  1. Branches restart from the saved state of their main trajectory; no prefix is simulated twice.
  2. Branch times and starts are stratified by default; both remain unbiased. Several branches share
     one main trajectory.
  3. Differences may be two-sided (antithetic), and a perturbation may be held for several steps.
  4. The gradient is that of the payoff, the per-step discounted average eta (1 - gamma) / (1 - gamma^T),
     so that C, delta_max and sigma keep their meaning whatever the horizon.
  5. Damping helps the solver but is left out of the trust region. delta_max and sigma may decay.
  6. Branches may be cut short and advantages clipped: less variance for a bias, which vanishes as the
     branches grow to the horizon.
  7. If the payoff drops too far below its best, the best parameters are taken up again.
  8. With a single start all main trajectories are one: it is rolled out and counted once.
  9. Misprints: values discount by gamma^(i - t) (Algorithm 2); the last product of Algorithm 3 is with
     the action vector; the surrogate is g'd - C/2 d'Hd.

Glossary (N trajectories, K branches each, D held steps, T horizon, O observation, A action, P parameters)
  theta       policy parameters                                  [P]
  times       t_k, first perturbed step                          [N, K]
  offsets     perturbation of the policy's action                [N, K, D, A]
  deltas      a' - a as executed, over the held steps            [N, K, D, A]
  advantages  A(s_t, a') = Q(s_t, a') - V(s_t)                   [N, K]
  weights     gamma^t / nu(t), scaled to mean 1                  [N, K]
  g           gradient of the payoff                             [P]
  H v         Hessian of E[W^2] + C1/C2 E[L_G2], times v         [P]
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..common import cg, mlp
from ..common.blocks import ROWS_PER_BLOCK, Blocks
from ..common.checks import require_finite, require_memory
from ..common.comm import Comm
from ..common.seeding import generator, stratified
from ..config import Settings, option


@dataclass(frozen=True)
class Config(Settings):
    num_trajectories: int = option(
        48, "main trajectories per update, over all ranks (paper: 48 or 72)", low=1, high=10**6
    )
    num_branches: int = option(4, "branches per main trajectory; ignored if branch_times=all", low=1, high=10**6)
    gamma: float = option(0.99, "discount per step; 1 averages over the horizon (paper, leg: 0.99975)", above=0, high=1)
    hidden_sizes: tuple[int, ...] = option((64, 64), "hidden layers, tanh (paper: 64,64)", low=1, high=4096)
    output_gain: float = option(0.001, "scale of the initial output weights (authors' code: 0.001)", low=0, high=10)

    branch_times: str = option(
        "geometric",
        "law nu of the branch times; all: every step and coordinate (Theorem 4.1)",
        choices=("geometric", "uniform", "all"),
    )
    is_stratified: bool = option(True, "systematic instead of independent branch times and starts")
    directions: str = option(
        "coordinate", "perturb one action coordinate per branch, or all at once", choices=("coordinate", "gaussian")
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
        "and halve the trust region, which then recovers by a tenth per update; none: never go back",
        above=0,
        high=1e12,
    )
    schedule_power: float = option(
        1.0,
        "schedules go as 1 + (steps / their steps)^this: larger is flatter at first, steeper later",
        above=0,
        high=10,
    )

    cg_iterations: int = option(10, "conjugate gradient iterations at most (authors' code: 11)", low=1, high=10**4)
    cg_tolerance: float = option(1e-5, "conjugate gradient stops at this relative residual", low=0, high=1)
    cg_damping: float = option(
        1e-2, "multiple of the identity added to H in the solver (authors' default: 0.01)", low=0, high=1e12
    )

    def __post_init__(self):
        super().__post_init__()
        alpha, beta = self.reward_scale, self.action_scale
        recipe = {"exploration_std": beta / 60, "c2": 3600 * alpha / beta**2, "delta_max": beta / 600}
        for name, value in recipe.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)


def check(config: Config, kernel, num_ranks: int) -> None:
    """Refuse what cannot run: too few trajectories, too long a window, too much memory."""
    N, D = config.num_trajectories, config.held_steps
    if N < num_ranks:
        raise ValueError(
            f"num_trajectories must be at least the number of ranks ({num_ranks}), got {N}; "
            f"pass --num_trajectories {num_ranks} or run on {N} ranks"
        )
    if D > kernel.horizon:
        raise ValueError(f"held_steps must be at most the horizon ({kernel.horizon}), got {D}")
    if config.max_branch_steps is not None and config.max_branch_steps < D:
        raise ValueError(f"max_branch_steps must be at least held_steps ({D}), got {config.max_branch_steps}")
    O, A = kernel.observation_size, kernel.action_size
    K = num_branches(config, kernel.horizon, A)
    P = mlp.num_parameters((O, *config.hidden_sizes, A))
    main = N / num_ranks * (kernel.horizon * (O + A + 2) + 2 * K * kernel.state_size)
    rows = 4 * N * K * D * (O + 2 * A + 4) + N * K * D / ROWS_PER_BLOCK * P + 20 * P
    require_memory("num_trajectories, num_branches, held_steps and hidden_sizes", 8 * (main + rows))


def scheduled(config: Config, total_timesteps: int) -> Config:
    """The config with its schedules worked out for this many steps so far."""

    def growth(steps: float | None) -> float:
        return 1 + (total_timesteps / (steps or np.inf)) ** config.schedule_power

    longest = config.max_branch_steps
    return replace(
        config,
        delta_max=config.delta_max / growth(config.delta_decay_steps),
        exploration_std=config.exploration_std / growth(config.exploration_decay_steps),
        max_branch_steps=longest and round(longest * growth(config.branch_growth_steps)),
    )


def num_branches(config: Config, horizon: int, action_size: int) -> int:
    """K: branches per trajectory, which branch_times=all makes as many as there are steps and coordinates."""
    return (horizon - config.held_steps + 1) * action_size if config.branch_times == "all" else config.num_branches


# Algorithm 2: the DeVine estimator. A plan is what it draws, vines are what it rolls out.


class Plan(NamedTuple):
    """Everything random in one update, for all trajectories."""

    starts: np.ndarray  # [N, U]
    times: np.ndarray  # [N, K], ascending
    directions: np.ndarray  # [N, K, A]
    weights: np.ndarray  # [N, K]

    def share(self, rows: slice) -> "Plan":
        return Plan(*(array[rows] for array in self))


def discounts(gamma: float, num_steps: int) -> np.ndarray:
    """gamma^t, scaled to sum to one: the visitation of time t, and the payoff's weight of reward t."""
    powers = gamma ** np.arange(num_steps)
    return powers / powers.sum()


def draw_plan(config: Config, rng: np.random.Generator, *, horizon: int, start_size: int, action_size: int) -> Plan:
    N, A = config.num_trajectories, action_size
    starts = stratified(rng, N, start_size) if config.is_stratified else rng.random((N, start_size))
    visitation = discounts(config.gamma, horizon - config.held_steps + 1)  # [legal times]
    if config.branch_times == "all":
        num_times = len(visitation)
        times = np.tile(np.repeat(np.arange(num_times), A), (N, 1))
        nu = np.full(num_times, 1 / num_times)
        coordinates = np.broadcast_to(np.tile(np.arange(A), num_times), times.shape)
    else:
        nu = visitation if config.branch_times == "geometric" else np.full(len(visitation), 1 / len(visitation))
        times = draw_times(config, rng, nu)
        ranks = np.argsort(np.argsort(times, axis=None, kind="stable")).reshape(times.shape)
        coordinates = (ranks + rng.integers(A)) % A  # in turn, so that each one's times are spread out too
    if config.directions == "gaussian":
        directions = config.exploration_std * rng.standard_normal((*times.shape, A))
    else:
        directions = config.exploration_std * np.eye(A)[coordinates]
    return Plan(starts, times, directions, visitation[times] / nu[times])


def draw_times(config: Config, rng: np.random.Generator, nu: np.ndarray) -> np.ndarray:
    """Branch times [N, K] with law nu: independent, or K equally spaced quantiles per trajectory with
    offsets that are themselves equally spaced over the trajectories."""
    N, K = config.num_trajectories, config.num_branches
    if config.is_stratified:
        trajectory_offsets = (rng.permutation(N) + rng.random()) / N
        quantiles = (np.arange(K) + trajectory_offsets[:, None]) / K
    else:
        quantiles = rng.random((N, K))
    times = np.searchsorted(np.cumsum(nu), quantiles, side="right")
    return np.sort(np.minimum(times, np.flatnonzero(nu)[-1]), axis=1)  # the sum of nu may round to below one


class Vines(NamedTuple):
    """Main trajectories and what their branches gained."""

    observations: np.ndarray  # [N, K, D, O] of the main trajectory over the held steps
    deltas: np.ndarray  # [N, K, D, A]
    advantages: np.ndarray  # [N, K]
    returns: np.ndarray  # [N] undiscounted
    discounted_returns: np.ndarray  # [N]
    lengths: np.ndarray  # [N] steps of the main trajectory
    branch_steps: np.ndarray  # [N] steps of its branches


def roll_vines(config: Config, roller, theta: np.ndarray, plan: Plan) -> Vines:
    """The plan's trajectories and branches. With a single start all trajectories are one, rolled once."""
    N, K = plan.times.shape
    D, T, A = config.held_steps, roller.horizon, plan.directions.shape[2]
    num_mains = N if roller.start_size > 0 else 1
    times = plan.times.reshape(num_mains, -1)
    order = np.argsort(times, axis=1, kind="stable")
    starts = roller.start_states(plan.starts[:num_mains])
    main = roller.rollouts(theta, starts, save_steps=np.take_along_axis(times, order, axis=1))
    states = np.empty_like(main.saved_states)
    np.put_along_axis(states, order[:, :, None], main.saved_states, axis=1)
    states = states.reshape(N * K, -1)
    n = np.broadcast_to(np.arange(num_mains)[:, None], times.shape).reshape(N, K, 1)  # main of each branch

    offsets = np.repeat(plan.directions.reshape(N * K, 1, A), D, axis=1)  # [N K, D, A]
    num_steps = np.minimum(T - plan.times, config.max_branch_steps or T)
    num_steps = np.where(plan.times < main.lengths[n[:, :, 0]], num_steps, 0)  # [N, K]
    plus = roller.rollouts(theta, states, num_steps=num_steps.ravel(), offsets=offsets, num_recorded=D)
    branch_steps = plus.lengths.reshape(N, K).sum(axis=1)
    window = plan.times[:, :, None] + np.arange(D)  # [N, K, D]
    if config.is_two_sided:
        minus = roller.rollouts(theta, states, num_steps=num_steps.ravel(), offsets=-offsets, num_recorded=D)
        branch_steps += minus.lengths.reshape(N, K).sum(axis=1)
        advantages = (plus.returns - minus.returns).reshape(N, K) / 2
        deltas = (plus.actions - minus.actions).reshape(N, K, D, A) / 2
    else:
        values = values_at(main.rewards, times, num_steps.reshape(times.shape), config.gamma)
        advantages = plus.returns.reshape(N, K) - values.reshape(N, K)
        deltas = plus.actions.reshape(N, K, D, A) - main.actions[n, window]
    first = n[:, 0, 0]
    returns = main.rewards.sum(axis=1)[first]
    lengths, discounted = main.lengths[first], main.returns[first]
    return Vines(main.observations[n, window], deltas, advantages, returns, discounted, lengths, branch_steps)


def gather_vines(vines: Vines, num_trajectories: int, comm: Comm) -> Vines:
    """Every rank's vines, in trajectory order, on every rank, in one message."""
    shapes = [array.shape[1:] for array in vines]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    packed = np.concatenate([array.reshape(-1, size) for array, size in zip(vines, sizes)], axis=1, dtype=np.float64)
    everyone = np.split(comm.gather(packed, num_trajectories), np.cumsum(sizes)[:-1], axis=1)
    return Vines(*(part.reshape(num_trajectories, *shape) for part, shape in zip(everyone, shapes)))


def values_at(rewards: np.ndarray, times: np.ndarray, num_steps: np.ndarray, gamma: float) -> np.ndarray:
    """V(s_t) = sum_{i >= t} gamma^(i - t) r_i of each trajectory at its times, over `num_steps`. [N, K]"""
    values = np.zeros((len(rewards), rewards.shape[1] + 1))
    for t in reversed(range(rewards.shape[1])):
        values[:, t] = rewards[:, t] + gamma * values[:, t + 1]
    after = np.take_along_axis(values, times + num_steps, axis=1)
    return np.take_along_axis(values, times, axis=1) - gamma**num_steps * after


def clipped(advantages: np.ndarray, limit: float | None) -> np.ndarray:
    """Advantages limited to `limit` times the median size of those not zero; None leaves them as they are."""
    sizes = np.abs(advantages[advantages != 0])
    if limit is None or len(sizes) == 0:
        return advantages
    bound = limit * np.median(sizes)
    return np.clip(advantages, -bound, bound)


def action_gradients(vines: Vines, weights: np.ndarray) -> np.ndarray:
    """Each row's share of the payoff's gradient with respect to the action, [N, K, D, A].

    Algorithm 2's estimator, averaged over branches and over held steps: chained with the policy's
    Jacobians and summed it is g. A perturbation that the limits of the action undid says nothing.
    """
    D, A = vines.deltas.shape[2:]
    squared = np.sum(vines.deltas**2, axis=(2, 3))  # [N, K]
    slopes = np.divide(vines.advantages, squared, out=np.zeros_like(squared), where=squared > 0)
    scale = A * weights * slopes / (weights.size * D)  # [N, K]
    return scale[:, :, None, None] * vines.deltas


# Algorithm 1: gradient, surrogate, step.


def policy_gradient(vines: Vines, theta: np.ndarray, weights: np.ndarray, blocks: Blocks) -> np.ndarray:
    """g [P] from the vines of all ranks."""
    observations, cotangents = blocks.cut(vines.observations), blocks.cut(action_gradients(vines, weights))
    return blocks.total(blocks.derivatives.gradient(blocks.share, theta, observations, cotangents))


def surrogate_hessian(vines: Vines, theta: np.ndarray, weights: np.ndarray, blocks: Blocks, c1_over_c2: float):
    """v -> H v = 2 E[J^T J] v + 2 C1/C2 E[J_s^T J_s] v (Algorithms 3 and 4), summed over all ranks."""
    row_weights = np.broadcast_to(2 * weights[:, :, None] / blocks.num_rows, vines.observations.shape[:3])
    derivatives = blocks.derivatives
    rows = derivatives.tensors(blocks.cut(vines.observations), blocks.cut(row_weights))
    share, theta = derivatives.tensors(blocks.share, theta)

    def product(vector: np.ndarray) -> np.ndarray:
        sums = derivatives.wasserstein_product(share, theta, vector, *rows)
        if c1_over_c2 > 0:
            sums = sums + c1_over_c2 * derivatives.sensitivity_product(share, theta, vector, *rows)
        return blocks.total(sums)

    return product


class Step(NamedTuple):
    delta_theta: np.ndarray  # [P]
    gradient_norm: float = 0.0
    cg_residual: float = 0.0  # relative
    cg_iterations: int = 0
    step_w: float = 0.0  # sqrt(1/2 d'Hd): r.m.s. change of the action, with the sensitivity's part
    is_bound: bool = False  # whether the trust region limited the step
    predicted_gain: float = 0.0  # g'd - C/2 d'Hd


def best_step(config: Config, g: np.ndarray, product) -> Step:
    """H^-1 g / C2, the surrogate's maximum, shortened to the trust region 1/2 d'Hd <= delta_max^2."""
    damping = config.cg_damping
    x, residual, num_iterations = cg.solve(
        lambda v: product(v) + damping * v, g, max_iterations=config.cg_iterations, tolerance=config.cg_tolerance
    )
    xHx = max(x @ (g - residual - damping * x), 0.0)
    norm = float(np.linalg.norm(g))
    unbound = 1 / config.c2 if config.c2 > 0 else np.inf
    to_boundary = config.delta_max / np.sqrt(xHx / 2) if xHx > 0 else np.inf
    step_size = min(unbound, to_boundary)
    step_size = step_size if np.isfinite(step_size) else 0.0
    return Step(
        delta_theta=step_size * x,
        gradient_norm=norm,
        cg_residual=float(np.linalg.norm(residual)) / norm if norm > 0 else 0.0,
        cg_iterations=num_iterations,
        step_w=step_size * np.sqrt(xHx / 2),
        is_bound=to_boundary < unbound,
        predicted_gain=step_size * (g @ x) - config.c2 / 2 * step_size**2 * xHx,
    )


class Safeguard(NamedTuple):
    """The best parameters so far, and how much of the trust region is used since the last drop from them."""

    safe_theta: np.ndarray  # [P]
    safe_payoff: float = -np.inf
    trust: float = 1.0

    def after(self, theta: np.ndarray, payoff: float, max_drop: float | None) -> tuple["Safeguard", bool]:
        """The safeguard after parameters were tried, and whether they dropped too far."""
        trust = min(1.0, 1.1 * self.trust)
        if payoff > self.safe_payoff:
            return Safeguard(theta, payoff, trust), False
        if max_drop is not None and self.safe_payoff - payoff > max_drop * abs(self.safe_payoff):
            return self._replace(trust=self.trust / 2), True
        return self._replace(trust=trust), False


class Learner:
    """Algorithm 1, one iteration at a time. `state` is all that a checkpoint must hold."""

    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        self.config = config
        self._roller = roller
        self._comm = comm
        self._seed = seed
        rows_per_trajectory = num_branches(config, roller.horizon, roller.layer_sizes[-1]) * config.held_steps
        self._blocks = Blocks(config.num_trajectories, rows_per_trajectory, roller.layer_sizes, comm)
        self.theta = mlp.initial_parameters(roller.layer_sizes, generator(seed, "weights"), config.output_gain)
        self._safeguard = Safeguard(self.theta)

    def state(self) -> dict[str, np.ndarray]:
        return {"theta": self.theta, **{k: np.asarray(v) for k, v in self._safeguard._asdict().items()}}

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.theta = state["theta"]
        self._safeguard = Safeguard(state["safe_theta"], float(state["safe_payoff"]), float(state["trust"]))

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Collect vines, step, and return the row for the log. Raises if anything is not finite."""
        config, roller, comm = scheduled(self.config, total_timesteps), self._roller, self._comm
        plan = draw_plan(
            config,
            generator(self._seed, "plan", iteration),
            horizon=roller.horizon,
            start_size=roller.start_size,
            action_size=roller.layer_sizes[-1],
        )
        mine = plan.share(comm.share(config.num_trajectories))
        vines = gather_vines(roll_vines(config, roller, self.theta, mine), config.num_trajectories, comm)
        require_finite("return", vines.returns)
        require_finite("advantage", vines.advantages)

        payoff = vines.discounted_returns.mean() * discounts(config.gamma, roller.horizon)[0]
        self._safeguard, has_dropped = self._safeguard.after(self.theta, payoff, config.max_drop)
        config = replace(config, delta_max=config.delta_max * self._safeguard.trust)
        back = Step(self._safeguard.safe_theta - self.theta)
        step = back if has_dropped else self._best_step(config, plan, vines)
        self.theta = self.theta + step.delta_theta
        num_mains = config.num_trajectories if roller.start_size > 0 else 1
        return {
            "num_timesteps": int(vines.lengths[:num_mains].sum() + vines.branch_steps.sum()),
            "num_episodes": num_mains,
            "return_mean": vines.returns.mean(),
            "discounted_return_mean": vines.discounted_returns.mean(),
            "payoff": payoff,
            "gradient_norm": step.gradient_norm,
            "cg_residual": step.cg_residual,
            "cg_iterations": step.cg_iterations,
            "step_w": step.step_w,
            "delta_max": config.delta_max,
            "is_trust_region_bound": int(step.is_bound),
            "predicted_gain": step.predicted_gain,
            "exploration_std": config.exploration_std,
            "has_dropped": int(has_dropped),
        }

    def _best_step(self, config: Config, plan: Plan, vines: Vines) -> Step:
        vines = vines._replace(advantages=clipped(vines.advantages, config.advantage_clip))
        g = policy_gradient(vines, self.theta, plan.weights, self._blocks)
        require_finite("gradient", g)
        product = surrogate_hessian(vines, self.theta, plan.weights, self._blocks, config.c1_over_c2)
        step = best_step(config, g, product)
        require_finite("parameter", self.theta + step.delta_theta)
        return step
