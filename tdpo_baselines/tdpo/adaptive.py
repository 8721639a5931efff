"""The adaptive variant, TDPO's default: Algorithm 1 of arXiv 2205.15379 with scales that it finds by itself.

What all tasks share is here. Where the reward is paid along the way, search.py chooses scales and steps; where it is
paid at the end, judged.py does.

Differences from the basic variant
  1. Actions are in units of half their range, and the policy is a network plus a linear function.
  2. A perturbation is held for 1 step up to a fraction of the horizon, log-uniformly. Short ones see every step's
     gradient; long ones see past the ripples of the payoff.
  3. The executed action is perturbed, inside its limits. A gradient that points out of a limit counts as zero.
  4. Rows of earlier updates count too, less with their age; their Jacobians are those of the present policy.
  5. Damping is relative to the trace of H.
  6. Search: no scale is fixed. Every update draws the size of its perturbations and the length of its branches
     log-uniformly, tries steps of several radii from the same fresh starts (line 7), and keeps the best, or none.
  7. Judged steps: a task that is paid at its end is full of local optima, which a search cannot leave. There, branches
     go to the end, and one step is judged. Its predicted gain is at most a fraction of the mean size of a reward. The
     radius of the trust region grows if the payoff rose, and shrinks if it fell. A step that lost more than tolerated
     is taken back; the tolerance vanishes over the updates. When the radius has collapsed, a rival begins (rivals.py).

Glossary, beside those of tdpo.py and devine.py (R rows of a branch, G updates remembered)
  name                shape                meaning
  scales                                   size and duration of an update's perturbations, length of its branches
  held_steps          [N, K]               steps for which a perturbation is held
  deltas              [N, K, D, A]         half the difference of the two executed actions of a pair, in half ranges;
                                           D = scales.longest_hold; of the rows alone [N, K, R, A] in a Sample
  excess              [N, K, D, A]         policy's output minus the action within its limits
  radius                                   r.m.s. change of the action per update at most, in half ranges
  memory              [G, N K R, ...]      rows of the last updates, the newest first
"""

from abc import ABC, abstractmethod
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
from .tdpo import Rows, Step, hessian_product, scale_to_trust_region

HELD_FRACTION = 0.04  # of the horizon: longest perturbation
ROWS_PER_BRANCH = 4  # at most, spread over the perturbed steps
ADVANTAGE_CLIP = 5.0  # multiple of the median size
NUM_REMEMBERED = 8  # updates
DAMPING = 0.005  # relative to the trace of H


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


class Choice(NamedTuple):
    """The policy that an update keeps."""

    mains: Mains  # its main trajectories on this rank
    num_steps: int  # simulated to choose it, its main trajectories among them
    gain: float  # of the payoff over the policy before
    radius: float  # of the trust region, or of the step that was taken


def log_uniform(quantiles: Any, limits: Any) -> Any:
    """Return the values at quantiles of the log-uniform distribution between a low and a high limit."""
    low, high = limits
    return low * (high / low) ** quantiles


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
    """Return the memory without as many rows of weight zero as every update has."""
    num_rows = np.count_nonzero(memory.weights, axis=1).max()
    order = np.argsort(memory.weights == 0, axis=1, kind="stable")[:, :num_rows]
    return Rows(*(np.take_along_axis(part, order, axis=1) for part in memory))


class AdaptiveLearner(ABC):
    """What the learners of the adaptive variant share: an iteration at a time, with three decisions left open."""

    replay_bytes = 0

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        self.config, self.roller, self.comm, self.seed = config, roller, comm, seed
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
        self.observation_stats = RunningStats.of_size(O)
        num_rows = config.num_trajectories * config.num_branches * ROWS_PER_BRANCH
        shape = (NUM_REMEMBERED, num_rows)
        self.memory = Rows(np.zeros((*shape, O)), np.zeros((*shape, A)), np.zeros((*shape, 1)))  # the newest first

    @abstractmethod
    def _choose_scales(self, rng: np.random.Generator) -> Scales:
        """Return the scales of an update."""

    @abstractmethod
    def _choose_policy(self, plan: Plan, iteration: int) -> Choice:
        """Decide about the last step from the starts of a plan, and roll out the policy that is kept."""

    @abstractmethod
    def _choose_step(self, sample: Sample, choice: Choice) -> Step:
        """Return the step that the next update decides about."""

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Decide about the last step, collect branches of the policy that is kept, step, and return the row."""
        rng = generator(self.seed, "plan", iteration)
        scales = self._choose_scales(rng)
        plan, held_steps = self._draw(rng, scales)
        choice = self._choose_policy(plan, iteration)
        mine = self.comm.share(self.config.num_trajectories)
        sample = self._collect(choice.mains, plan.directions[mine], held_steps[mine], scales)
        is_measured = self.observation_stats.count > 0  # the first update changes the policy that it rolled out
        self._remember(sample)
        step = self._choose_step(sample, choice)
        return {**self._row(sample, step, choice), "is_after_update": int(is_measured)}

    def _draw(self, rng: np.random.Generator, scales: Scales) -> tuple[Plan, np.ndarray]:
        """Draw starts, branch times and directions in units of actions, and how long each is held."""
        std, roller = scales.perturbation * self._scale, self.roller
        plan = draw_plan(self.config, rng, std, horizon=roller.horizon, start_size=roller.start_size)
        return plan, draw_held_steps(rng, plan.quantiles.shape, scales.longest_hold)

    def _roll_mains(self, policies: tuple[np.ndarray, ...], plan: Plan) -> tuple[list[Mains], np.ndarray, int]:
        """Roll out the main trajectories of policies from the same starts.

        Return those of this rank for each policy, all discounted returns [N, policies], and all steps simulated.
        """
        mine = plan.select(self.comm.share(self.config.num_trajectories))
        mains = [roll_mains(self.roller, self._nu, theta, mine) for theta in policies]
        columns = []
        for rollouts, n, *_, repeated_steps in mains:
            columns += [rollouts.discounted_returns[n], (rollouts.lengths + repeated_steps)[n]]
        everyone = self.comm.gather(np.stack(columns, axis=1), self.config.num_trajectories)
        num_mains = len(everyone) if self.roller.start_size > 0 else 1
        return mains, everyone[:, ::2], int(everyone[:num_mains, 1::2].sum())

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

    def _find_step(self, memory: float, radius: float, largest_gain: float = np.inf) -> Step:
        """Return the step of Algorithm 1, lines 3 to 6, from the remembered rows, with a weight per update of age."""
        sizes, comm, stats = self.roller.layer_sizes, self.comm, self.observation_stats.limited()
        theta = unfold_normalisation(self.theta, sizes, stats)
        ages = memory ** np.arange(NUM_REMEMBERED)[:, None, None]
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
        step = scale_to_trust_region(solution, 0.0, radius)
        shrink = min(1.0, largest_gain / step.predicted_gain) if step.predicted_gain > 0 else 0.0
        return step._replace(
            delta_theta=fold_normalisation(theta + shrink * step.delta_theta, sizes, stats) - self.theta,
            step_w=shrink * step.step_w,
            is_bound=shrink == 1.0,
            predicted_gain=shrink * step.predicted_gain,
        )

    def _row(self, sample: Sample, step: Step, choice: Choice) -> dict[str, Any]:
        """Return the row of an update."""
        return {
            "num_timesteps": choice.num_steps + int(sample.branch_steps.sum()),
            "num_episodes": len(sample.returns) if self.roller.start_size > 0 else 1,
            "return_mean": sample.returns.mean(),
            "discounted_return_mean": sample.discounted_returns.mean(),
            "payoff": sample.discounted_returns.mean() * self._discounts[0],
            "gradient_norm": step.gradient_norm,
            "cg_residual": step.cg_residual,
            "cg_iterations": step.cg_iterations,
            "step_w": step.step_w,
            "gain": choice.gain,
        }

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        names = ("observation_stats", "memory")
        return {"policy": {"theta": self.theta}, **{name: getattr(self, name)._asdict() for name in names}}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.memory = Rows(**state["memory"])

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before."""
        self.theta = state["policy"]["theta"]
        self.observation_stats = RunningStats(**state["observation_stats"])

    def replicated(self) -> State:
        """Return the part of the state that is the same on all ranks: all."""
        return self.state()
