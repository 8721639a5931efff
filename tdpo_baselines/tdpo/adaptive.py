"""The adaptive variant, TDPO's default: Algorithm 1 of arXiv 2205.15379 with scales that it finds by itself.

Differences from the basic variant
  1. Actions are in units of half their range, and the policy is a network plus a linear function.
  2. A perturbation is held for 1 step up to a fraction of the horizon, log-uniformly. Short ones see every step's
     gradient; long ones see past the ripples of the payoff.
  3. The executed action is perturbed, inside its limits. A gradient that points out of a limit counts as zero.
  4. Rows of earlier updates count too, less with their age; their Jacobians are those of the present policy.
  5. Damping is relative to the trace of H.
  6. No scale is fixed. Every update draws the size of its perturbations and the length of its branches log-uniformly,
     tries steps of several radii from the same fresh starts (line 7), and keeps the best of them, or none.
  7. A task that is paid at its end is full of local optima, which a search cannot leave. There, branches go to the end,
     and one step is judged. Its predicted gain is at most a fraction of the mean size of a reward. The radius of the
     trust region grows if the payoff rose, and shrinks if it fell. A step that lost more than tolerated is taken back;
     the tolerance vanishes over the updates. When the radius has collapsed, a rival begins (rivals.py).

Glossary, beside those of tdpo.py and devine.py (R rows of a branch, G updates remembered)
  name                shape                meaning
  scales                                   size and duration of an update's perturbations, length of its branches
  held_steps          [N, K]               steps for which a perturbation is held
  deltas              [N, K, D, A]         change of the executed action, D = scales.longest_hold
  excess              [N, K, D, A]         policy's output minus the action within its limits
  radius                                   r.m.s. change of the action per update at most, in half ranges
"""

from typing import Any, NamedTuple

import numpy as np

from ..common.networks import mlp
from ..common.networks.jacobian import Jacobian, compile_jacobian
from ..common.networks.normalisation import RunningStats, fold_normalisation, unfold_normalisation
from ..common.optim import cg
from ..common.parallel.checks import require_finite
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from .config import Config
from .devine import (
    Mains,
    Plan,
    TimeDistribution,
    clip_advantages,
    discounts,
    draw_plan,
    gather_by_trajectory,
    roll_branches,
    roll_mains,
)
from .line_search import LineSearch, search_line
from .tdpo import Rows, Step, hessian_product, scale_to_trust_region

HELD_FRACTION = 0.04  # of the horizon: longest perturbation
ROWS_PER_BRANCH = 4  # at most, spread over the perturbed steps
ADVANTAGE_CLIP = 5.0  # multiple of the median size
NUM_REMEMBERED = 8  # updates
DAMPING = 0.005  # relative to the trace of H

# The search.
SEARCH_MEMORY = 0.3  # weight per update of age: the directions of successive updates should differ
SEARCH_RADII, NUM_RADII = (1e-4, 0.5), 6  # in half ranges of the action, and how many are tried
SEARCH_PERTURBATIONS = (0.003, 0.1)  # in half ranges
SEARCH_BRANCHES = (1 / 160, 1 / 8)  # of the horizon
SEARCH_BRANCH_STEPS = 100  # upper limit of the branches if that is more
HELD_PART = 1 / 3  # of a branch: longest perturbation

# The judgement, if the task is paid at its end.
MEMORY = 0.7  # weight per update of age
INITIAL_RADIUS, RADII = 0.1, (1e-4, 0.5)  # in half ranges of the action
GROW, SHRINK, SHRINK_BACK = 1.1, 0.95, 0.9  # of the radius: payoff rose, fell, fell so far that the step is taken back
PERTURBATION, PERTURBATIONS = 10.0, (0.05, 1.0)  # standard perturbation relative to the radius, and its range
GAIN_CAP = 0.1  # largest predicted gain, and largest loss tolerated at first, relative to the mean size of a reward
TOLERANT_UPDATES = 50  # the tolerance has halved after these


class Scales(NamedTuple):
    """Size and duration of the perturbations of an update, and the length of its branches."""

    perturbation: float  # in half ranges of the action
    longest_hold: int
    longest_branch: int


class Sample(NamedTuple):
    """Results of the branches of one update, for trajectories [N] with K branches of R rows."""

    observations: np.ndarray  # [N, K, R, O]
    deltas: np.ndarray  # [N, K, R, A] half the difference of the perturbations within the limits, in half ranges
    is_outward: np.ndarray  # [N, K, R, A] 1 or -1 where the policy exceeds the upper or lower limit, else 0
    row_weights: np.ndarray  # [N, K, R] of a row in its branch; the rows of a branch sum to 1
    advantages: np.ndarray  # [N, K]
    squares: np.ndarray  # [N, K] squared deltas, summed over the perturbed steps and coordinates
    weights: np.ndarray  # [N, K] visitation over nu
    returns: np.ndarray  # [N]
    discounted_returns: np.ndarray  # [N]
    reward_sizes: np.ndarray  # [N] discounted mean of |r|
    lengths: np.ndarray  # [N]
    observation_sums: np.ndarray  # [N, O]
    observation_squares: np.ndarray  # [N, O]
    branch_steps: np.ndarray  # [N] simulated for the branches


class Trial(NamedTuple):
    """A step to be judged from the next starts, the radius and the updates so far; names are names in checkpoints."""

    theta: np.ndarray  # [P] after the step
    tolerated_loss: Any = -1.0  # of the payoff; negative before the first step
    radius: Any = INITIAL_RADIUS
    num_updates: Any = 0

    def judge(self, gain: float) -> tuple["Trial", bool]:
        """Return the trial with the radius after a step gained this much, and whether the step is kept."""
        low, high = RADII
        if gain > 0:
            return self._replace(radius=min(GROW * self.radius, high)), True
        is_kept = bool(gain >= -self.tolerated_loss)
        return self._replace(radius=max((SHRINK if is_kept else SHRINK_BACK) * self.radius, low)), is_kept


def log_uniform(quantiles: Any, limits: Any) -> Any:
    """Return the values at quantiles of the log-uniform distribution between a low and a high limit."""
    low, high = limits
    return low * (high / low) ** quantiles


def draw_search_scales(rng: np.random.Generator, horizon: int, longest_branch: int | None = None) -> Scales:
    """Draw the scales of an update of the search; the length of the branches may be given."""
    shortest, longest = (max(1.0, fraction * horizon) for fraction in SEARCH_BRANCHES)
    longest = max(longest, min(SEARCH_BRANCH_STEPS, horizon))
    perturbation, branch = log_uniform(rng.random(2), np.array([SEARCH_PERTURBATIONS, (shortest, longest)]).T)
    branch = longest_branch or branch
    hold = min(HELD_FRACTION * horizon, HELD_PART * branch)
    return Scales(perturbation, max(1, round(hold)), round(branch))


def draw_held_steps(rng: np.random.Generator, shape: tuple[int, int], longest: int) -> np.ndarray:
    """Draw the number of steps [N, K] of each perturbation: stratified, log-uniform."""
    num = shape[0] * shape[1]
    quantiles = rng.permutation((np.arange(num) + rng.random()) / num).reshape(shape)
    return np.maximum(1, np.round(log_uniform(quantiles, (1, longest)))).astype(np.int64)


def spread_rows(held_steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R perturbed steps of each branch, evenly spread, and their weights [N, K, R], zero for repetitions."""
    num_rows = np.minimum(held_steps, ROWS_PER_BRANCH)[..., None]  # [N, K, 1]
    rows = np.arange(ROWS_PER_BRANCH)
    steps = ((rows + 0.5) / num_rows * held_steps[..., None]).astype(np.int64)
    return np.minimum(steps, held_steps[..., None] - 1), (rows < num_rows) / num_rows


def action_gradients(sample: Sample) -> np.ndarray:
    """Return the payoff's gradient with respect to the actions of all rows, [N, K, R, A] (Algorithm 2, line 10)."""
    advantages = clip_advantages(sample.advantages, ADVANTAGE_CLIP)
    slopes = np.divide(advantages, sample.squares, out=np.zeros_like(advantages), where=sample.squares > 0)
    A = sample.deltas.shape[-1]
    scale = A * sample.weights * slopes / slopes.size  # [N, K]
    gradients = (scale[..., None] * sample.row_weights)[..., None] * sample.deltas
    return np.where(sample.is_outward * gradients > 0, 0.0, gradients)


def drop_repetitions(memory: Rows) -> Rows:
    """Return the memory without rows of weight zero, as far as every update has some to spare."""
    num_rows = np.count_nonzero(memory.weights, axis=1).max()
    order = np.argsort(memory.weights == 0, axis=1, kind="stable")[:, :num_rows]
    return Rows(*(np.take_along_axis(part, order, axis=1) for part in memory))


class AdaptiveLearner:
    """The adaptive variant, one iteration at a time."""

    replay_bytes = 0

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        self.config, self.roller, self.comm, self.seed = config, roller, comm, seed
        self._is_searching = not roller.is_horizon_terminal
        self._nu = TimeDistribution(config, roller.horizon)
        self._discounts = discounts(config.gamma, roller.horizon)
        self._scale = np.array(roller.style.scale)  # [A] half range
        centre = np.array(roller.style.centre)
        self._low = np.where(roller.is_action_limited, centre - self._scale, -np.inf)
        self._high = np.where(roller.is_action_limited, centre + self._scale, np.inf)
        comm.warm_up(compile_jacobian)
        self._forward = comm.warm_up(lambda: mlp.Forward(roller.layer_sizes, roller.style))
        O, A = roller.layer_sizes[0], roller.layer_sizes[-1]
        self.theta = mlp.init_parameters(
            roller.layer_sizes, generator(seed, "weights"), config.output_gain, roller.style
        )
        self.trial = self._first_trial()
        self.observation_stats = RunningStats.of_size(O)
        num_rows = config.num_trajectories * config.num_branches * ROWS_PER_BRANCH
        shape = (NUM_REMEMBERED, num_rows)
        self.memory = Rows(np.zeros((*shape, O)), np.zeros((*shape, A)), np.zeros((*shape, 1)))  # the newest first

    def _first_trial(self) -> Trial:
        return Trial(self.theta, radius=0.0 if self._is_searching else INITIAL_RADIUS)

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Search or judge the last step, collect branches of the policy that is kept, step, and return the row."""
        plan, held_steps, scales = self._draw(generator(self.seed, "plan", iteration))
        mine = self.comm.share(self.config.num_trajectories)
        search = self._search_line(plan.starts, iteration) if self._is_searching else LineSearch()
        mains, main_steps, gain = self._choose_policy(plan.select(mine))
        sample = self._collect(mains, plan.directions[mine], held_steps[mine], scales)
        is_measured = self.observation_stats.count > 0  # the first update changes the policy that it rolled out
        self._remember(sample)
        reward_size = sample.reward_sizes.mean()
        step = self._find_step(reward_size)
        age = self.trial.num_updates
        tolerated = GAIN_CAP * reward_size / (1 + (age / TOLERANT_UPDATES) ** 2)
        self.trial = Trial(self.theta + step.delta_theta, tolerated, self.trial.radius, age + 1)
        num_steps, gain = main_steps + search.num_steps, gain + search.gain * self._discounts[0]
        return {**self._row(sample, step, num_steps, gain), "is_after_update": int(is_measured)}

    def _draw(self, rng: np.random.Generator) -> tuple[Plan, np.ndarray, Scales]:
        """Draw starts, branch times, directions in units of actions, and how long each is held, of what scales."""
        roller, config = self.roller, self.config
        longest = config.max_branch_steps
        scales = draw_search_scales(rng, roller.horizon, longest) if self._is_searching else self._adapt_scales(longest)
        std = scales.perturbation * self._scale
        plan = draw_plan(config, rng, std, horizon=roller.horizon, start_size=roller.start_size)
        return plan, draw_held_steps(rng, plan.quantiles.shape, scales.longest_hold), scales

    def _adapt_scales(self, longest_branch: int | None) -> Scales:
        """Return scales that follow the radius of the trust region."""
        horizon = self.roller.horizon
        perturbation = np.clip(PERTURBATION * self.trial.radius, *PERTURBATIONS)
        return Scales(perturbation, max(1, round(HELD_FRACTION * horizon)), longest_branch or horizon)

    def _search_line(self, starts: np.ndarray, iteration: int) -> LineSearch:
        """Try the last step at several radii, zero among them, from the same starts; take the best."""
        if self.trial.tolerated_loss < 0:
            return LineSearch()
        offset = generator(self.seed, "line_search", iteration).random()
        radii = np.append(0.0, log_uniform((np.arange(NUM_RADII) + offset) / NUM_RADII, SEARCH_RADII))
        step = self.trial.theta - self.theta  # of radius 1
        starts = starts if self.roller.start_size > 0 else starts[:1]
        search = search_line(self.roller, self.comm, radii, self.theta, step, starts)
        self.theta = self.theta + search.coefficient * step
        self.trial = Trial(self.theta, -1.0, search.coefficient, self.trial.num_updates)
        return search

    def _choose_policy(self, plan: Plan) -> tuple[Mains, int, float]:
        """Roll out the policies before and after a step that is to be judged, and keep one.

        Return its main trajectories on this rank, the steps simulated on all ranks, and the gain of the payoff.
        """
        has_trial = self.trial.tolerated_loss >= 0
        policies = (self.theta, self.trial.theta) if has_trial else (self.theta,)
        mains = [roll_mains(self.roller, self._nu, theta, plan) for theta in policies]
        columns = []
        for rollouts, n, *_, repeated_steps in mains:
            columns += [rollouts.discounted_returns[n], (rollouts.lengths + repeated_steps)[n]]
        everyone = self.comm.gather(np.stack(columns, axis=1), self.config.num_trajectories)
        num_mains = len(everyone) if self.roller.start_size > 0 else 1
        num_steps = int(everyone[:num_mains, 1::2].sum())
        if not has_trial:
            return mains[0], num_steps, 0.0
        gain = float((everyone[:, 2] - everyone[:, 0]).mean() * self._discounts[0])
        self.trial, is_kept = self.trial.judge(gain)
        if is_kept:
            self.theta = self.trial.theta
        return mains[int(is_kept)], num_steps, gain

    def _collect(self, mains: Mains, directions: np.ndarray, held_steps: np.ndarray, scales: Scales) -> Sample:
        """Roll the branches of this rank's main trajectories out, and return the sample of all ranks."""
        main, n, states, times, weights, _ = mains
        num_steps = np.minimum(self.roller.horizon - times, scales.longest_branch)
        held_steps = np.minimum(held_steps, np.minimum(num_steps, main.lengths[n][:, None] - times))
        held = np.arange(scales.longest_hold)  # [D], the same on all ranks: sums depend on it
        here = (n[:, None, None], np.minimum(times[..., None] + held, main.lengths[n][:, None, None] - 1))
        observations, actions = main.observations[here], main.actions[here]  # [N, K, D, ...]
        excess = self._forward(self.theta, observations) - actions
        is_held = (held < held_steps[..., None])[..., None]
        pushes = np.multiply.outer([1.0, -1.0], directions)[:, :, :, None]  # [2, N, K, 1, A]
        changes = (np.clip(actions + pushes, self._low, self._high) - actions) * is_held
        branches = roll_branches(self.roller, self.theta, states, num_steps, changes - excess * is_held)
        deltas = (changes[0] - changes[1]) / 2 / self._scale
        deltas *= (held < branches.lengths.min(axis=0)[..., None])[..., None]  # nothing after a branch's end
        rows, row_weights = spread_rows(held_steps)  # [N, K, R]
        at_rows = (np.arange(len(n))[:, None, None], np.arange(rows.shape[1])[:, None], rows)
        sample = Sample(
            observations=observations[at_rows],
            deltas=deltas[at_rows],
            is_outward=np.sign(excess[at_rows]),
            row_weights=row_weights,
            advantages=(branches.returns[0] - branches.returns[1]) / 2,
            squares=np.square(deltas).sum(axis=(2, 3)),
            weights=weights,
            returns=main.rewards.sum(axis=1)[n],
            discounted_returns=main.discounted_returns[n],
            reward_sizes=(np.abs(main.rewards) * self._discounts).sum(axis=1)[n],
            lengths=main.lengths[n],
            observation_sums=main.observations.sum(axis=1)[n],
            observation_squares=np.square(main.observations).sum(axis=1)[n],
            branch_steps=branches.num_steps.sum(axis=(0, 2)),
        )
        sample = gather_by_trajectory(sample, np.arange(self.config.num_trajectories), self.comm)
        require_finite("return", sample.returns)
        require_finite("advantage", sample.advantages)
        return sample

    def _remember(self, sample: Sample) -> None:
        """Put the rows of a sample into the memory, and its observations into the statistics."""
        is_first = self.observation_stats.count == 0
        self.observation_stats = self.observation_stats.merged(
            sample.lengths, sample.observation_sums, sample.observation_squares
        )
        if is_first:  # the initial network sees scaled observations
            self.theta = fold_normalisation(self.theta, self.roller.layer_sizes, self.observation_stats.limited())
        weights = sample.weights[..., None] * sample.row_weights / sample.weights.size
        new = (sample.observations, action_gradients(sample), weights[..., None])
        self.memory = Rows(
            *(np.concatenate([part.reshape(1, *old.shape[1:]), old[:-1]]) for part, old in zip(new, self.memory))
        )

    def _find_step(self, reward_size: float) -> Step:
        """Return the step of Algorithm 1, lines 3 to 6, from all remembered rows; of radius 1 for a search."""
        sizes, comm, stats = self.roller.layer_sizes, self.comm, self.observation_stats.limited()
        theta = unfold_normalisation(self.theta, sizes, stats)
        ages = (SEARCH_MEMORY if self._is_searching else MEMORY) ** np.arange(NUM_REMEMBERED)[:, None, None]
        total_weight = (ages * self.memory.weights).sum()
        mine = comm.share(NUM_REMEMBERED)
        observations, gradients, weights = (part[mine] for part in drop_repetitions(self.memory))
        gradients, weights = ages[mine] * gradients / total_weight, 2 * ages[mine] * weights / total_weight
        jacobian = Jacobian(theta, stats.normalise(observations), sizes)

        def total(groups: np.ndarray) -> np.ndarray:
            return comm.sum(groups, NUM_REMEMBERED)

        traces = [(w * norms).sum() for w, norms in zip(weights, jacobian.squared_norms())]
        trace = total(np.reshape(traces, (-1, 1)))[0]
        solution = cg.solve(
            lambda v: total(hessian_product(jacobian, weights, v)),
            total(jacobian.vjp(gradients)),
            **{**self.config.solver, "damping": DAMPING * trace},
        )
        radius, largest_gain = (1.0, np.inf) if self._is_searching else (self.trial.radius, GAIN_CAP * reward_size)
        step = scale_to_trust_region(solution, 0.0, radius)
        shrink = min(1.0, largest_gain / step.predicted_gain) if step.predicted_gain > 0 else 0.0
        return step._replace(
            delta_theta=fold_normalisation(theta + shrink * step.delta_theta, sizes, stats) - self.theta,
            step_w=shrink * step.step_w,
            is_bound=shrink == 1.0,
            predicted_gain=shrink * step.predicted_gain,
        )

    def _row(self, sample: Sample, step: Step, main_steps: int, gain: float) -> dict[str, Any]:
        return {
            "num_timesteps": main_steps + int(sample.branch_steps.sum()),
            "num_episodes": len(sample.returns) if self.roller.start_size > 0 else 1,
            "return_mean": sample.returns.mean(),
            "discounted_return_mean": sample.discounted_returns.mean(),
            "payoff": sample.discounted_returns.mean() * self._discounts[0],
            "gradient_norm": step.gradient_norm,
            "cg_residual": step.cg_residual,
            "cg_iterations": step.cg_iterations,
            "step_w": self.trial.radius if self._is_searching else step.step_w,
            "delta_max": self.trial.radius,
            "is_trust_region_bound": int(step.is_bound),
            "predicted_gain": step.predicted_gain,
            "gain": gain,
        }

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        names = ("trial", "observation_stats", "memory")
        return {"policy": {"theta": self.theta}, **{name: getattr(self, name)._asdict() for name in names}}

    replicated = state

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.trial, self.memory = Trial(**state["trial"]), Rows(**state["memory"])

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before."""
        self.theta = state["policy"]["theta"]
        self.observation_stats = RunningStats(**state["observation_stats"])
        self.trial = self._first_trial()
