"""Environments of classic gym (0.21 to 0.26), which Gymnasium continues, behind Gymnasium's interface."""

import inspect
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np

PREFIX = "gym:"


def spec(env_id: str) -> Any:
    """What gym knows of an id, perhaps after importing a module ("module:Id")."""
    gym = _gym()
    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module)
    try:
        return gym.spec(name)
    except gym.error.Error as error:
        raise gymnasium.error.NameNotFound(str(error)) from error


def make(env_id: str, **options) -> gymnasium.Env:
    gym = _gym()
    if "disable_env_checker" in inspect.signature(gym.make).parameters:
        options["disable_env_checker"] = True  # the checker fails with NumPy 2
    try:
        return ClassicGym(gym.make(env_id.rpartition(":")[2], **options))
    except gym.error.Error as error:
        raise gymnasium.error.Error(str(error)) from error


class ClassicGym(gymnasium.Env):
    """Takes resets with and without seeds, steps with four and with five results."""

    def __init__(self, env: Any):
        self.env = env
        self.spec = env.spec
        self.observation_space, self.action_space = _box(env.observation_space), _box(env.action_space)
        self._takes_seed = "seed" in inspect.signature(env.unwrapped.reset).parameters

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        if self._takes_seed:
            result = self.env.reset(seed=seed)
        else:
            self.env.seed(seed)
            result = self.env.reset()
        return result if isinstance(result, tuple) else (result, {})

    def step(self, action):
        result = self.env.step(action)
        if len(result) == 5:
            return result
        observation, reward, has_ended, info = result
        is_truncated = bool(info.get("TimeLimit.truncated", False))
        return observation, reward, has_ended and not is_truncated, is_truncated, info


def _gym() -> Any:
    try:
        return import_module("gym")
    except ImportError as error:
        raise gymnasium.error.DependencyNotInstalled('classic gym is missing: pip install "gym>=0.21"') from error


def _box(space: Any) -> Any:
    """gym's Box as Gymnasium's; any other space as it is, to be refused by who asked for it."""
    if type(space).__name__ != "Box":
        return space
    return gymnasium.spaces.Box(space.low, space.high, dtype=np.dtype(space.dtype).type)
