import linear_quadratic
import numpy as np
import pytest
from devine_problem import Problem, toy

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks.jacobian import SensitivityJacobian
from tdpo_baselines.common.optim import cg
from tdpo_baselines.common.parallel.checks import NotFinite
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.tdpo import Config, devine, tdpo


def step_of(config, g, product):
    return tdpo.scale_to_trust_region(cg.solve(product, g, **config.solver), config.c2, config.delta_max)


@pytest.mark.parametrize(("c2", "delta_max", "is_bound"), [(1e6, 1.0, False), (1e-3, 0.1, True), (0, 0.1, True)])
def test_step_maximises_the_surrogate_inside_the_trust_region(c2, delta_max, is_bound):
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((8, 8))
    hessian, g = factor @ factor.T + np.eye(8), rng.standard_normal(8)
    config = Config(variant="basic", c2=c2, delta_max=delta_max, cg_damping=0, cg_tolerance=1e-14, cg_iterations=100)
    step = step_of(config, g, lambda v: hessian @ v)
    direction = np.linalg.solve(hessian, g)
    half_quadratic = np.sqrt(step.delta_theta @ hessian @ step.delta_theta / 2)
    assert step.is_bound == is_bound
    assert step.step_w == pytest.approx(half_quadratic)
    if is_bound:
        assert half_quadratic == pytest.approx(delta_max)
    else:
        np.testing.assert_allclose(step.delta_theta, direction / c2)


SOLVER = {"max_iterations": 4, "tolerance": 1e-9, "damping": 0.01}


def solve_both_ways(problem, vines, num_groups=3):
    """Return the solution from the Gram matrix, and that from products summed over groups."""
    one, several = (tdpo.make_rows(vines, problem.std, problem.config.gamma, 0.9, num) for num in (1, num_groups))
    by_gram = tdpo.solve_by_gram(one, problem.theta, problem.sizes, **SOLVER)
    shared = tdpo.solve_shared(
        several, problem.theta, problem.sizes, lambda groups: Comm().sum(groups, num_groups), c1_over_c2=0, **SOLVER
    )
    return by_gram, shared


@pytest.mark.parametrize("hidden_sizes", [(), (7,), (7, 5)])
@pytest.mark.parametrize("num_groups", [1, 2, 3])  # with two the last is padded
def test_coefficients_of_few_rows_and_shared_products_give_the_same_solution(hidden_sizes, num_groups):
    options = {"num_trajectories": 3, "num_branches": 4, "held_steps": 2, "directions": "gaussian"}
    problem = Problem(linear_quadratic.kernel(), hidden_sizes, output_gain=1.0, **options)
    by_gram, shared = solve_both_ways(problem, problem.vines(problem.plan()), num_groups)
    assert by_gram.num_iterations == shared.num_iterations > 1
    for name, value in shared._asdict().items():
        np.testing.assert_allclose(getattr(by_gram, name), value, rtol=1e-7, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("advantage", [1e308, 1e200])
def test_gradient_that_is_not_finite_stops_both_ways_to_solve(advantage):
    problem = Problem(linear_quadratic.kernel(), (5,), output_gain=1.0, exploration_std=1e-9)
    vines = problem.vines(problem.plan())
    vines = vines._replace(advantages=np.full_like(vines.advantages, advantage))
    with np.errstate(over="ignore", invalid="ignore"):
        for solution in solve_both_ways(problem, vines):
            with pytest.raises(NotFinite, match="gradient"):
                tdpo.scale_to_trust_region(solution, 1.0, 0.1)


@pytest.mark.parametrize(
    ("options", "expected"), [({}, True), ({"c1_over_c2": 1.0}, False), ({"num_branches": 33}, False)]
)
def test_few_rows_without_sensitivity_term_are_solved_by_gram(options, expected):
    problem = toy(**{"num_trajectories": 4, "num_branches": 32, "c1_over_c2": 0.0, **options})  # 4 x 32 x 2 rows
    learner = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0)
    assert learner.is_solved_by_gram == expected
    assert learner.iterate(0, 0)["step_w"] > 0


@pytest.mark.parametrize("c1_over_c2", [0.0, 3.0])
def test_rank_without_rows_adds_nothing_and_solves_as_the_others(c1_over_c2):
    problem = toy()
    rows = tdpo.make_rows(problem.vines(problem.plan()), problem.std, problem.config.gamma, 0.9)
    products = []

    def solve(rows, total):
        return tdpo.solve_shared(
            rows, problem.theta, problem.sizes, total, c1_over_c2=c1_over_c2, **problem.config.solver
        )

    def total(groups):
        products.append(groups.sum(axis=0))
        return products[-1]

    expected = solve(rows, total)
    others = iter(products)
    idle = solve(tdpo.Rows(*(part[:0] for part in rows)), lambda groups: groups.sum(axis=0) + next(others))
    assert np.array_equal(idle.x, expected.x)


@pytest.mark.parametrize("c1_over_c2", [0.0, 3.0])
@pytest.mark.parametrize("ends_early", [False, True])
def test_half_of_vHv_is_the_mean_squared_change_of_action_and_sensitivity_over_the_visited_states(
    ends_early, c1_over_c2
):
    """Compare with finite differences of the policy, weighted as the discount visits states before the end."""
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
    alive = problem.nu.alive_fraction(vines.lengths)
    rows = tdpo.make_rows(vines, problem.std, problem.config.gamma, alive)
    jacobian = SensitivityJacobian(problem.theta, rows.observations, problem.sizes)
    weights = tdpo.sensitivity_weights(rows.weights, problem.sizes[0], c1_over_c2)
    Hv = tdpo.hessian_product(jacobian, weights, v)[0]
    assert v @ Hv / 2 == pytest.approx(np.sum(visits * squared) / visits.sum(), rel=1e-5)


def test_payoff_is_the_discounted_average_reward_per_step():
    problem = toy(num_trajectories=3, num_branches=1)
    learner = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0)
    starts = problem.roller.start_states(problem.plan().starts)
    rewards = problem.roller.rollouts(learner.theta, starts).rewards  # [N, T]
    gamma, T = problem.config.gamma, rewards.shape[1]
    expected = np.mean(rewards @ gamma ** np.arange(T)) * (1 - gamma) / (1 - gamma**T)
    assert learner.iterate(0, 0)["payoff"] == pytest.approx(expected, rel=1e-12)


def test_damping_is_left_out_of_the_trust_region():
    config = Config(variant="basic", c2=0, delta_max=0.1, cg_damping=10.0, cg_tolerance=1e-14)
    step = step_of(config, np.ones(4), lambda v: 0.5 * v)
    assert np.sqrt(0.5 * step.delta_theta @ (0.5 * step.delta_theta)) == pytest.approx(0.1)


@pytest.mark.parametrize("c2", [0.0, 1.0])
def test_zero_gradient_takes_no_step(c2):
    step = step_of(Config(variant="basic", c2=c2), np.zeros(3), lambda v: v)
    assert not step.delta_theta.any() and step.step_w == 0


def test_tdpo_reaches_the_optimum_of_the_linear_quadratic_toy():
    kernel = linear_quadratic.kernel()
    config = Config(variant="basic", 
        num_trajectories=16, num_branches=8, gamma=1.0, hidden_sizes=(), exploration_std=0.1,
        c2=1.0, c1_over_c2=0.0, delta_max=0.2, cg_damping=1e-3,
    )  # fmt: skip
    learner = tdpo.PaperLearner(config, KernelRoller(kernel, (), 1.0), Comm(), seed=0)
    for iteration in range(80):
        learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.005 * best
    assert linear_quadratic.mean_cost(np.zeros((2, 2))) > 1.5 * best


def test_learner_returns_to_its_best_parameters_and_remembers_them_in_its_state():
    problem = toy(num_trajectories=4, num_branches=2, delta_max=0.1, c2=0, max_drop=0.5)
    learner = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0)
    first = learner.theta
    assert learner.iterate(0, 0)["has_dropped"] == 0
    learner.theta = first + 50.0  # a step gone wrong
    again = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0)
    again.load_state(learner.state())
    for one in (learner, again):
        row = one.iterate(1, 0)
        assert row["has_dropped"] == 1 and row["step_w"] == 0 and row["delta_max"] == 0.05
        assert np.array_equal(one.theta, first)
    assert np.array_equal(learner.theta, again.theta)


def test_log_shows_the_schedules_as_they_were_used():
    options = {"delta_decay_steps": 100.0, "exploration_decay_steps": 300.0, "exploration_std": 0.5}
    problem = toy(num_trajectories=2, num_branches=1, delta_max=0.1, c2=0, **options)
    row = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0).iterate(1, 300)
    assert (row["delta_max"], row["exploration_std"]) == (pytest.approx(0.025), pytest.approx(0.25))


def test_normalised_learner_reaches_the_optimum_and_resumes_the_same():
    config = Config(variant="basic", 
        num_trajectories=16, num_branches=8, gamma=1.0, hidden_sizes=(), exploration_std=0.1, c2=1.0, c1_over_c2=0.0,
        delta_max=0.2, cg_damping=1e-3, use_observation_normalisation=True,
    )  # fmt: skip
    roller = KernelRoller(linear_quadratic.kernel(), (), 1.0)
    learner, again = (tdpo.PaperLearner(config, roller, Comm(), seed=0) for _ in range(2))
    for iteration in range(80):
        if iteration == 40:
            again.load_state(learner.state())
        learner.iterate(iteration, 0)
    for iteration in range(40, 80):
        again.iterate(iteration, 0)
    assert np.array_equal(learner.theta, again.theta)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.01 * best


def test_advanced_variant_reaches_the_optimum_of_the_toy_and_counts_its_search():
    kernel = linear_quadratic.kernel()
    config = Config(
        variant="advanced", num_trajectories=8, num_branches=4, gamma=1.0, hidden_sizes=(), exploration_std=0.1,
        c2=0, c1_over_c2=0, delta_max=1.0, cg_damping=1e-3, line_search_size=4, line_search_span=0.01,
    )  # fmt: skip
    learner = tdpo.PaperLearner(config, KernelRoller(kernel, (), 1.0), Comm(), seed=0)
    for iteration in range(60):
        row = learner.iterate(iteration, 0)
    best = linear_quadratic.mean_cost(linear_quadratic.best_gain())
    assert linear_quadratic.mean_cost(learner.theta[:4].reshape(2, 2)) < 1.01 * best
    assert row["num_timesteps"] > 8 * 30 + 24 * 4 * 30  # mains and search, before any branch


def test_not_a_number_stops_and_names_the_quantity():
    problem = toy(num_trajectories=2, num_branches=1)
    learner = tdpo.PaperLearner(problem.config, problem.roller, Comm(), seed=0)
    learner.theta = np.full_like(learner.theta, np.nan)
    with pytest.raises(FloatingPointError, match="return"):
        learner.iterate(0, 0)
