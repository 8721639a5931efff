"""DeVine on MuJoCo tasks, whose branches are restored or replayed."""

import numpy as np

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.networks.jacobian import Jacobian
from tdpo_baselines.common.parallel.seeding import generator
from tdpo_baselines.common.sampling.gym_roller import GymRoller
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, devine
from tdpo_baselines.tdpo.tdpo import make_rows


def swimmer(config, horizon):
    options = registry.resolve_options("Swimmer-v5", {"max_episode_steps": str(horizon), "compiled": "false"})
    environment = registry.make_environment("Swimmer-v5", options)
    roller = GymRoller(environment, config.hidden_sizes, config.gamma)
    theta = mlp.init_parameters(roller.layer_sizes, np.random.default_rng(0), 0.3)
    std = np.full(2, config.exploration_std)
    plan = devine.draw_plan(config, generator(0, "plan", 0), std, horizon=horizon, start_size=1)
    return roller, theta, std, plan


def test_vines_from_restored_and_from_replayed_states_are_the_same_bit_for_bit():
    config = Config(
        variant="basic",
        num_trajectories=3,
        num_branches=2,
        exploration_std=0.1,
        held_steps=2,
        gamma=0.99,
        hidden_sizes=(8,),
    )
    vines = []
    for is_restored in (True, False):
        roller, theta, _, plan = swimmer(config, 30)
        assert roller.environment.is_restored
        roller.environment.is_restored = is_restored
        roller = GymRoller(roller.environment, config.hidden_sizes, config.gamma)
        vines.append(devine.roll_vines(config, roller, devine.TimeDistribution(config, 30), theta, plan))
    for name in set(devine.Vines._fields) - {"branch_steps", "even_advantages"}:
        assert np.array_equal(getattr(vines[0], name), getattr(vines[1], name)), name
    assert np.all(vines[1].branch_steps > vines[0].branch_steps)  # replayed prefixes are counted


def test_exhaustive_devine_is_the_gradient_of_a_mujoco_task():
    config = Config(
        variant="basic", num_trajectories=2, branch_times="all", gamma=0.99, hidden_sizes=(8,), exploration_std=1e-4
    )
    roller, theta, std, plan = swimmer(config, 12)
    vines = devine.roll_vines(config, roller, devine.TimeDistribution(config, 12), theta, plan)
    rows = make_rows(vines, std, config.gamma, 1.0)
    gradient = Jacobian(theta, rows.observations, roller.layer_sizes).vjp(rows.gradients)[0]
    starts, weights = roller.start_states(plan.starts), devine.discounts(0.99, 12)

    def payoff(parameters):
        return (roller.rollouts(parameters, starts).rewards @ weights).mean()

    expected = np.array([(payoff(theta + e) - payoff(theta - e)) / 2e-4 for e in 1e-4 * np.eye(len(theta))])
    assert np.linalg.norm(gradient - expected) / np.linalg.norm(expected) < 1e-4
