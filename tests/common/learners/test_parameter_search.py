import linear_quadratic
import numpy as np
import pytest

from tdpo_baselines.common.learners.parameter_search import ParameterSearch, SearchSettings, check_search
from tdpo_baselines.common.parallel.checks import NotFinite
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller


def make_search(kernel=None, **options) -> ParameterSearch:
    config, kernel = SearchSettings(**options), kernel or linear_quadratic.limited_kernel()
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma, config.network_style(kernel))
    return ParameterSearch(config, roller, Comm(), seed=1)


def test_scores_are_the_mean_payoffs_of_each_candidate_from_its_starts():
    search, rng = make_search(gamma=0.9), np.random.default_rng(0)
    candidates, starts = rng.normal(size=(3, 6)), rng.random((3, 4, 2))
    payoffs, num_steps = search.score(candidates, starts)
    alone = [search.roller.rollouts(c, search.roller.start_states(s)) for c, s in zip(candidates, starts)]
    scale = (1 - 0.9) / (1 - 0.9**30)
    assert payoffs == pytest.approx([scale * a.discounted_returns.mean() for a in alone], rel=1e-12)
    assert num_steps == sum(a.lengths.sum() for a in alone) < 3 * 4 * 30


def test_candidate_that_diverges_counts_as_the_worst_of_the_others():
    search, starts = make_search(linear_quadratic.kernel()), np.full((3, 1, 2), 0.9)
    candidates = np.array([[0.0] * 6, [1e300] * 6, [-1.0, 0, 0, -1.0, 0, 0]])
    with np.errstate(all="ignore"):
        payoffs, _ = search.score(candidates, starts)
        assert payoffs[1] == min(payoffs[0], payoffs[2]) and np.isfinite(payoffs).all()
        with pytest.raises(NotFinite, match="all candidates"):
            search.score(candidates[1:2], starts[1:2])


def test_actions_are_in_units_of_half_their_range():
    search = make_search()
    search.theta = np.array([0, 0, 0, 0, 0.5, -0.5])  # biases alone
    actions = search.roller.rollouts(search.theta, np.zeros((1, 2))).actions[0, 0]
    assert actions.tolist() == [1.0 + 0.5 * 2.0, -0.25]  # centre and half of [-1, 3], [-0.5, 0.5]


def test_new_statistics_leave_the_policy_as_it_is():
    search = make_search()
    search.theta = np.random.default_rng(0).normal(size=6)
    before = search.theta
    row = search.measure_centre(np.random.default_rng(1).random((5, 2)))
    assert search.observation_stats.count == row["num_timesteps"] > 0
    assert search.to_theta(search.coordinates) == pytest.approx(before, rel=1e-12)
    assert search.coordinates != pytest.approx(before)


def test_a_single_start_needs_one_episode():
    assert make_search(linear_quadratic.fixed_start_kernel(), num_starts=5).num_starts == 1


def test_ranks_without_a_candidate_are_refused():
    with pytest.raises(ValueError, match="num_trajectories must be at least"):
        check_search(SearchSettings(num_trajectories=2), linear_quadratic.kernel(), num_ranks=3)
