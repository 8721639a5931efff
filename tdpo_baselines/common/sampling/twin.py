"""Compare a compiled environment with the Gymnasium environment that it should equal."""

from typing import Any

import numpy as np

NUM_STEPS = 60
SEEDS = (1, 2)


def is_twin(kernel: Any, env: Any) -> bool:
    """Return True if both give the same observations, rewards and endings, bit for bit, from the same states."""
    space = env.action_space
    has_limits = np.array_equal(kernel.action_low, space.low) and np.array_equal(kernel.action_high, space.high)
    return has_limits and all(_agree(kernel, env, seed) for seed in SEEDS)


def _agree(kernel: Any, env: Any, seed: int) -> bool:
    """Play an episode of random actions in both."""
    generator, state = np.random.default_rng(seed), np.zeros(kernel.state_size)
    expected, _ = env.reset(seed=seed)
    kernel.reset(kernel.params, generator.random(kernel.start_size), state)
    data = env.unwrapped.data
    state[1 : 1 + data.qpos.size + data.qvel.size] = *data.qpos, *data.qvel  # MuJoCo's time is first
    kernel.begin(kernel.params, state)
    observation = np.empty(kernel.observation_size)
    kernel.observe(kernel.params, state, observation)
    if not np.array_equal(observation, expected):
        return False
    for _ in range(min(NUM_STEPS, kernel.horizon)):
        action = generator.uniform(kernel.action_low, kernel.action_high)
        expected, expected_reward, is_terminal, *_ = env.step(action)
        reward, has_ended = kernel.step(kernel.params, state, action)
        kernel.observe(kernel.params, state, observation)
        same = reward == expected_reward and has_ended == is_terminal and np.array_equal(observation, expected)
        if not same or has_ended:
            return same
    return True
