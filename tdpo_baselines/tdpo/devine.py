"""DeVine, the deterministic vine estimator: Algorithm 2 of arXiv 2205.15379.

A plan holds all that is random in an update; vines are its rollouts. `draw_plan`, `roll_vines`,
`gather_by_trajectory` and `action_gradients` are called in this order.

Glossary (N trajectories, K branches each, D held steps, T horizon, O observation, A action, S state, U start)
  symbol            name in code                   shape           Algorithm 2
  s_0 ~ mu          starts, points of a unit cube  [N, U]          line 1
  nu                TimeDistribution                               line 3
  t_k               times, first perturbed step    [N, K]          line 3
  V(s_t)            values                         [N, K]          line 4
  a'_t ~ q          directions, added to a_t       [N, K, A]       line 5
  a'_t - a_t        deltas, inside the limits      [N, K, D, A]    line 5
  Q(s_t, a'_t)      returns of branches            [N, K]          line 6
  A(s_t, a'_t)      advantages                     [N, K]          line 7
  gamma^t / nu(t)   weights, of the visitation     [N, K]          line 9
                    gamma^t / sum_t gamma^t
  gradient of the   action_gradients               [N, K, D, A]    line 10
  estimator
"""

import math
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..common.parallel.seeding import stratified
from ..common.sampling.rollouts import Rollouts
from ..contracts import Roller
from .config import Config

EARLY_FRACTION = 0.75  # of the branch times; keeps the weights of the others below four times what they were


def discounts(gamma: float, num_steps: int) -> np.ndarray:
    """Return gamma^t scaled to sum to one: the visitation of time t, and the payoff's weight of reward t."""
    powers = gamma ** np.arange(num_steps)
    return powers / powers.sum()


class TimeDistribution:
    """The distribution nu of branch times: "geometric" like the discount, "uniform", or "all" times in turn.

    A trajectory that ended early has its branch times inside its own length, weighted by the visitation there.
    """

    def __init__(self, config: Config, horizon: int):
        self._kind, self._early_steps = config.branch_times, config.early_branch_steps
        self._visitation = discounts(config.gamma, horizon)  # [T]
        self._reached = np.cumsum(self._visitation)
        self._full_nu = self._make_nu(len(self._visitation))

    def times_and_weights(self, quantiles: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the branch times at quantiles of nu, and the visitation over nu(t) there.

        For "all", the quantiles are the times of a full trajectory.
        """
        if self._kind == "all":
            times = np.minimum(quantiles.astype(np.int64), length - 1)
            return times, np.where(quantiles == times, self._visitation[times] * len(self._visitation), 0.0)
        nu, cumulative, last = self._full_nu if length == len(self._visitation) else self._make_nu(length)
        times = np.minimum(np.searchsorted(cumulative, quantiles, side="right"), last)
        return times, self._visitation[times] / nu[times]

    def alive_fraction(self, lengths: np.ndarray) -> float:
        """Return the mean fraction of the visitation before trajectories of these lengths ended."""
        return float((self._reached[lengths.astype(np.int64) - 1] / self._reached[-1]).mean())

    def _make_nu(self, num: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Return nu over the first `num` times, its sum over time, and its last time: the sum may round below one."""
        nu = np.full(num, 1 / num) if self._kind == "uniform" else self._visitation[:num] / self._reached[num - 1]
        if self._early_steps is not None:
            early = min(self._early_steps, num)
            nu = (1 - EARLY_FRACTION) * nu
            nu[:early] += EARLY_FRACTION / early
        return nu, np.cumsum(nu), int(np.flatnonzero(nu)[-1])


class Plan(NamedTuple):
    """Everything random in one update, for all trajectories."""

    starts: np.ndarray  # [N, U] points of the unit cube
    quantiles: np.ndarray  # [N, K] of the branch times, ascending
    directions: np.ndarray  # [N, K, A] perturbations

    def select(self, trajectories: np.ndarray | slice) -> "Plan":
        """Return the plan of some trajectories."""
        return Plan(*(array[trajectories] for array in self))

    def balanced_order(self) -> np.ndarray:
        """Return the trajectories [N] with early and late branches in turn.

        Late branches are short; contiguous shares of this order take about equal time.
        """
        by_lateness = np.argsort(self.quantiles.sum(axis=1), kind="stable")
        order, half = np.empty_like(by_lateness), (len(by_lateness) + 1) // 2
        order[::2], order[1::2] = by_lateness[:half], by_lateness[: half - 1 : -1]
        return order


def draw_plan(config: Config, rng: np.random.Generator, std: np.ndarray, *, horizon: int, start_size: int) -> Plan:
    """Draw starts (line 1), branch times (line 3) and perturbations of standard deviation `std` [A] (line 5)."""
    N, A = config.num_trajectories, len(std)
    starts = stratified(rng, N, start_size) if config.is_stratified else rng.random((N, start_size))
    if config.branch_times == "all":
        quantiles = np.tile(np.repeat(np.arange(float(horizon)), A), (N, 1))
        coordinates = np.broadcast_to(np.tile(np.arange(A), horizon), quantiles.shape)
    else:
        quantiles = draw_quantiles(config, rng)
        coordinates = np.zeros(quantiles.shape, dtype=np.int64)
        if A > 1:  # in turn, so that the times of each coordinate are spread out too
            turns = (np.arange(quantiles.size) + rng.integers(A)) % A
            coordinates.flat[np.argsort(quantiles, axis=None, kind="stable")] = turns
    if config.directions == "gaussian":
        return Plan(starts, quantiles, std * rng.standard_normal((*quantiles.shape, A)))
    return Plan(starts, quantiles, std * np.eye(A)[coordinates])


def draw_quantiles(config: Config, rng: np.random.Generator) -> np.ndarray:
    """Draw quantiles [N, K]: independent ones, or a regular grid whose offset differs between trajectories."""
    N, K = config.num_trajectories, config.num_branches
    if not config.is_stratified:
        return np.sort(rng.random((N, K)), axis=1)
    trajectory_offsets = (rng.permutation(N) + rng.random()) / N
    return (np.arange(K) + trajectory_offsets[:, None]) / K


class Vines(NamedTuple):
    """Main trajectories and the advantages of their branches."""

    observations: np.ndarray  # [N, K, D, O] of the main trajectory over the held steps
    deltas: np.ndarray  # [N, K, D, A] perturbations inside the limits; two-sided: half of +delta minus -delta
    advantages: np.ndarray  # [N, K]; two-sided: half the difference
    even_advantages: np.ndarray  # [N, K]; two-sided: the mean, NaN if unused; one-sided: the advantages
    weights: np.ndarray  # [N, K]
    shares: np.ndarray  # [N, K, D] one over the number of branch times that perturb the step; 0 after a branch's end
    returns: np.ndarray  # [N] undiscounted
    discounted_returns: np.ndarray  # [N]
    lengths: np.ndarray  # [N] steps of the main trajectory
    observation_sums: np.ndarray  # [N, O] over the main trajectory; zero if unused
    observation_squares: np.ndarray  # [N, O]
    branch_steps: np.ndarray  # [N] simulated for the branches
    repeated_steps: np.ndarray  # [N] simulated for a second rollout of the main trajectory


class Mains(NamedTuple):
    """Main trajectories with the states at their branch times. With a single start, all N are one rollout."""

    rollouts: Rollouts  # [M, ...]
    rollout_index: np.ndarray  # [N] the rollout of each trajectory
    states: np.ndarray  # [N, K, S]
    times: np.ndarray  # [N, K]
    weights: np.ndarray  # [N, K]
    repeated_steps: np.ndarray  # [M]


def roll_vines(config: Config, roller: Roller, nu: TimeDistribution, theta: np.ndarray, plan: Plan) -> Vines:
    """Roll out main trajectories and branches, and return the branches' advantages (lines 1 to 8)."""
    mains = roll_mains(roller, nu, theta, plan)
    main, n, D = mains.rollouts, mains.rollout_index, config.held_steps
    num_steps = np.minimum(roller.horizon - mains.times, config.max_branch_steps or roller.horizon)  # [N, K]
    steps, ends = mains.times[:, :, None] + np.arange(D), main.lengths[n][:, None, None]  # [N, K, D]
    here = (n[:, None, None], np.minimum(steps, ends - 1))
    signs = np.array([1.0, -1.0] if config.is_two_sided else [1.0])
    offsets = np.repeat(np.multiply.outer(signs, plan.directions)[:, :, :, None], D, axis=3)
    returns, actions, lengths, branch_steps = roll_branches(roller, theta, mains.states, num_steps, offsets)
    values = values_at(main.rewards[n], mains.times, num_steps, config.gamma) if needs_values(config) else np.nan
    if config.is_two_sided:
        advantages = (returns[0] - returns[1]) / 2  # line 7
        even_advantages = (returns[0] + returns[1]) / 2 - values
        deltas = (actions[0] - actions[1]) / 2
    else:
        advantages = even_advantages = returns[0] - values  # line 7
        deltas = actions[0] - main.actions[here]
    held_deltas = deltas[:, :, 1:]  # with the policy's reaction, which is no part of the perturbation
    held_deltas[:] = np.where(held_deltas == 0, 0, plan.directions[:, :, None])  # 0: undone by the limits
    is_held = (steps < ends) & (np.arange(D) < lengths.min(axis=0)[:, :, None])
    sums = squares = np.zeros((len(n), main.observations.shape[2]))
    if config.use_observation_normalisation:
        sums, squares = main.observations.sum(axis=1)[n], np.square(main.observations).sum(axis=1)[n]
    return Vines(
        observations=main.observations[here],
        deltas=deltas * is_held[..., None],
        advantages=advantages,
        even_advantages=even_advantages,
        weights=mains.weights,
        shares=is_held / np.minimum(steps + 1, D),
        returns=main.rewards.sum(axis=1)[n],
        discounted_returns=main.discounted_returns[n],
        lengths=main.lengths[n],
        observation_sums=sums,
        observation_squares=squares,
        branch_steps=branch_steps.sum(axis=(0, 2)),
        repeated_steps=mains.repeated_steps[n],
    )


def roll_mains(roller: Roller, nu: TimeDistribution, theta: np.ndarray, plan: Plan) -> Mains:
    """Roll out main trajectories (line 1) and save the states at their branch times (line 3).

    The length of a trajectory is known only when it has ended. One that ended early is rolled out again, to save the
    states at branch times inside its length.
    """
    N, K = plan.quantiles.shape
    M = N if roller.start_size > 0 else 1
    quantiles = plan.quantiles.reshape(M, -1)  # [M, branches of each]
    starts = roller.start_states(plan.starts[:M])
    times, weights = nu.times_and_weights(quantiles, roller.horizon)
    rollouts, states = roll_and_save(roller, theta, starts, times)
    repeated_steps = np.zeros(M, dtype=np.int64)
    for m in np.flatnonzero(rollouts.lengths < roller.horizon):
        times[m], weights[m] = nu.times_and_weights(quantiles[m], rollouts.lengths[m])
        again, again_states = roll_and_save(roller, theta, starts[m : m + 1], times[m : m + 1])
        states[m], repeated_steps[m] = again_states[0], again.lengths[0]
    rollout_index = np.arange(N) if M == N else np.zeros(N, dtype=np.int64)
    times, weights, states = times.reshape(N, K), weights.reshape(N, K), states.reshape(N, K, -1)
    return Mains(rollouts, rollout_index, states, times, weights, repeated_steps)


def roll_and_save(roller: Roller, theta: np.ndarray, starts: np.ndarray, times: np.ndarray):
    """Return rollouts and the states [B, K, S] before `times` [B, K], which may be in any order."""
    if (times[:, 1:] >= times[:, :-1]).all():
        rollouts = roller.rollouts(theta, starts, save_steps=times)
        return rollouts, rollouts.saved_states
    order = np.argsort(times, axis=1, kind="stable")
    rollouts = roller.rollouts(theta, starts, save_steps=np.take_along_axis(times, order, axis=1))
    states = np.empty_like(rollouts.saved_states)
    np.put_along_axis(states, order[:, :, None], rollouts.saved_states, axis=1)
    return rollouts, states


class Branches(NamedTuple):
    """Branches that begin with perturbed actions, one for each sign of the perturbation."""

    returns: np.ndarray  # [signs, N, K] Q(s_t, a'_t) (line 6)
    actions: np.ndarray  # [signs, N, K, D, A] as executed over the perturbed steps
    lengths: np.ndarray  # [signs, N, K]
    num_steps: np.ndarray  # [signs, N, K] simulated


def roll_branches(
    roller: Roller, theta: np.ndarray, states: np.ndarray, num_steps: np.ndarray, offsets: np.ndarray
) -> Branches:
    """Roll branches out for `num_steps` [N, K] from `states` [N, K, S], their first actions shifted by `offsets`.

    The offsets [signs, N, K, D, A] are those of the D perturbed steps (line 5).
    """
    num_signs, N, K, D, A = offsets.shape
    rollouts = roller.rollouts(
        theta,
        np.concatenate([states.reshape(N * K, -1)] * num_signs),
        num_steps=np.concatenate([num_steps.ravel()] * num_signs),
        offsets=offsets.reshape(-1, D, A),
        num_recorded=D,
    )
    simulated = rollouts.lengths + rollouts.replayed_steps
    arrays = (rollouts.discounted_returns, rollouts.actions, rollouts.lengths, simulated)
    return Branches(*(array.reshape(num_signs, N, K, *array.shape[1:]) for array in arrays))


def gather_by_trajectory(mine: Any, order: np.ndarray, comm: Comm) -> Any:
    """Return every rank's part of a tuple of arrays [N, ...], in one message; shares are contiguous in `order` [N]."""
    sizes = [math.prod(array.shape[1:]) for array in mine]
    packed = np.concatenate([array.reshape(-1, size) for array, size in zip(mine, sizes)], axis=1, dtype=np.float64)
    everyone = np.empty((len(order), packed.shape[1]))
    everyone[order] = comm.gather(packed, len(order))
    parts = (everyone[:, end - size : end] for size, end in zip(sizes, accumulate(sizes)))
    return type(mine)(*(part.reshape(len(order), *array.shape[1:]) for part, array in zip(parts, mine)))


def needs_values(config: Config) -> bool:
    """Return whether V(s_t) is used: by one-sided differences, and by the adaptive exploration scale."""
    return config.is_advanced or not config.is_two_sided


def values_at(rewards: np.ndarray, times: np.ndarray, num_steps: np.ndarray, gamma: float) -> np.ndarray:
    """Return V(s_t) = sum_{i >= t} gamma^(i - t) r_i at each trajectory's times, over `num_steps` (line 4). [N, K]"""
    values = np.zeros((len(rewards), rewards.shape[1] + 1))
    for t in reversed(range(rewards.shape[1])):
        values[:, t] = rewards[:, t] + gamma * values[:, t + 1]
    after = np.take_along_axis(values, times + num_steps, axis=1)
    return np.take_along_axis(values, times, axis=1) - gamma**num_steps * after


def clip_advantages(advantages: np.ndarray, limit: float | None) -> np.ndarray:
    """Clip advantages to `limit` times the median size of the nonzero ones; None leaves them as they are."""
    if limit is None or not advantages.any():
        return advantages
    bound = limit * np.median(np.abs(advantages[advantages != 0]))
    return np.clip(advantages, -bound, bound)


def action_gradients(vines: Vines, std: np.ndarray) -> np.ndarray:
    """Return each row's part of the payoff's gradient with respect to the action, [N, K, D, A] (lines 9 and 10).

    Chained with the policy's Jacobians and summed over rows it is g: dim(A) gamma^t / nu(t) times the advantage times
    delta / |delta|^2, averaged over branches and over the branch times that perturb a step. Perturbations are measured
    in units of `std` [A], which keeps the estimate unbiased where the scales differ. A perturbation that the action
    limits undid counts as zero.
    """
    A = vines.deltas.shape[3]
    relative = (std / std.min()) ** 2  # all ones if the scales are equal
    squared = np.sum(vines.deltas**2 / relative, axis=(2, 3))  # [N, K]
    slopes = np.divide(vines.advantages, squared, out=np.zeros_like(squared), where=squared > 0)
    scale = A * vines.weights * slopes / vines.weights.size  # [N, K]
    return (scale[:, :, None] * vines.shares)[..., None] * vines.deltas / relative
