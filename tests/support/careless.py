"""An environment that breaks one promise of an environment: `--env careless:Careless-v0 --set env.fault=NAME`."""

import os
import sys
import time

import gymnasium
import numpy as np

LIMITS = {"no action": np.zeros(0), "no range": np.array([1.0, 0.0]), "": np.ones(2)}


class Careless(gymnasium.Env):
    """A point to be pushed to the origin in 100 steps. Faults of one rank alone are on rank `rank`."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))

    def __init__(self, fault="", first=10, rank=-1):
        self._fault = fault if rank in (-1, int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))) else ""
        self._first = first  # step of an episode from which on the fault shows
        limits = LIMITS.get(fault, LIMITS[""])
        self.action_space = gymnasium.spaces.Box(-limits, limits, dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state, self._step = self.np_random.normal(size=3), 0
        return (np.full(3, np.nan) if self._fault == "nan at reset" else self._state.copy()), {}

    def step(self, action):
        self._step += 1
        self._state[0] += 0.1 * action[0]
        result = (self._state.copy(), -float(self._state[0] ** 2), False, False, {})
        return self._break(result, action) if self._fault and self._step >= self._first else result

    def _break(self, result, action):
        """Return the result with the fault, or do what no environment should."""
        observation, reward, *rest = result
        if self._fault == "writes":
            action[:] = 0.5
        if self._fault == "random":
            self._state += np.random.random(3)
        if self._fault == "random reward":
            return observation, np.random.random(), *rest
        if self._fault == "raises":
            raise KeyError("broken")
        if self._fault == "exits":
            sys.exit(3)
        if self._fault == "hangs":
            time.sleep(1e6)
        if self._fault == "scalar observation":
            return 0.5, reward, *rest
        if self._fault == "text observation":
            return "abc", reward, *rest
        if self._fault == "nan at the end":
            return observation * np.nan, reward, True, *rest[1:]
        if self._fault == "large at the end":
            return observation * 1e60, reward, True, *rest[1:]
        if self._fault == "no reward":
            return observation, None, *rest
        if self._fault == "rewards":
            return observation, np.ones(2), *rest
        return result


gymnasium.register("Careless-v0", entry_point=Careless, max_episode_steps=100)
