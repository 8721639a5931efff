"""Environments of classic gym, the predecessor of Gymnasium, with Gymnasium's interface.

The library must be 0.25 or 0.26; its environments may be written for older versions. Branches replay the actions.
"""

import inspect
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np

PREFIX = "gym:"


def spec(env_id: str) -> Any:
    """Return gym's specification of "Id" or "module:Id", importing the module first."""
    gym = _gym()
    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module)
    try:
        return gym.spec(name)
    except gym.error.Error as error:
        raise gymnasium.error.NameNotFound(str(error)) from error


def make(env_id: str, **options) -> gymnasium.Env:
    """Return the environment of a gym id with Gymnasium's interface."""
    gym, known = _gym(), spec(env_id)
    try:
        env = gym.make(known.id, disable_env_checker=True, **options)  # the checker fails with NumPy 2
        if not _takes_seed(env) and "apply_api_compatibility" in inspect.signature(gym.make).parameters:
            env = gym.make(known.id, disable_env_checker=True, **{**options, "apply_api_compatibility": True})
        return ClassicGym(env)
    except gym.error.Error as error:
        raise gymnasium.error.Error(str(error)) from error


class ClassicGym(gymnasium.Env):
    """An environment of any gym version: `reset` with or without a seed, `step` with four or five results."""

    def __init__(self, env: Any):
        self.env = env
        limit = env.spec and env.spec.max_episode_steps
        self.spec = env.spec and gymnasium.envs.registration.EnvSpec(env.spec.id, max_episode_steps=limit)
        self.observation_space, self.action_space = _box(env.observation_space), _box(env.action_space)

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        if _takes_seed(self.env):
            result = self.env.reset(seed=seed)
        else:
            if hasattr(self.env.unwrapped, "seed"):
                self.env.unwrapped.seed(seed)
            result = self.env.reset()
        return result if isinstance(result, tuple) else (result, {})

    def step(self, action):
        result = self.env.step(action)
        if len(result) == 5:
            return result
        observation, reward, has_ended, info = result
        is_truncated = bool(info.get("TimeLimit.truncated", False))
        return observation, reward, has_ended and not is_truncated, is_truncated, info


def _takes_seed(env: Any) -> bool:
    parameters = inspect.signature(env.unwrapped.reset).parameters
    return "seed" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _gym() -> Any:
    try:
        return import_module("gym")
    except ImportError as error:
        raise ValueError(f'environments named {PREFIX}ID need classic gym; pip install "gym>=0.25"') from error


def _box(space: Any) -> Any:
    """Return gym's Box as Gymnasium's. Return other spaces unchanged; the caller refuses them."""
    if type(space).__name__ != "Box":
        return space
    return gymnasium.spaces.Box(space.low, space.high, dtype=np.dtype(space.dtype).type)
