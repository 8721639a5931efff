import numpy as np
import pytest

from envs import IDS, gym_env
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller

TASKS = [name for name, options in IDS.items() if options["kernel"].startswith("envs.control")]


@pytest.mark.parametrize("name", TASKS)
def test_no_task_can_be_solved_by_doing_nothing_and_none_ends_at_once(name):
    kernel = gym_env.make(**IDS[name]).kernel
    roller = KernelRoller(kernel, (), gamma=1.0)
    rollouts = roller.rollouts(
        np.zeros(roller.num_parameters), roller.start_states(np.full((1, kernel.start_size), 0.3))
    )
    assert np.isfinite(rollouts.rewards).all() and rollouts.lengths[0] > 5
    assert abs(rollouts.discounted_returns[0]) > 0.1


@pytest.mark.parametrize("name", TASKS)
def test_actions_are_executed_within_their_limits(name):
    kernel = gym_env.make(**IDS[name]).kernel
    roller = KernelRoller(kernel, (), gamma=1.0)
    theta = np.zeros(roller.num_parameters)
    for sign, limit in ((1e3, kernel.action_high), (-1e3, kernel.action_low)):
        theta[-kernel.action_size :] = sign
        rollouts = roller.rollouts(theta, roller.start_states(np.full((1, kernel.start_size), 0.5)), num_recorded=1)
        assert np.array_equal(rollouts.actions[0, 0], limit)
