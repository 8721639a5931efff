"""Judged steps: the adaptive variant where a task is paid at its end.

Such a task is full of local optima, which a search cannot leave. One step is taken per update, and judged with some
patience from the starts of the next.

Glossary, beside that of adaptive.py
  name                shape                meaning
  trial                                    the step to be judged, radius of the trust region, updates so far
  tolerated_loss                           of the payoff, which vanishes over the updates
"""

from typing import Any, NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..contracts import Roller, State
from .adaptive import HELD_FRACTION, AdaptiveLearner, Choice, Sample, Scales
from .config import Config
from .devine import Plan
from .tdpo import Step

MEMORY = 0.7  # weight per update of age
INITIAL_RADIUS, RADII = 0.1, (1e-4, 0.5)  # in half ranges of the action
GROW, SHRINK, SHRINK_BACK = 1.1, 0.95, 0.9  # of the radius: payoff rose, fell, fell so far that the step is taken back
PERTURBATION, PERTURBATIONS = 10.0, (0.05, 1.0)  # standard perturbation relative to the radius, and its range
GAIN_CAP = 0.1  # largest predicted gain, and largest loss tolerated at first, relative to the mean size of a reward
TOLERANT_UPDATES = 50  # the tolerance has halved after these


class Trial(NamedTuple):
    """A step to be judged from the next starts, the radius and the updates so far; names are names in checkpoints."""

    theta: np.ndarray  # [P] after the step
    tolerated_loss: Any = -1.0  # of the payoff; negative before the first step
    radius: Any = INITIAL_RADIUS
    num_updates: Any = 0

    def judge(self, gain: float) -> tuple["Trial", bool]:
        """Return the trial with the radius after a step gained this much, and whether the step is kept."""
        low, high = RADII
        if gain > 0:
            return self._replace(radius=min(GROW * self.radius, high)), True
        is_kept = bool(gain >= -self.tolerated_loss)
        return self._replace(radius=max((SHRINK if is_kept else SHRINK_BACK) * self.radius, low)), is_kept


class JudgedLearner(AdaptiveLearner):
    """The adaptive variant with one step per update, which the next update judges."""

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self.trial = Trial(self.theta)

    def _choose_scales(self, rng: np.random.Generator) -> Scales:
        """Return scales that follow the radius of the trust region."""
        horizon = self.roller.horizon
        perturbation = np.clip(PERTURBATION * self.trial.radius, *PERTURBATIONS)
        return Scales(perturbation, max(1, round(HELD_FRACTION * horizon)), self.config.max_branch_steps or horizon)

    def _choose_policy(self, plan: Plan, iteration: int) -> Choice:
        """Roll out the policies before and after a step that is to be judged, and keep one."""
        is_first = self.trial.tolerated_loss < 0
        policies = (self.theta,) if is_first else (self.theta, self.trial.theta)
        mains, returns, num_steps = self._roll_mains(policies, plan)
        if is_first:
            return Choice(mains[0], num_steps, 0.0, self.trial.radius)
        gain = float((returns[:, 1] - returns[:, 0]).mean() * self._discounts[0])
        self.trial, is_kept = self.trial.judge(gain)
        if is_kept:
            self.theta = self.trial.theta
        return Choice(mains[int(is_kept)], num_steps, gain, self.trial.radius)

    def _choose_step(self, sample: Sample, choice: Choice) -> Step:
        """Return a step whose predicted gain is limited, and say how much it may lose."""
        reward_size, age = sample.reward_sizes.mean(), self.trial.num_updates
        step = self._find_step(MEMORY, choice.radius, largest_gain=GAIN_CAP * reward_size)
        tolerated = GAIN_CAP * reward_size / (1 + (age / TOLERANT_UPDATES) ** 2)
        self.trial = Trial(self.theta + step.delta_theta, tolerated, choice.radius, age + 1)
        return step

    def _row(self, sample: Sample, step: Step, choice: Choice) -> dict[str, Any]:
        own = {
            "delta_max": choice.radius,
            "is_trust_region_bound": int(step.is_bound),
            "predicted_gain": step.predicted_gain,
        }
        return {**super()._row(sample, step, choice), **own}

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        return {**super().state(), "trial": self.trial._asdict()}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        super().load_state(state)
        self.trial = Trial(**state["trial"])

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before."""
        super().begin_from(state)
        self.trial = Trial(self.theta)
