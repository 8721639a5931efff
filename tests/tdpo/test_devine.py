import linear_quadratic
import numpy as np
import pytest
from devine_problem import Problem, relative_error, swinging_pendulum, toy

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.tdpo import Config, devine, tdpo


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
def test_branch_times_follow_their_distribution(law, is_stratified):
    config = Config(
        variant="basic", num_trajectories=50, num_branches=8, branch_times=law, is_stratified=is_stratified, gamma=0.9
    )
    nu = devine.TimeDistribution(config, horizon=20)
    counts = np.zeros(20)
    for i in range(100):
        plan = devine.draw_plan(config, generator(0, "plan", i), np.ones(2), horizon=20, start_size=2)
        times = np.array([nu.times_and_weights(quantiles, 20)[0] for quantiles in plan.quantiles])
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
    assert vines.deltas.shape == (4, 30 * 2, 3, 2)
    np.testing.assert_allclose(vines.deltas[:, :, 0], plan.directions, rtol=1e-9)
    assert not vines.deltas[:, -2:, 1:].any() and not vines.shares[:, -2:, 1:].any()  # after the last step
    g, exact = held.gradient(plan), single.gradient(single.plan()._replace(starts=plan.starts))
    assert g @ exact / np.linalg.norm(g) / np.linalg.norm(exact) > 0.95


@pytest.mark.parametrize("held_steps", [5, 20])
def test_held_perturbations_average_over_neighbouring_steps_and_weigh_all_steps_alike(held_steps):
    """Where actions depend smoothly on time, the gradient is nearly that of single steps."""
    single = swinging_pendulum(exploration_std=1e-4)
    held = swinging_pendulum(exploration_std=1e-4, held_steps=held_steps)
    starts = single.plan().starts
    g, exact = (problem.gradient(problem.plan()._replace(starts=starts)) for problem in (held, single))
    assert relative_error(g, exact) < 0.01


@pytest.mark.parametrize(
    ("kernel", "held_steps"),
    [(linear_quadratic.kernel(), 1), (linear_quadratic.kernel(), 4), (linear_quadratic.ending_kernel(), 1)],
)
def test_weights_of_the_rows_are_the_visitation(kernel, held_steps):
    options = {"branch_times": "all", "num_trajectories": 3, "held_steps": held_steps}
    problem = Problem(kernel, (4,), output_gain=1.0, gamma=0.95, **options)
    vines = problem.vines(problem.plan())
    alive = problem.nu.alive_fraction(vines.lengths)
    rows = tdpo.make_rows(vines, problem.std, 0.95, alive)
    assert rows.weights.sum() == pytest.approx(2)


def test_steps_count_main_and_branches_once_each():
    problem = toy(num_trajectories=5, num_branches=3)
    plan = problem.plan()
    vines = problem.vines(plan)
    assert vines.lengths.tolist() == [30] * 5
    assert vines.branch_steps.tolist() == (2 * (30 - problem.times(plan)).sum(axis=1)).tolist()


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
    row = tdpo.PaperLearner(single.config, single.roller, Comm(), 0).iterate(0, 0)
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
    assert vines.branch_steps.tolist() == ((1 + is_two_sided) * lengths.sum(axis=1)).tolist()
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
    np.testing.assert_array_equal(devine.clip_advantages(advantages, 4), [[1, -2, 3, 0], [-10, 10, 0.5, 0]])
    np.testing.assert_array_equal(devine.clip_advantages(advantages, None), advantages)
    assert not devine.clip_advantages(np.zeros((2, 2)), 4).any()


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
        even_advantages=np.ones((1, 1)), weights=np.ones((1, 1)), shares=np.ones((1, 1, 1)), returns=np.zeros(1),
        discounted_returns=np.zeros(1), lengths=np.ones(1), branch_steps=np.ones(1), repeated_steps=np.zeros(1),
        observation_sums=np.zeros((1, 2)), observation_squares=np.zeros((1, 2)),
    )  # fmt: skip
    assert not devine.action_gradients(vines, np.ones(1)).any()


@pytest.mark.parametrize("early_steps", [None, 6])
@pytest.mark.parametrize("law", ["geometric", "uniform"])
def test_branch_times_lie_inside_a_short_trajectory_and_weigh_its_visitation(law, early_steps):
    config = Config(variant="basic", branch_times=law, gamma=0.95, held_steps=3, early_branch_steps=early_steps)
    nu = devine.TimeDistribution(config, horizon=50)
    quantiles = (np.arange(10000) + 0.5) / 10000
    if early_steps is not None:
        assert np.mean(nu.times_and_weights(quantiles, 50)[0] < early_steps) > 0.75
    for length in (3, 4, 20, 50):
        times, weights = nu.times_and_weights(quantiles, length)
        assert times.min() == 0 and times.max() == length - 1
        visitation = devine.discounts(0.95, 50)[:length]
        for t in range(length):
            assert weights[times == t].sum() / 10000 == pytest.approx(visitation[t], rel=0.05, abs=1e-3)
        assert nu.alive_fraction(np.array([length])) == pytest.approx(visitation.sum())
    assert nu.alive_fraction(np.array([50, 50])) == 1.0


@pytest.mark.parametrize("kernel", [linear_quadratic.ending_kernel(), linear_quadratic.fixed_ending_kernel()])
@pytest.mark.parametrize("num_shares", [1, 2, 3])
def test_vines_of_shares_are_those_of_the_whole_plan(kernel, num_shares):
    problem = Problem(kernel, (4,), output_gain=1.0, gamma=0.95, num_trajectories=7, num_branches=3)
    plan = problem.plan()
    order = plan.balanced_order()
    shares = [problem.vines(plan.select(part)) for part in np.array_split(order, num_shares)]
    found = devine.gather_by_trajectory(devine.Vines(*map(np.concatenate, zip(*shares))), order, Comm())
    assert found.repeated_steps.any()
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
        times, _ = problem.nu.times_and_weights(plan.quantiles[n], int(vines.lengths[n]))
        assert vines.repeated_steps[n] == (vines.lengths[n] if vines.lengths[n] < 30 else 0)
        assert vines.branch_steps[n] == 2 * (vines.lengths[n] - times).sum()


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
