"""Check what another library's environment declares and returns, in one place."""

from typing import Any

import gymnasium
import numpy as np

from ..parallel.checks import BadEnvironment, is_finite


def horizon(env: Any) -> int:
    """Return the number of steps after which an episode ends; raise BadEnvironment if there is no such limit."""
    if env.spec is None or not env.spec.max_episode_steps:
        raise BadEnvironment("the environment has no time limit; pass --set env.max_episode_steps=N")
    return env.spec.max_episode_steps


def action_limits(env: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits of the actions, [A] each; raise BadEnvironment if they have no range."""
    space = env.action_space
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1 or not space.shape[0]:
        raise BadEnvironment(f"actions must be a vector of continuous numbers (a Box), got {space}")
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    has_range = low < high
    if not has_range.all():
        i = int(np.argmin(has_range))
        raise BadEnvironment(f"action {i} has no range: it is from {low[i]:g} to {high[i]:g}; leave it out")
    return low, high


def observation_size(env: Any) -> int:
    """Return the number of numbers of an observation; raise BadEnvironment if they are not numbers."""
    space = env.observation_space
    if not isinstance(space, gymnasium.spaces.Box) or not np.prod(space.shape):
        raise BadEnvironment(f"observations must be an array of numbers (a Box), got {space}")
    return int(np.prod(space.shape))


def read_reset(result: Any, size: int) -> np.ndarray:
    """Return the observation [O], a copy, that `reset` returned."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise BadEnvironment(f"reset must return (observation, info), got {_brief(result)}")
    return _read_observation("reset", result[0], size)


def read_step(result: Any, size: int) -> tuple[np.ndarray, float, bool, bool]:
    """Return observation [O], a copy, reward, is_terminal and is_truncated that `step` returned."""
    if not isinstance(result, tuple) or len(result) != 5:
        raise BadEnvironment(
            f"step must return (observation, reward, terminated, truncated, info), got {_brief(result)}"
        )
    observation, reward, terminated, truncated, _ = result
    try:
        return _read_observation("step", observation, size), float(reward), bool(terminated), bool(truncated)
    except (TypeError, ValueError) as error:
        if isinstance(error, BadEnvironment):
            raise
        raise BadEnvironment(
            "step must return a number as reward, and terminated and truncated that are true or false, "
            f"got {_brief(result[1:4])}"
        ) from error


def _read_observation(method: str, observation: Any, size: int) -> np.ndarray:
    try:
        numbers = np.array(observation, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise BadEnvironment(f"{method} must return numbers as observation, got {_brief(observation)}") from error
    if numbers.size != size:
        raise BadEnvironment(
            f"{method} must return an observation of {size} number(s), as observation_space says, got {numbers.size}"
        )
    return numbers


def describe_fault(action: np.ndarray, observation: np.ndarray, reward: float) -> str:
    """Return the first of these that is not finite, in words."""
    for name, values in (("action", action), ("observation", observation)):
        if not is_finite(values):
            i = int(np.flatnonzero(~np.isfinite(values))[0])
            return f"{name} {i} is {values[i]}"
    return f"the reward is {reward}"


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:80]}..."
