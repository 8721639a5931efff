"""The exported controller: a policy with safety options (output limit, low-pass filter, rate limit).

An action is limited by the policy, filtered, kept within `max_step` of the action before it, and limited again because
of rounding. The C code and `Controller.run` do the same operations in the same order.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .policy import Policy


class SafetySteps(NamedTuple):
    """The options for a control rate; None: not used."""

    max_step: np.ndarray | None = None  # [A] largest change of an action from one step to the next
    gain: float | None = None  # share of the new value in the low-pass filter


@dataclass(frozen=True)
class Safety:
    """The options as the user states them; None: not used. Field names are names in contract.json."""

    output_limit: tuple[float, ...] | None = None  # largest size of each action
    rate_limit_per_s: tuple[float, ...] | None = None  # largest change of each action
    low_pass_hz: float | None = None  # cut-off of a first-order filter

    def __post_init__(self):
        cut_off = None if self.low_pass_hz is None else (self.low_pass_hz,)
        given = {"output_limit": self.output_limit, "rate_limit": self.rate_limit_per_s, "low_pass": cut_off}
        for name, numbers in given.items():
            if numbers is not None and not all(0 < number < math.inf for number in numbers):
                raise ValueError(f"{name} must be positive and finite, got {', '.join(map(str, numbers))}")

    @property
    def needs_memory(self) -> bool:
        """True if an action depends on those before it."""
        return self.rate_limit_per_s is not None or self.low_pass_hz is not None

    def fit(self, num_actions: int) -> "Safety":
        """Return the options with a limit for each action; raise ValueError if their number is another one."""

        def repeat(name: str, limits: tuple[float, ...] | None) -> tuple[float, ...] | None:
            if limits is None or len(limits) == num_actions:
                return limits
            if len(limits) > 1:
                raise ValueError(f"{name} must be one number, or one for each of {num_actions} action(s), got {limits}")
            return limits * num_actions

        rate_limit = repeat("rate_limit", self.rate_limit_per_s)
        return replace(self, output_limit=repeat("output_limit", self.output_limit), rate_limit_per_s=rate_limit)

    def limit(self, policy: Policy) -> Policy:
        """Return the policy with the output limit; raise ValueError if no action remains."""
        size = np.array(self.output_limit or np.inf)
        low, high = np.maximum(policy.low, -size), np.minimum(policy.high, size)
        if (low > high).any():
            raise ValueError(
                f"output_limit leaves no action between the environment's limits {policy.low.tolist()} and "
                f"{policy.high.tolist()}, got {self.output_limit}; pass a larger one"
            )
        return replace(policy, low=low, high=high)

    def at_rate(self, control_rate_hz: float | None) -> SafetySteps:
        """Return the options per control step."""
        if not self.needs_memory:
            return SafetySteps()
        if control_rate_hz is None:
            raise ValueError("rate_limit and low_pass need the control rate, which is unknown; pass --rate_hz")
        step = None if self.rate_limit_per_s is None else np.array(self.rate_limit_per_s) / control_rate_hz
        if self.low_pass_hz is None:
            return SafetySteps(step)
        if self.low_pass_hz >= control_rate_hz / 2:
            half = f"half the control rate, {control_rate_hz / 2:g} Hz"
            raise ValueError(f"low_pass must be below {half}, got {self.low_pass_hz:g}; pass a smaller one")
        return SafetySteps(step, -math.expm1(-2 * math.pi * self.low_pass_hz / control_rate_hz))


NO_SAFETY = Safety()


@dataclass(frozen=True)
class Controller:
    """Everything that is written, in whatever format."""

    policy: Policy
    steps: SafetySteps
    observations: np.ndarray  # [T, O] of an episode
    name: str  # of files and C functions
    precision: str  # "double" or "float"
    title: str
    config: str  # the run's config.json
    iteration: int  # updates before the checkpoint

    @property
    def dtype(self) -> type:
        """The NumPy type of the precision."""
        return np.float32 if self.precision == "float" else np.float64

    def run(self, actions: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return the outputs [R, A] for the policy's actions [R, A], after a reset to the action `first`."""
        dtype, clip, (max_step, gain) = actions.dtype.type, self.policy.clip, self.steps
        filtered = last = clip(first.astype(dtype))
        outputs = np.empty_like(actions)
        for row, action in enumerate(actions):
            if gain is not None:
                filtered = action = filtered + dtype(gain) * (action - filtered)
            if max_step is not None:
                step = max_step.astype(dtype)
                action = np.minimum(np.maximum(action, last - step), last + step)
            outputs[row] = last = clip(action)
        return outputs
