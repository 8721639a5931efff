"""An environment in which one episode in three has a reward of NaN at its 70th step."""

import gymnasium
import numpy as np


class Sometimes(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state, self._step = self.np_random.normal(size=2), 0
        return self._state.copy(), {}

    def step(self, action):
        self._step += 1
        self._state[0] += 0.1 * action[0]
        pays_nan = self._step == 70 and self._state[1] > 0.4
        return self._state.copy(), np.nan if pays_nan else -float(self._state[0] ** 2), False, False, {}


gymnasium.register("NotANumber-v0", entry_point=Sometimes, max_episode_steps=100)
