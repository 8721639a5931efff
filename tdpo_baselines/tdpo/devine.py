"""DeVine, Algorithm 2 of the paper: branches off deterministic trajectories, and the gradient they estimate.

A plan is what is drawn, vines are what is rolled out. Shapes: N trajectories, K branches each, D held
steps, T horizon, L length of a trajectory, O observation, A action.

    times       t_k, first perturbed step                          [N, K]
    offsets     perturbation of the policy's action                [N, K, D, A]
    deltas      a' - a as executed, over the held steps            [N, K, D, A]
    advantages  A(s_t, a') = Q(s_t, a') - V(s_t)                   [N, K]
    weights     gamma^t / nu(t), scaled to mean 1                  [N, K]
"""

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..common.parallel.seeding import stratified

EARLY_SHARE = 0.75  # of the branch times; the others keep the weights of late ones below four times what they were


def discounts(gamma: float, num_steps: int) -> np.ndarray:
    """gamma^t, scaled to sum to one: the visitation of time t, and the payoff's weight of reward t."""
    powers = gamma ** np.arange(num_steps)
    return powers / powers.sum()


class TimeLaw:
    """The law nu of branch times: "geometric" as the discount, "uniform", or "all" times in turn.

    A trajectory that ended early has its branch times inside its own length, and they weigh what is left
    of the visitation there.
    """

    def __init__(self, kind: str, *, gamma: float, horizon: int, held_steps: int, early_steps: int | None = None):
        """With `early_steps`, a share of the times is spread over the first so many, the others are by the law."""
        self._kind = kind
        self._early_steps = early_steps
        self._held_steps = held_steps
        self._visitation = discounts(gamma, horizon - held_steps + 1)  # [legal times]
        self._reached = np.cumsum(self._visitation)
        self._share_reached = self._reached / self._reached[-1]
        self._full_nu = self._law(len(self._visitation))

    def num_times(self, length: int) -> int:
        """Legal branch times of a trajectory of this length."""
        return max(1, min(length - self._held_steps + 1, len(self._visitation)))

    def times_and_weights(self, quantiles: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Branch times at quantiles of the law, and gamma^t / nu(t) there. For "all", the quantiles are the times of a
        full trajectory."""
        if self._kind == "all":
            times = np.minimum(quantiles.astype(np.int64), self.num_times(length) - 1)
            return times, np.where(quantiles == times, self._visitation[times] * len(self._visitation), 0.0)
        nu, reached, last = self._nu(length)
        times = np.minimum(np.searchsorted(reached, quantiles, side="right"), last)
        return times, self._visitation[times] / nu[times]

    def alive(self, lengths: np.ndarray) -> float:
        """Share of the visitation that trajectories of these lengths have, on average."""
        last_times = np.minimum(lengths.astype(np.int64) - self._held_steps, len(self._visitation) - 1)
        return float(self._share_reached[np.maximum(last_times, 0)].mean())

    def _nu(self, length: int) -> tuple[np.ndarray, np.ndarray, int]:
        """nu of a trajectory of this length, its cumulative sum, and its last time: the sum may round to below one."""
        num = self.num_times(length)
        return self._full_nu if num == len(self._visitation) else self._law(num)

    def _law(self, num: int) -> tuple[np.ndarray, np.ndarray, int]:
        """nu for so many legal times."""
        nu = np.full(num, 1 / num) if self._kind == "uniform" else self._visitation[:num] / self._reached[num - 1]
        if self._early_steps is not None:
            early = min(self._early_steps, num)
            nu = (1 - EARLY_SHARE) * nu
            nu[:early] += EARLY_SHARE / early
        return nu, np.cumsum(nu), int(np.flatnonzero(nu)[-1])


class Plan(NamedTuple):
    """Everything random in one update, for all trajectories."""

    starts: np.ndarray  # [N, U]
    quantiles: np.ndarray  # [N, K] of the branch times, ascending
    directions: np.ndarray  # [N, K, A]

    def share(self, trajectories: np.ndarray | slice) -> "Plan":
        return Plan(*(array[trajectories] for array in self))

    def balanced_order(self) -> np.ndarray:
        """The trajectories [N], early and late branches in turn: late ones are short, and contiguous shares of this
        order have about equal work."""
        by_lateness = np.argsort(self.quantiles.sum(axis=1), kind="stable")
        order, half = np.empty_like(by_lateness), (len(by_lateness) + 1) // 2
        order[::2], order[1::2] = by_lateness[:half], by_lateness[: half - 1 : -1]
        return order


def num_branches(config, horizon: int, action_size: int) -> int:
    """K: branches per trajectory, which branch_times=all makes as many as there are steps and coordinates."""
    return (horizon - config.held_steps + 1) * action_size if config.branch_times == "all" else config.num_branches


def draw_plan(config, rng: np.random.Generator, std: np.ndarray, *, horizon: int, start_size: int) -> Plan:
    """A plan with perturbations of standard deviation `std` [A]."""
    N, A = config.num_trajectories, len(std)
    starts = stratified(rng, N, start_size) if config.is_stratified else rng.random((N, start_size))
    if config.branch_times == "all":
        num_times = horizon - config.held_steps + 1
        quantiles = np.tile(np.repeat(np.arange(float(num_times)), A), (N, 1))
        coordinates = np.broadcast_to(np.tile(np.arange(A), num_times), quantiles.shape)
    else:
        quantiles = draw_quantiles(config, rng)
        coordinates = np.zeros(quantiles.shape, dtype=np.int64)
        if A > 1:  # in turn, so that each one's times are spread out too
            turns = (np.arange(quantiles.size) + rng.integers(A)) % A
            coordinates.flat[np.argsort(quantiles, axis=None, kind="stable")] = turns
    if config.directions == "gaussian":
        return Plan(starts, quantiles, std * rng.standard_normal((*quantiles.shape, A)))
    return Plan(starts, quantiles, std * np.eye(A)[coordinates])


def draw_quantiles(config, rng: np.random.Generator) -> np.ndarray:
    """[N, K]: independent, or K equally spaced ones per trajectory with offsets that are themselves equally
    spaced over the trajectories."""
    N, K = config.num_trajectories, config.num_branches
    if not config.is_stratified:
        return np.sort(rng.random((N, K)), axis=1)
    trajectory_offsets = (rng.permutation(N) + rng.random()) / N
    return (np.arange(K) + trajectory_offsets[:, None]) / K


class Vines(NamedTuple):
    """Main trajectories and what their branches gained."""

    observations: np.ndarray  # [N, K, D, O] of the main trajectory over the held steps
    deltas: np.ndarray  # [N, K, D, A]
    advantages: np.ndarray  # [N, K]; two-sided: half the difference of +delta and -delta
    even_advantages: np.ndarray  # [N, K]; two-sided: their mean, NaN if nothing needs it; one-sided: the same
    weights: np.ndarray  # [N, K]
    returns: np.ndarray  # [N] undiscounted
    discounted_returns: np.ndarray  # [N]
    lengths: np.ndarray  # [N] steps of the main trajectory
    observation_sums: np.ndarray  # [N, O] over the main trajectory; zero if nothing needs them
    observation_squares: np.ndarray  # [N, O]
    num_steps: np.ndarray  # [N] of its branches
    num_again: np.ndarray  # [N] steps of the main trajectory's second rollout


def roll_vines(config, roller, law: TimeLaw, theta: np.ndarray, plan: Plan) -> Vines:
    """The plan's trajectories and branches. With a single start all trajectories are one, rolled once."""
    N, K = plan.quantiles.shape
    D, T, A = config.held_steps, roller.horizon, plan.directions.shape[2]
    num_mains = N if roller.start_size > 0 else 1
    n = np.arange(N) if num_mains == N else np.zeros(N, dtype=np.int64)  # main trajectory of each
    main, states, times, weights, num_again = roll_mains(roller, law, theta, plan, num_mains)
    lengths = main.lengths[n]

    num_steps = np.minimum(T - times, config.max_branch_steps or T)  # [N, K]
    window = np.minimum(times[:, :, None] + np.arange(D), lengths[:, None, None] - 1)  # [N, K, D]
    signs = np.array([1.0, -1.0] if config.is_two_sided else [1.0])
    branches = roller.rollouts(
        theta,
        np.concatenate([states.reshape(N * K, -1)] * len(signs)),
        num_steps=np.concatenate([num_steps.ravel()] * len(signs)),
        offsets=np.repeat(np.multiply.outer(signs, plan.directions).reshape(-1, 1, A), D, axis=1),
        num_recorded=D,
    )
    shape = (len(signs), N, K)
    branch_returns, actions = branches.returns.reshape(shape), branches.actions.reshape(*shape, D, A)
    values = values_at(main.rewards[n], times, num_steps, config.gamma) if needs_values(config) else np.nan
    if config.is_two_sided:
        advantages = (branch_returns[0] - branch_returns[1]) / 2
        even_advantages = (branch_returns[0] + branch_returns[1]) / 2 - values
        deltas = (actions[0] - actions[1]) / 2
    else:
        advantages = even_advantages = branch_returns[0] - values
        deltas = actions[0] - main.actions[n[:, None, None], window]
    if branches.lengths.min() < D:
        branch_lengths = branches.lengths.reshape(shape).min(axis=0)
        deltas = deltas * (np.arange(D) < branch_lengths[:, :, None])[..., None]  # nothing after a branch's end
    observation_sums = observation_squares = np.zeros((N, main.observations.shape[2]))
    if config.use_observation_normalisation:
        observation_sums = main.observations.sum(axis=1)[n]
        observation_squares = np.square(main.observations).sum(axis=1)[n]
    return Vines(
        observations=main.observations[n[:, None, None], window],
        deltas=deltas,
        advantages=advantages,
        even_advantages=even_advantages,
        weights=weights,
        returns=main.rewards.sum(axis=1)[n],
        discounted_returns=main.returns[n],
        lengths=lengths,
        observation_sums=observation_sums,
        observation_squares=observation_squares,
        num_steps=(branches.lengths + branches.replayed_steps).reshape(shape).sum(axis=(0, 2)),
        num_again=num_again[n],
    )


def roll_mains(roller, law: TimeLaw, theta: np.ndarray, plan: Plan, num_mains: int):
    """Main trajectories, the states [N, K, S] at their branch times [N, K], these and their weights [N, K], and the
    steps of a second rollout.

    Where a trajectory ends is known only when it has ended. Those that ended early are rolled out again, to
    save the states at branch times inside their length.
    """
    N, K = plan.quantiles.shape
    quantiles = plan.quantiles.reshape(num_mains, -1)  # [mains, branches of each]
    starts = roller.start_states(plan.starts[:num_mains])
    times, weights = law.times_and_weights(quantiles, roller.horizon)
    main, states = rollouts_saving(roller, theta, starts, times)
    num_again = np.zeros(num_mains, dtype=np.int64)
    for m in np.flatnonzero(main.lengths < roller.horizon):
        times[m], weights[m] = law.times_and_weights(quantiles[m], main.lengths[m])
        again, again_states = rollouts_saving(roller, theta, starts[m : m + 1], times[m : m + 1])
        states[m], num_again[m] = again_states[0], again.lengths[0]
    return main, states.reshape(N, K, -1), times.reshape(N, K), weights.reshape(N, K), num_again


def rollouts_saving(roller, theta: np.ndarray, starts: np.ndarray, times: np.ndarray):
    """Rollouts and the states [B, K, S] before `times` [B, K], which may be in any order."""
    if (times[:, 1:] >= times[:, :-1]).all():
        rollouts = roller.rollouts(theta, starts, save_steps=times)
        return rollouts, rollouts.saved_states
    order = np.argsort(times, axis=1, kind="stable")
    rollouts = roller.rollouts(theta, starts, save_steps=np.take_along_axis(times, order, axis=1))
    states = np.empty_like(rollouts.saved_states)
    np.put_along_axis(states, order[:, :, None], rollouts.saved_states, axis=1)
    return rollouts, states


def gather_vines(mine: Vines, order: np.ndarray, comm: Comm) -> Vines:
    """Every rank's vines, on every rank, in one message. `order` [N] says of which trajectories the shares are."""
    sizes = [math.prod(array.shape[1:]) for array in mine]
    packed = np.concatenate([array.reshape(-1, size) for array, size in zip(mine, sizes)], axis=1, dtype=np.float64)
    everyone = np.empty((len(order), packed.shape[1]))
    everyone[order] = comm.gather(packed, len(order))
    parts = (everyone[:, end - size : end] for size, end in zip(sizes, accumulate(sizes)))
    return Vines(*(part.reshape(len(order), *array.shape[1:]) for part, array in zip(parts, mine)))


def needs_values(config) -> bool:
    """Whether V(s_t) is used: by one-sided differences, and by the adaptation of the exploration."""
    return config.variant == "advanced" or not config.is_two_sided


def values_at(rewards: np.ndarray, times: np.ndarray, num_steps: np.ndarray, gamma: float) -> np.ndarray:
    """V(s_t) = sum_{i >= t} gamma^(i - t) r_i of each trajectory at its times, over `num_steps`. [N, K]"""
    values = np.zeros((len(rewards), rewards.shape[1] + 1))
    for t in reversed(range(rewards.shape[1])):
        values[:, t] = rewards[:, t] + gamma * values[:, t + 1]
    after = np.take_along_axis(values, times + num_steps, axis=1)
    return np.take_along_axis(values, times, axis=1) - gamma**num_steps * after


def clipped(advantages: np.ndarray, limit: float | None) -> np.ndarray:
    """Advantages limited to `limit` times the median size of those not zero; None leaves them as they are."""
    if limit is None or not advantages.any():
        return advantages
    bound = limit * np.median(np.abs(advantages[advantages != 0]))
    return np.clip(advantages, -bound, bound)


def action_gradients(vines: Vines, std: np.ndarray) -> np.ndarray:
    """Each row's share of the payoff's gradient with respect to the action, [N, K, D, A].

    Algorithm 2's estimator, averaged over branches and over held steps: chained with the policy's
    Jacobians and summed it is g. Perturbations are measured in units of `std` [A], which keeps it
    unbiased where the scales differ. One that the limits of the action undid says nothing.
    """
    D, A = vines.deltas.shape[2:]
    relative = (std / std.min()) ** 2  # all ones if the scales are equal
    squared = np.sum(vines.deltas**2 / relative, axis=(2, 3))  # [N, K]
    slopes = np.divide(vines.advantages, squared, out=np.zeros_like(squared), where=squared > 0)
    scale = A * vines.weights * slopes / (vines.weights.size * D)  # [N, K]
    return scale[:, :, None, None] * vines.deltas / relative
