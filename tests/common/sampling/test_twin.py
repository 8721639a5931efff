from dataclasses import replace
from importlib import import_module

import gymnasium
import mujoco
import numpy as np
import pytest
from numba import njit

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.sampling.gym_roller import GymRoller
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.twin import is_twin
from tdpo_baselines.options import registry
from tdpo_baselines.tdpo import Config, Learner

NAME = "InvertedPendulum-v5"


@njit
def never_ends(params, state, action):
    return 1.0, False


def test_twin_is_one_and_another_reward_limit_or_physics_is_not():
    kernel, env = import_module(registry.TWINS[NAME]).kernel(1000), gymnasium.make(NAME)
    assert is_twin(kernel, env)
    assert not is_twin(replace(kernel, step=never_ends), env)
    assert not is_twin(replace(kernel, action_high=np.array([2.0])), env)
    assert not is_twin(kernel, gymnasium.make(NAME, frame_skip=4))


class PlacedGymRoller(GymRoller):
    """Rollouts through Gymnasium from the starts of a twin."""

    def __init__(self, environment, twin, *arguments):
        environment.start_size = twin.start_size
        super().__init__(environment, *arguments)
        self._twin = twin

    def start_states(self, starts):
        states, placed = np.zeros((len(starts), self.state_size)), np.zeros(self._twin.state_size)
        base = self.environment.env.unwrapped
        for state, start in zip(states, starts):
            self._twin.reset(self._twin.params, start, placed)
            self.environment.reset(0)
            mujoco.mj_resetData(base.model, base.data)
            base.set_state(*np.split(placed[1 : 1 + base.model.nq + base.model.nv], [base.model.nq]))
            self.environment._observation = base._get_obs()
            state[:] = self.environment.save()
        return states


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Hopper-v5"])
def test_tdpo_logs_the_same_rows_with_twin_and_gymnasium_from_the_same_starts(name):
    config, rows = Config(num_trajectories=4, hidden_sizes=(16,)), {}
    twin, slow = (
        registry.make_environment(
            name, registry.resolve_options(name, {"max_episode_steps": 100, "compiled": compiled})
        )
        for compiled in (True, False)
    )
    shape = (config.hidden_sizes, config.fit(twin).gamma, config.network_style(twin))
    for roller in (KernelRoller(twin, *shape), PlacedGymRoller(slow, twin, *shape)):
        learner = Learner(config.fit(twin), roller, Comm(), 3)
        rows[type(roller)] = [learner.iterate(i, 0) for i in range(4)]
    for fast_row, slow_row in zip(*rows.values()):
        assert {k: v for k, v in fast_row.items() if "seconds" not in k} == {
            k: v for k, v in slow_row.items() if "seconds" not in k
        }
