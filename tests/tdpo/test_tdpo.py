from dataclasses import replace

import linear_quadratic
import numpy as np
import pytest

from envs.pendulum import nlr as pendulum
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks.normalisation import RunningStats, folded, unfolded
from tdpo_baselines.common.optim import cg
from tdpo_baselines.common.parallel.checks import NotFinite
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.tdpo import devine, tdpo
from tdpo_baselines.tdpo.blocks import Blocks


class Problem:
    """A kernel, a policy, and the DeVine gradient of a plan."""

    def __init__(self, kernel, hidden_sizes, *, output_gain, **options):
        self.config = tdpo.Config(hidden_sizes=hidden_sizes, **options)
        self.kernel = kernel
        self.roller = KernelRoller(kernel, hidden_sizes, self.config.gamma)
        self.theta = mlp.initial_parameters(self.roller.layer_sizes, np.random.default_rng(1), output_gain)
        rows = devine.num_branches(self.config, kernel.horizon, kernel.action_size) * self.config.held_steps
        self.std = np.full(kernel.action_size, self.config.exploration_std)
        self.law = tdpo.time_law(self.config, kernel.horizon)
        self._blocks = Blocks(self.config.num_trajectories, rows, self.roller.layer_sizes, Comm())

    def plan(self, iteration=0):
        return devine.draw_plan(
            self.config, generator(0, "plan", iteration), self.std,
            horizon=self.roller.horizon, start_size=self.kernel.start_size,
        )  # fmt: skip

    def vines(self, plan):
        return devine.roll_vines(self.config, self.roller, self.law, self.theta, plan)

    def times(self, plan):
        return np.array([self.law.times_and_weights(quantiles, self.roller.horizon)[0] for quantiles in plan.quantiles])

    def gradient(self, plan):
        return tdpo.policy_gradient(self.vines(plan), self.theta, self.std, self._blocks)

    def payoff(self, theta, starts):
        rewards = self.roller.rollouts(theta, self.roller.start_states(starts)).rewards
        return (rewards @ devine.discounts(self.config.gamma, self.roller.horizon)).mean()

    def finite_difference_gradient(self, starts, size=1e-5):
        steps = size * np.eye(len(self.theta))
        return np.array(
            [(self.payoff(self.theta + s, starts) - self.payoff(self.theta - s, starts)) / (2 * size) for s in steps]
        )


def swinging_pendulum(**options):
    """Swings about the hanging position, smoothly: the start is near theta = 0.9 pi."""
    kernel = pendulum.nlr_kernel(1, start_scale=1.0)
    return Problem(kernel, (6, 5), output_gain=2.0, num_trajectories=1, branch_times="all", **options)


def toy(**options):
    return Problem(linear_quadratic.kernel(), (4,), output_gain=1.0, **{"gamma": 0.95, **options})


def relative_error(estimate, expected):
    return np.linalg.norm(estimate - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("gamma", [0.97, 1.0])
def test_exhaustive_two_sided_devine_is_the_gradient_on_the_pendulum(gamma):
    problem = swinging_pendulum(gamma=gamma, exploration_std=1e-4)
    plan = problem.plan()._replace(starts=np.array([[0.95, 0.5]]))
    assert relative_error(problem.gradient(plan), problem.finite_difference_gradient(plan.starts)) < 1e-6


def test_exhaustive_devine_is_the_gradient_on_the_toy():
    problem = toy(branch_times="all", num_trajectories=3, exploration_std=1e-3)
    plan = problem.plan()
    assert relative_error(problem.gradient(plan), problem.finite_difference_gradient(plan.starts)) < 1e-6


def test_one_sided_error_shrinks_with_sigma():
    errors = []
    for sigma in (1e-1, 1e-2, 1e-3):
        problem = swinging_pendulum(gamma=0.97, exploration_std=sigma, is_two_sided=False)
        plan = problem.plan()._replace(starts=np.array([[0.95, 0.5]]))
        errors.append(relative_error(problem.gradient(plan), problem.finite_difference_gradient(plan.starts)))
    assert errors[1] < errors[0] / 5 and errors[2] < errors[1] / 5


@pytest.mark.parametrize("is_stratified", [True, False])
@pytest.mark.parametrize("branch_times, early", [("geometric", None), ("uniform", None), ("uniform", 7)])
@pytest.mark.parametrize("directions", ["coordinate", "gaussian"])
def test_sampled_branches_are_unbiased(branch_times, early, is_stratified, directions):
    options = {"num_trajectories": 6, "exploration_std": 1e-3, "directions": directions, "is_stratified": is_stratified}
    starts = np.random.default_rng(5).random((6, 2))
    every = toy(**{**options, "branch_times": "all", "directions": "coordinate"})
    exact = every.gradient(every.plan()._replace(starts=starts))
    problem = toy(branch_times=branch_times, early_branch_steps=early, num_branches=3, **options)
    samples = np.array([problem.gradient(problem.plan(i)._replace(starts=starts)) for i in range(300)])
    standard_error = samples.std(axis=0) / np.sqrt(len(samples)) + 1e-12
    assert np.abs((samples.mean(axis=0) - exact) / standard_error).max() < 4.5  # of 22 parameters


@pytest.mark.parametrize("law", ["geometric", "uniform"])
@pytest.mark.parametrize("is_stratified", [True, False])
def test_branch_times_follow_their_law(law, is_stratified):
    config = tdpo.Config(num_trajectories=50, num_branches=8, branch_times=law, is_stratified=is_stratified, gamma=0.9)
    time_law = devine.TimeLaw(law, gamma=0.9, horizon=20, held_steps=1)
    counts = np.zeros(20)
    for i in range(100):
        plan = devine.draw_plan(config, generator(0, "plan", i), np.ones(2), horizon=20, start_size=2)
        times = np.array([time_law.times_and_weights(quantiles, 20)[0] for quantiles in plan.quantiles])
        counts += np.bincount(times.ravel(), minlength=20)
        assert np.all(np.diff(times, axis=1) >= 0)
    expected = devine.discounts(0.9, 20) if law == "geometric" else np.full(20, 1 / 20)
    deviations = (counts - 40000 * expected) / np.sqrt(40000 * expected)
    assert np.abs(deviations).max() < 4.5
    if is_stratified:  # far closer to the law than independent draws could be
        assert np.abs(deviations).max() < 1.0


def test_stratified_starts_fill_every_stratum():
    plan = toy(num_trajectories=10).plan()
    for column in plan.starts.T:
        assert sorted(np.floor(column * 10)) == list(range(10))


def test_held_perturbation_is_executed_and_points_along_the_gradient():
    held = toy(branch_times="all", num_trajectories=4, held_steps=3, exploration_std=1e-3)
    single = toy(branch_times="all", num_trajectories=4, exploration_std=1e-3)
    plan = held.plan()
    vines = held.vines(plan)
    assert vines.deltas.shape == (4, 28 * 2, 3, 2)
    np.testing.assert_allclose(vines.deltas[:, :, 0], plan.directions, rtol=1e-9)
    g, exact = held.gradient(plan), single.gradient(single.plan()._replace(starts=plan.starts))
    assert g @ exact / np.linalg.norm(g) / np.linalg.norm(exact) > 0.95
    assert np.linalg.norm(g) == pytest.approx(np.linalg.norm(exact), rel=0.3)


def test_steps_count_main_and_branches_once_each():
    problem = toy(num_trajectories=5, num_branches=3)
    plan = problem.plan()
    vines = problem.vines(plan)
    assert vines.lengths.tolist() == [30] * 5
    assert vines.num_steps.tolist() == (2 * (30 - problem.times(plan)).sum(axis=1)).tolist()


def test_single_start_is_rolled_out_once_and_gives_the_same_vines():
    """Three trajectories from one start, against the same from a start that merely happens to be equal."""
    options = {"num_trajectories": 3, "num_branches": 4, "is_two_sided": False, "exploration_std": 0.1}
    single = Problem(linear_quadratic.fixed_start_kernel(), (4,), output_gain=1.0, **options)
    several = Problem(linear_quadratic.kernel(), (4,), output_gain=1.0, **options)
    plan = single.plan()
    ours = single.vines(plan)
    equal_starts = np.tile(linear_quadratic.FIXED_START, (3, 1))
    theirs = several.vines(plan._replace(starts=equal_starts))
    for name, array in ours._asdict().items():
        np.testing.assert_array_equal(array, getattr(theirs, name), err_msg=name)
    row = tdpo.Learner(single.config, single.roller, Comm(), 0).iterate(0, 0)
    assert row["num_timesteps"] == 30 + (30 - single.times(single.plan(0))).sum()
    assert row["num_episodes"] == 1


@pytest.mark.parametrize("is_two_sided", [True, False])
def test_branch_cut_short_gains_what_it_gained_until_then(is_two_sided):
    options = {"num_trajectories": 2, "num_branches": 5, "is_two_sided": is_two_sided, "exploration_std": 0.1}
    cut = toy(max_branch_steps=7, **options)
    plan = cut.plan()
    vines = cut.vines(plan)
    times = cut.times(plan)
    lengths = np.minimum(30 - times, 7)
    assert vines.num_steps.tolist() == ((1 + is_two_sided) * lengths.sum(axis=1)).tolist()
    for n in range(2):
        for k, t in enumerate(times[n]):
            rewards = []
            for sign in (1, -1 if is_two_sided else 0):
                offsets = np.zeros((1, 30, 2))
                offsets[0, t] = sign * plan.directions[n, k]
                start = cut.roller.start_states(plan.starts[n : n + 1])
                rewards.append(cut.roller.rollouts(cut.theta, start, offsets=offsets).rewards[0, t : t + lengths[n, k]])
            gain = (rewards[0] - rewards[1]) @ 0.95 ** np.arange(lengths[n, k]) / (1 + is_two_sided)
            assert vines.advantages[n, k] == pytest.approx(gain, rel=1e-9, abs=1e-13)


def test_advantages_are_clipped_at_a_multiple_of_their_median():
    advantages = np.array([[1.0, -2.0, 3.0, 0.0], [-400.0, 50.0, 0.5, 0.0]])  # median size 2.5 without the zeros
    np.testing.assert_array_equal(devine.clipped(advantages, 4), [[1, -2, 3, 0], [-10, 10, 0.5, 0]])
    np.testing.assert_array_equal(devine.clipped(advantages, None), advantages)
    assert not devine.clipped(np.zeros((2, 2)), 4).any()


def test_coordinates_take_turns_in_time():
    problem = toy(num_trajectories=6, num_branches=4, branch_times="uniform")
    plan = problem.plan()
    order = np.argsort(problem.times(plan), axis=None, kind="stable")
    coordinates = np.argmax(plan.directions.reshape(-1, 2)[order], axis=1)
    assert np.all(coordinates[1:] != coordinates[:-1])


def test_value_is_the_discounted_rest_of_the_trajectory():
    rewards = np.random.default_rng(0).standard_normal((2, 6))
    times, lengths = np.array([[0, 4], [5, 2]]), np.array([[6, 2], [1, 3]])
    values = devine.values_at(rewards, times, lengths, 0.9)
    expected = [
        [sum(0.9**i * r for i, r in enumerate(rewards[n, t : t + m])) for t, m in zip(times[n], lengths[n])]
        for n in range(2)
    ]
    np.testing.assert_allclose(values, expected)


def test_perturbation_undone_by_the_limits_contributes_nothing():
    vines = devine.Vines(
        observations=np.zeros((1, 1, 1, 2)), deltas=np.zeros((1, 1, 1, 1)), advantages=np.ones((1, 1)),
        even_advantages=np.ones((1, 1)), weights=np.ones((1, 1)), returns=np.zeros(1), discounted_returns=np.zeros(1),
        lengths=np.ones(1), num_steps=np.ones(1), num_again=np.zeros(1), observation_sums=np.zeros((1, 2)),
        observation_squares=np.zeros((1, 2)),
    )  # fmt: skip
    assert not devine.action_gradients(vines, np.ones(1)).any()


def test_recipe_gives_the_papers_coefficients():
    config = tdpo.Config(reward_scale=5, action_scale=5)
    assert (config.c2, config.delta_max, config.exploration_std) == (720, 5 / 600, 5 / 60)
    assert tdpo.Config(reward_scale=5, action_scale=1.5).c2 == 8000


def step_of(config, g, product):
    return tdpo.best_step(config, cg.solve(product, g, **tdpo.solver_options(config)))


@pytest.mark.parametrize(("c2", "delta_max", "is_bound"), [(1e6, 1.0, False), (1e-3, 0.1, True), (0, 0.1, True)])
def test_step_maximises_the_surrogate_inside_the_trust_region(c2, delta_max, is_bound):
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((8, 8))
    hessian, g = factor @ factor.T + np.eye(8), rng.standard_normal(8)
    config = tdpo.Config(c2=c2, delta_max=delta_max, cg_damping=0, cg_tolerance=1e-14, cg_iterations=100)
    step = step_of(config, g, lambda v: hessian @ v)
    direction = np.linalg.solve(hessian, g)
    half_quadratic = np.sqrt(step.delta_theta @ hessian @ step.delta_theta / 2)
    assert step.is_bound == is_bound
    assert step.step_w == pytest.approx(half_quadratic)
    if is_bound:
        assert half_quadratic == pytest.approx(delta_max)
    else:
        np.testing.assert_allclose(step.delta_theta, direction / c2)


@pytest.mark.parametrize("c2", [0, 3e4])
def test_step_of_few_rows_is_that_of_all_parameters(c2):
    options = {"num_trajectories": 3, "num_branches": 4, "held_steps": 2, "directions": "gaussian"}
    problem = Problem(
        linear_quadratic.kernel(), (7, 5), output_gain=1.0, c1_over_c2=0, c2=c2, cg_iterations=4, **options
    )
    vines = problem.vines(problem.plan())
    arguments = (problem.config, vines, problem.theta, problem.std, 0.9)
    expected = tdpo.step_of_blocks(*arguments, problem._blocks)
    found = tdpo.step_of_few_rows(*arguments, problem.roller.layer_sizes)
    assert expected.cg_iterations == 4 and expected.is_bound == (c2 == 0)
    for name, value in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-7, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("advantage", [1e308, 1e200])
def test_gradient_that_is_not_finite_stops_both_ways_to_step(advantage):
    problem = Problem(linear_quadratic.kernel(), (5,), output_gain=1.0, c1_over_c2=0, exploration_std=1e-9)
    vines = problem.vines(problem.plan())
    vines = vines._replace(advantages=np.full_like(vines.advantages, advantage))
    arguments = (problem.config, vines, problem.theta, problem.std, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        for step, rows in (
            (tdpo.step_of_blocks, problem._blocks),
            (tdpo.step_of_few_rows, problem.roller.layer_sizes),
        ):
            with pytest.raises(NotFinite, match="gradient"):
                step(*arguments, rows)


@pytest.mark.parametrize("c1_over_c2", [0.0, 3.0])
@pytest.mark.parametrize("ends_early", [False, True])
def test_half_of_vHv_is_the_mean_squared_change_of_action_and_sensitivity_over_the_visited_states(
    ends_early, c1_over_c2
):
    """By finite differences of the policy, weighted as the discount visits states before the trajectories end."""
    kernel = linear_quadratic.ending_kernel() if ends_early else linear_quadratic.kernel()
    options = {"gamma": 0.95, "branch_times": "all", "num_trajectories": 4, "exploration_std": 1e-5}
    problem = Problem(kernel, (4,), output_gain=1.0, **options)
    vines = problem.vines(problem.plan())
    rolled = problem.roller.rollouts(problem.theta, problem.roller.start_states(problem.plan().starts))
    visits = devine.discounts(0.95, problem.roller.horizon) * (
        np.arange(problem.roller.horizon) < rolled.lengths[:, None]
    )
    assert (visits == 0).any() == ends_early
    v, h, forward = (
        np.random.default_rng(2).normal(size=len(problem.theta)),
        1e-4,
        mlp.Forward(problem.roller.layer_sizes),
    )

    def change(of):
        return (of(problem.theta + h * v) - of(problem.theta - h * v)) / (2 * h)

    def sensitivity(theta):
        shifted = [forward(theta, rolled.observations + sign * h * unit) for unit in np.eye(2) for sign in (1, -1)]
        return np.concatenate([(shifted[0] - shifted[1]), (shifted[2] - shifted[3])], axis=2) / (2 * h)

    squared = np.sum(change(lambda theta: forward(theta, rolled.observations)) ** 2, axis=2)
    squared += c1_over_c2 * np.sum(change(sensitivity) ** 2, axis=2)  # [N, T]
    alive = problem.law.alive(vines.lengths)
    H = tdpo.surrogate_hessian(vines, problem.theta, alive, problem._blocks, c1_over_c2)
    assert v @ H(v) / 2 == pytest.approx(np.sum(visits * squared) / visits.sum(), rel=1e-5)


def test_payoff_is_the_discounted_average_reward_per_step():
    problem = toy(num_trajectories=3, num_branches=1)
    learner = tdpo.Learner(problem.config, problem.roller, Comm(), seed=0)
    starts = problem.roller.start_states(problem.plan().starts)
    rewards = problem.roller.rollouts(learner.theta, starts).rewards  # [N, T]
    gamma, T = problem.config.gamma, rewards.shape[1]
    expected = np.mean(rewards @ gamma ** np.arange(T)) * (1 - gamma) / (1 - gamma**T)
    assert learner.iterate(0, 0)["payoff"] == pytest.approx(expected, rel=1e-12)


def test_damping_is_left_out_of_the_trust_region():
    config = tdpo.Config(c2=0, delta_max=0.1, cg_damping=10.0, cg_tolerance=1e-14)
    step = step_of(config, np.ones(4), lambda v: 0.5 * v)
    assert np.sqrt(0.5 * step.delta_theta @ (0.5 * step.delta_theta)) == pytest.approx(0.1)


@pytest.mark.parametrize("c2", [0.0, 1.0])
def test_zero_gradient_takes_no_step(c2):
    step = step_of(tdpo.Config(c2=c2), np.zeros(3), lambda v: v)
    assert not step.delta_theta.any() and step.step_w == 0


def test_tdpo_reaches_the_optimum_of_the_linear_quadratic_toy():
    kernel = linear_quadratic.kernel()
    config = tdpo.Config(
        num_trajectories=16, num_branches=8, gamma=1.0, hidden_sizes=(), exploration_std=0.1,
        c2=1.0, c1_over_c2=0.0, delta_max=0.2, cg_damping=1e-3,
    )  # fmt: skip
    learner = tdpo.Learner(config, KernelRoller(kernel, (), 1.0), Comm(), seed=0)
    for iteration in range(80):
        learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.005 * best
    assert linear_quadratic.mean_cost(np.zeros((2, 2))) > 1.5 * best


def test_schedules_follow_the_timesteps():
    config = tdpo.Config(
        delta_max=0.1, delta_decay_steps=100.0, exploration_std=0.5, exploration_decay_steps=300.0,
        max_branch_steps=10, branch_growth_steps=200.0,
    )  # fmt: skip
    assert tdpo.scheduled(config, 0, 1000) == config
    later = tdpo.scheduled(config, 300, 1000)
    assert later.delta_max == pytest.approx(0.025) and later.exploration_std == pytest.approx(0.25)
    assert later.max_branch_steps == 25
    late = tdpo.Config(max_drop=1.0, max_drop_after=100.0)
    assert tdpo.scheduled(late, 99, 1000).max_drop is None and tdpo.scheduled(late, 100, 1000).max_drop == 1.0
    constant = tdpo.Config(branch_growth_steps=200.0)  # branches go to the horizon anyway
    assert tdpo.scheduled(constant, 10**9, 1000) == constant
    extreme = replace(config, branch_growth_steps=1e-30, delta_decay_steps=1e-30, schedule_power=10)
    last = tdpo.scheduled(extreme, 10**15, 1000)
    assert last.max_branch_steps == 1000 and last.delta_max > 0


def test_learner_returns_to_its_best_parameters_and_remembers_them_in_its_state():
    problem = toy(num_trajectories=4, num_branches=2, delta_max=0.1, c2=0, max_drop=0.5)
    learner = tdpo.Learner(problem.config, problem.roller, Comm(), seed=0)
    first = learner.theta
    assert learner.iterate(0, 0)["has_dropped"] == 0
    learner.theta = first + 50.0  # a step gone wrong
    again = tdpo.Learner(problem.config, problem.roller, Comm(), seed=0)
    again.load_state(learner.state())
    for one in (learner, again):
        row = one.iterate(1, 0)
        assert row["has_dropped"] == 1 and row["step_w"] == 0 and row["delta_max"] == 0.05
        assert np.array_equal(one.theta, first)
    assert np.array_equal(learner.theta, again.theta)


def test_log_shows_the_schedules_as_they_were_used():
    options = {"delta_decay_steps": 100.0, "exploration_decay_steps": 300.0, "exploration_std": 0.5}
    problem = toy(num_trajectories=2, num_branches=1, delta_max=0.1, c2=0, **options)
    row = tdpo.Learner(problem.config, problem.roller, Comm(), seed=0).iterate(1, 300)
    assert (row["delta_max"], row["exploration_std"]) == (pytest.approx(0.025), pytest.approx(0.25))


# Trajectories that end early.


@pytest.mark.parametrize("early_steps", [None, 6])
@pytest.mark.parametrize("law", ["geometric", "uniform"])
def test_branch_times_lie_inside_a_short_trajectory_and_weigh_its_visitation(law, early_steps):
    time_law = devine.TimeLaw(law, gamma=0.95, horizon=50, held_steps=3, early_steps=early_steps)
    quantiles = (np.arange(10000) + 0.5) / 10000
    if early_steps is not None:
        assert np.mean(time_law.times_and_weights(quantiles, 50)[0] < early_steps) > 0.75
    for length in (3, 4, 20, 50):
        times, weights = time_law.times_and_weights(quantiles, length)
        assert times.min() == 0 and times.max() == length - 3
        visitation = devine.discounts(0.95, 48)[: length - 2]
        for t in range(length - 2):
            assert weights[times == t].sum() / 10000 == pytest.approx(visitation[t], rel=0.05, abs=1e-3)
        assert time_law.alive(np.array([length])) == pytest.approx(visitation.sum())
    assert time_law.alive(np.array([50, 50])) == 1.0


@pytest.mark.parametrize("kernel", [linear_quadratic.ending_kernel(), linear_quadratic.fixed_ending_kernel()])
@pytest.mark.parametrize("num_shares", [1, 2, 3])
def test_vines_of_shares_are_those_of_the_whole_plan(kernel, num_shares):
    problem = Problem(kernel, (4,), output_gain=1.0, gamma=0.95, num_trajectories=7, num_branches=3)
    plan = problem.plan()
    order = plan.balanced_order()
    shares = [problem.vines(plan.share(part)) for part in np.array_split(order, num_shares)]
    found = devine.gather_vines(devine.Vines(*map(np.concatenate, zip(*shares))), order, Comm())
    assert found.num_again.any()
    for name, expected in problem.vines(plan)._asdict().items():
        assert np.array_equal(getattr(found, name), expected, equal_nan=True), name


@pytest.mark.parametrize("is_two_sided", [True, False])
def test_exhaustive_devine_is_the_gradient_where_trajectories_end_early(is_two_sided):
    """Ends when it leaves a box; no perturbation is large enough to change when."""
    problem = Problem(
        linear_quadratic.ending_kernel(), (4,), output_gain=1.0, gamma=0.95, branch_times="all", num_trajectories=4,
        exploration_std=1e-5, is_two_sided=is_two_sided,
    )  # fmt: skip
    plan = problem.plan()
    vines = problem.vines(plan)
    assert len(set(vines.lengths)) > 1 and vines.lengths.min() > 3 and vines.lengths.max() <= 30
    error = relative_error(problem.gradient(plan), problem.finite_difference_gradient(plan.starts, size=1e-7))
    assert error < (1e-5 if is_two_sided else 1e-3)


def test_trajectory_rolled_out_again_for_its_branch_times_is_counted_again():
    options = {"gamma": 0.95, "branch_times": "uniform", "num_trajectories": 4, "num_branches": 3}
    problem = Problem(linear_quadratic.ending_kernel(), (4,), output_gain=1.0, exploration_std=1e-5, **options)
    plan = problem.plan()
    vines = problem.vines(plan)
    for n in range(4):
        times, _ = problem.law.times_and_weights(plan.quantiles[n], int(vines.lengths[n]))
        assert vines.num_again[n] == (vines.lengths[n] if vines.lengths[n] < 30 else 0)
        assert vines.num_steps[n] == 2 * (vines.lengths[n] - times).sum()


# Normalised observations.


def test_folding_statistics_into_the_first_layer_is_the_same_function():
    rng = np.random.default_rng(0)
    observations = 5 + np.array([1.0, 200.0, 0.0]) * rng.standard_normal((50, 3))
    half = observations.reshape(2, 25, 3)
    stats = RunningStats.none(3).merged(np.array([25.0, 25.0]), half.sum(axis=1), (half**2).sum(axis=1))
    np.testing.assert_allclose(stats.mean, observations.mean(axis=0))
    np.testing.assert_allclose(stats.std, [*observations.std(axis=0)[:2], 1.0], rtol=1e-9)
    sizes = (3, 8, 2)
    theta, act = rng.standard_normal(mlp.num_parameters(sizes)), mlp.compile_act(sizes)
    raw = folded(theta, sizes, stats)
    for observation in observations:
        expected = mlp.act_once(act, sizes, theta, (observation - stats.mean) / stats.std)
        np.testing.assert_allclose(mlp.act_once(act, sizes, raw, observation), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(unfolded(raw, sizes, stats), theta, rtol=1e-9, atol=1e-9)


def test_normalised_learner_reaches_the_optimum_and_resumes_the_same():
    config = tdpo.Config(
        num_trajectories=16, num_branches=8, gamma=1.0, hidden_sizes=(), exploration_std=0.1, c2=1.0, c1_over_c2=0.0,
        delta_max=0.2, cg_damping=1e-3, use_observation_normalisation=True,
    )  # fmt: skip
    roller = KernelRoller(linear_quadratic.kernel(), (), 1.0)
    learner, again = (tdpo.Learner(config, roller, Comm(), seed=0) for _ in range(2))
    for iteration in range(80):
        if iteration == 40:
            again.load_state(learner.state())
        learner.iterate(iteration, 0)
    for iteration in range(40, 80):
        again.iterate(iteration, 0)
    assert np.array_equal(learner.theta, again.theta)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.01 * best


# The advanced variant.


def test_gradient_is_unbiased_when_the_scales_differ():
    options = {"num_trajectories": 6, "gamma": 0.95, "branch_times": "uniform", "num_branches": 3}
    every = toy(num_trajectories=6, branch_times="all", exploration_std=1e-3)
    starts = np.random.default_rng(5).random((6, 2))
    exact = every.gradient(every.plan()._replace(starts=starts))
    problem = toy(exploration_std=1e-3, directions="gaussian", **options)
    problem.std = np.array([1e-3, 4e-3])
    samples = np.array([problem.gradient(problem.plan(i)._replace(starts=starts)) for i in range(400)])
    standard_error = samples.std(axis=0) / np.sqrt(len(samples)) + 1e-12
    assert np.abs((samples.mean(axis=0) - exact) / standard_error).max() < 4.5  # of 22 parameters


def test_advanced_variant_reaches_the_optimum_of_the_toy_and_counts_its_search():
    kernel = linear_quadratic.kernel()
    config = tdpo.Config(
        variant="advanced", num_trajectories=8, num_branches=4, gamma=1.0, hidden_sizes=(), exploration_std=0.1,
        c2=0, c1_over_c2=0, delta_max=1.0, cg_damping=1e-3, line_search_size=4, line_search_span=0.01,
    )  # fmt: skip
    learner = tdpo.Learner(config, KernelRoller(kernel, (), 1.0), Comm(), seed=0)
    for iteration in range(60):
        row = learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.01 * best
    assert row["num_timesteps"] > 8 * 30 + 24 * 4 * 30  # mains and search, before any branch


@pytest.mark.parametrize(
    ("options", "num_ranks", "message"),
    [
        ({"num_trajectories": 4}, 8, "pass --num_trajectories 8 or run on 4 ranks"),
        ({"held_steps": 31}, 1, "held_steps must be at most the horizon"),
        ({"variant": "advanced", "directions": "coordinate"}, 1, "directions must be gaussian"),
        ({"held_steps": 8, "max_branch_steps": 7}, 1, "max_branch_steps must be at least held_steps"),
        ({"num_trajectories": 10**6, "num_branches": 10**6}, 1, "GB"),
    ],
)
def test_impossible_work_is_refused(options, num_ranks, message):
    with pytest.raises(ValueError, match=message):
        tdpo.check(tdpo.Config(**options), linear_quadratic.kernel(), num_ranks)


def test_not_a_number_stops_and_names_the_quantity():
    problem = toy(num_trajectories=2, num_branches=1)
    learner = tdpo.Learner(problem.config, problem.roller, Comm(), seed=0)
    learner.theta = np.full_like(learner.theta, np.nan)
    with pytest.raises(FloatingPointError, match="return"):
        learner.iterate(0, 0)
