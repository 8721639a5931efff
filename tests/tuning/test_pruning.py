"""Ending runs before their time."""

import math

import pytest

from tdpo_baselines.options.budget import Budget
from tdpo_baselines.tuning.pruning import NUM_PARTS, Pruner, part_returns

pytest.importorskip("optuna")
PRUNERS = ("median", "hyperband")
BUDGET = Budget(num_timesteps=900)
EARLIER = [[-100.0 + 10 * number + part for part in range(NUM_PARTS)] for number in range(10)]


def rows(returns):
    return [
        {"iteration": number, "total_timesteps": 50 * number, "episodes": number, "return_mean": value}
        for number, value in enumerate(returns, start=1)
    ]


def test_return_of_a_part_is_the_mean_over_its_rows():
    assert part_returns(BUDGET, rows([1, 3, 5, 7, 9])) == [2, 6]
    assert part_returns(BUDGET, []) == [] and len(part_returns(BUDGET, rows(range(18)))) == NUM_PARTS
    assert all(map(math.isnan, part_returns(BUDGET, rows([math.nan] * 4))))


@pytest.mark.parametrize("name", PRUNERS)
def test_run_that_is_worse_than_earlier_ones_is_pruned_and_a_better_one_is_not(name):
    pruner = Pruner(name, EARLIER)
    ends = [pruner(BUDGET, rows([value] * 18)) for value in (-1000.0, 0.0)]
    assert 0 < ends[0] < NUM_PARTS and ends[1] == 0


@pytest.mark.parametrize("name", PRUNERS)
def test_decision_needs_no_more_than_the_rows_so_far_and_is_made_again(name):
    pruner = Pruner(name, [*EARLIER, EARLIER[0][:2]])
    end = pruner(BUDGET, rows([-1000.0] * 18))
    assert pruner(BUDGET, rows([-1000.0] * (2 * end))) == end and pruner(BUDGET, rows([-1000.0] * (2 * end - 1))) == 0
    assert Pruner(name, [*EARLIER, EARLIER[0][:2]])(BUDGET, rows([-1000.0] * 18)) == end


@pytest.mark.parametrize("name", PRUNERS)
def test_first_runs_are_not_pruned(name):
    assert Pruner(name, [])(BUDGET, rows([-1000.0] * 18)) == 0
