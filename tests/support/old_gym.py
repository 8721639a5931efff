"""An environment in the style of gym 0.21: `seed`, a bare observation from `reset`, four results from `step`."""

import gym
import numpy as np
from gym.utils import seeding


class Slide(gym.Env):
    """A point to be pushed back to the origin; the episode ends when it is too far out."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

    def seed(self, seed=None):
        self.np_random, seed = seeding.np_random(seed)
        return [seed]

    def reset(self):
        self._state = self.np_random.uniform(-1, 1, 2)
        return self._state.copy()

    def step(self, action):
        self._state[1] += 0.1 * float(action[0])
        self._state[0] += 0.1 * self._state[1]
        return self._state.copy(), -(self._state[0] ** 2), bool(abs(self._state[0]) > 1.5), {}


gym.register("Slide-v0", entry_point=Slide, max_episode_steps=25)
