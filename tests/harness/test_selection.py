"""The choice of the best parameters, on a compiled task with random starts."""

import numpy as np
import pytest

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.harness import selection
from tdpo_baselines.harness.selection import NUM_STARTS, Selection
from tdpo_baselines.options import registry

CONFIG = {"hidden_sizes": (4,), "num_trajectories": 4, "gamma": 0.9}


@pytest.fixture(scope="module")
def roller():
    environment = registry.make_environment("pendulum-20hz", registry.resolve_options("pendulum-20hz", {}))
    return registry.make_roller(environment, registry.algorithm("tdpo").Config.from_values(CONFIG))


def policy(roller, seed: int) -> np.ndarray:
    return mlp.init_parameters(roller.layer_sizes, generator(seed, "weights"), 1.0)


def payoff_of(roller, theta: np.ndarray, seed: int) -> float:
    """Return the mean payoff from the fixed starts, with Python's sums."""
    states = roller.start_states(generator(seed, "selection").random((NUM_STARTS, roller.start_size)))
    rewards = roller.rollouts(theta, states).rewards
    weights = [0.9**t for t in range(roller.horizon)]
    return float(np.mean([sum(w * r for w, r in zip(weights, row)) for row in rewards]) / sum(weights))


def test_best_of_several_lucky_candidates_is_the_best_on_the_fixed_starts(roller, monkeypatch):
    monkeypatch.setattr(selection, "TRAINING_PER_EVALUATION", 0)
    thetas = [policy(roller, seed) for seed in range(4)]
    payoffs = [payoff_of(roller, theta, seed=7) for theta in thetas]
    chosen = Selection(Comm(), 7, thetas[0])
    for number, theta in enumerate(thetas):
        chosen.propose(-payoffs[number], number, theta)  # the best in training is the worst
        chosen.choose(roller, 0)
    best = int(np.argmax(payoffs))
    assert chosen.best.iteration == best and np.array_equal(chosen.best.theta, thetas[best])
    assert chosen.best.payoff == pytest.approx(payoffs[best], rel=1e-12)
    assert chosen.num_timesteps == 4 * NUM_STARTS * roller.horizon


def test_evaluations_take_at_most_a_tenth_of_the_timesteps_and_see_the_best_candidate_since_the_last(roller):
    chosen, thetas = Selection(Comm(), 0, policy(roller, 0)), [policy(roller, seed) for seed in range(4)]
    one = NUM_STARTS * roller.horizon
    for number, (payoff, total) in enumerate([(-3.0, 10 * one), (-1.0, 20 * one - 1), (-2.0, 20 * one)]):
        chosen.propose(payoff, number, thetas[number])
        chosen.choose(roller, total)
        assert chosen.num_timesteps == (one, one, 2 * one)[number]
    measured = [payoff_of(roller, theta, seed=0) for theta in thetas[:2]]
    assert chosen.best.iteration == int(np.argmax(measured))  # never the third
    assert str(chosen) == f", best payoff {chosen.best.payoff:.6g} ({2 * one} more timesteps to choose it)"


def test_payoffs_of_training_choose_until_an_evaluation_is_due_and_are_forgotten_then(roller):
    chosen, thetas = Selection(Comm(), 0, policy(roller, 0)), [policy(roller, seed) for seed in range(3)]
    due = 10 * NUM_STARTS * roller.horizon
    for number, payoff in enumerate([5.0, 7.0, 6.0]):  # more than any evaluation
        chosen.propose(payoff, number, thetas[number])
        chosen.choose(roller, due - 1)
        assert chosen.best.iteration == (0, 1, 1)[number] and chosen.num_timesteps == 0
    chosen.choose(roller, due)
    assert chosen.best.iteration == 1 and chosen.best.payoff == pytest.approx(payoff_of(roller, thetas[1], seed=0))
    chosen.propose(8.0, 3, thetas[2])
    chosen.choose(roller, due)  # the next evaluation is not due yet
    assert chosen.best.iteration == 1 and chosen.num_timesteps == due // 10
    chosen.restart(thetas[0])
    chosen.propose(-9.0, 4, thetas[2])
    chosen.choose(roller, due)
    assert chosen.best.iteration == 4 and chosen.best.payoff == -9.0  # of the next stage


def test_single_start_takes_the_payoffs_of_training_and_costs_nothing():
    environment = registry.make_environment("leg", registry.resolve_options("leg", {}))
    assert environment.start_size == 0
    chosen = Selection(Comm(), 0, np.zeros(2))
    assert str(chosen) == "" and not chosen.has_best
    for number, payoff in enumerate([-3.0, -1.0, -2.0]):
        chosen.propose(payoff, number, np.full(2, number))
        chosen.choose(environment, total_timesteps=100)
    assert chosen.best.iteration == 1 and chosen.best.payoff == -1.0 and chosen.num_timesteps == 0


def test_selection_continues_from_its_state(roller):
    first, again = (Selection(Comm(), 0, policy(roller, 0)) for _ in range(2))
    first.propose(-1.0, 3, policy(roller, 3))
    first.choose(roller, 10**6)
    first.propose(-2.0, 4, policy(roller, 4))
    again.load_state({name: np.asarray(value) for name, value in first.state().items()})
    for each in (first, again):
        each.choose(roller, 10**9)
    for name, value in first.state().items():
        assert np.array_equal(again.state()[name], value), name


class Ranks(Comm):
    """One of several ranks, which notes the states it rolls out."""

    size = 3

    def gather(self, mine, num_items):
        self.mine = mine
        return np.zeros((num_items, *mine.shape[1:]))


def test_each_rank_rolls_out_its_share_and_all_shares_together_are_the_evaluation(roller):
    whole, theta, parts = Selection(Comm(), 0, policy(roller, 0)), policy(roller, 1), []
    for rank in range(3):
        comm = Ranks()
        comm.rank = rank
        one = Selection(comm, 0, theta)
        one.propose(0.0, 0, theta)
        one.choose(roller, 10**6)
        parts.append(comm.mine)
    whole.propose(0.0, 0, theta)
    whole.choose(roller, 10**6)
    returns = np.concatenate(parts)[:, 0]
    assert len(returns) == NUM_STARTS
    assert whole.best.payoff == returns.mean() / (roller.gamma ** np.arange(roller.horizon)).sum()
