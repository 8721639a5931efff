"""Episodes of a kernel, one Python call per step."""

import numpy as np


def run(kernel, start, act):
    """Return all states and rewards of an episode with actions act(observation)."""
    state, observation, states, rewards = np.zeros(kernel.state_size), np.zeros(kernel.observation_size), [], []
    kernel.reset(kernel.params, np.array(start), state)
    for _ in range(kernel.horizon):
        kernel.observe(kernel.params, state, observation)
        states.append(state.copy())
        reward, _ = kernel.step(kernel.params, state, np.array(act(observation), dtype=float))
        rewards.append(reward)
    return np.array([*states, state]), np.array(rewards)
