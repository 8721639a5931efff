"""Episodes of a compiled twin beside Gymnasium's own task."""

from importlib import import_module

import gymnasium
import numpy as np

from envs.gym_env import KernelEnv
from tdpo_baselines.options import registry


def make_twin(name, horizon=1000):
    return import_module(registry.TWINS[name]).kernel(horizon)


def count_equal_steps(name: str, num_episodes: int = 20, horizon: int | None = None, act=None) -> int:
    """Return the number of steps of episodes with random actions, or those of a policy; fail at a bit that differs."""
    env = gymnasium.make(name, max_episode_steps=horizon)
    kernel = make_twin(name, env.spec.max_episode_steps)
    return sum(_play(kernel, env, seed, act) for seed in range(num_episodes))


def check_same_start(name: str) -> None:
    """Fail unless the same seed starts the twin where Gymnasium's task starts, to the bit."""
    expected, _ = gymnasium.make(name).reset(seed=5)
    observation, _ = KernelEnv(make_twin(name)).reset(seed=5)
    np.testing.assert_array_equal(observation, expected)


def _start_as(kernel, env) -> np.ndarray:
    """Return the kernel's state at the positions and rates of a Gymnasium environment that was just reset."""
    state, data = np.zeros(kernel.state_size), env.unwrapped.data
    kernel.reset(kernel.params, np.full(kernel.start_size, 0.7), state)
    state[1 : 1 + data.qpos.size + data.qvel.size] = *data.qpos, *data.qvel
    kernel.begin(kernel.params, state)
    return state


def _play(kernel, env, seed: int, act) -> int:
    """Return the length of an episode, saved and restored every 37 steps, with another one in between."""
    rng, observation = np.random.default_rng(seed), np.empty(kernel.observation_size)
    expected, _ = env.reset(seed=seed)
    state, other = _start_as(kernel, env), np.zeros(kernel.state_size)
    for k in range(kernel.horizon):
        kernel.observe(kernel.params, state, observation)
        np.testing.assert_array_equal(observation, expected)
        if k % 37 == 5:
            saved = state.copy()
            state[:] = np.nan
            kernel.reset(kernel.params, rng.random(kernel.start_size), other)
            kernel.step(kernel.params, other, rng.uniform(kernel.action_low, kernel.action_high))
            state[:] = saved
        small = rng.uniform(kernel.action_low, kernel.action_high) * rng.random()  # keeps robots on their feet
        action = small if act is None else act(observation)
        expected, expected_reward, is_terminal, is_truncated, _ = env.step(action)
        reward, has_ended = kernel.step(kernel.params, state, action)
        assert (reward, has_ended) == (expected_reward, is_terminal)
        if is_terminal or is_truncated:
            break
    return k + 1
