"""One episode of an evaluation, seen at any moments: signals, a drawing, MuJoCo's positions."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Moments:
    """The picture and the signals at M moments. Signals have names with units."""

    seconds: np.ndarray  # [M]
    signals: dict[str, np.ndarray]  # [M] each; "return" is the sum of the rewards so far
    scene: Any  # the environment's drawing, or None
    model: Any  # MuJoCo's model, or None
    positions: Any  # [M, Q] of the model, or None


class Episode:
    """An episode of an evaluation, simulated again from its actions."""

    def __init__(self, evaluation: Any, index: int):
        """Raise ValueError if the environment has neither a drawing nor a MuJoCo model."""
        self._environment = environment = evaluation.environment
        if environment.scene is None and environment.poses is None:
            raise ValueError("this environment has no picture: neither a drawing nor MuJoCo's model; use --plot")
        rollouts, length = evaluation.rollouts, evaluation.rollouts.lengths[index]
        self._actions = rollouts.actions[index, :length]  # [T, A]
        self._returns = np.append(0.0, np.cumsum(rollouts.rewards[index, :length]))  # [T + 1]
        self._states = environment.replay(evaluation.start_states[index], self._actions)  # [T + 1, S]
        interface = environment.interface
        self._rate_hz = interface.control_rate_hz if interface else environment.control_rate_hz
        units = interface.actions if interface else {}
        self._action_names = [f"{name.replace('_', ' ')} ({unit})" for name, unit in units.items()]
        self.num_steps = int(length)
        self.duration = length / self._rate_hz  # s

    def at(self, seconds: np.ndarray) -> Moments:
        """Return what there is to see at `seconds` [M]: states in between are interpolated, actions are held."""
        environment, steps = self._environment, np.minimum(np.asarray(seconds) * self._rate_hz, self.num_steps)
        before = np.minimum(steps.astype(int), self.num_steps - 1)  # [M]
        share = (steps - before)[:, None]
        states = (1 - share) * self._states[before] + share * self._states[before + 1]
        scene = environment.scene(environment.params, states) if environment.scene else None
        model, positions = environment.poses(environment.params, states) if environment.poses else (None, None)
        signals = dict(scene.signals) if scene else {}
        signals |= {name: self._actions[before, i] for i, name in enumerate(self._action_names)}
        signals["return"] = self._returns[np.round(steps, 6).astype(int)]
        return Moments(np.asarray(seconds), signals, scene, model, positions)


def median_episode(evaluation: Any) -> int:
    """Return the index of the episode with the median return."""
    returns = evaluation.results["return"]
    return int(np.argsort(returns)[len(returns) // 2])
