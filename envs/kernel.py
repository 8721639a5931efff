"""A compiled environment: parameters, a flat state, and three numba functions.

    reset(params, start, state)              set the state; `start` is a point of the unit cube
    observe(params, state, observation)      fill in the observation
    step(params, state, action)              advance the state; return (reward, terminated)

All of them work in place on float64 arrays. `step` clips `action` in place, so that the recorded action is the one
that was executed. Everything that the future depends on is in `state`: copy it to save, copy it back to restore. A
reward for the whole trajectory is computed by the last `step` from a history in the state.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from tdpo_baselines.common.networks.templates import compile_template


@dataclass(frozen=True)
class Interface:
    """The signals and the timing that a controller outside of the simulation must reproduce."""

    observations: Mapping[str, str]  # unit of every entry by its name, in order; "1" without unit
    actions: Mapping[str, str]
    control_rate_hz: float
    observation_delay_s: float = 0.0
    action_delay_s: float = 0.0


@dataclass(frozen=True)
class Scene:
    """A drawing of states [M, S]: a chain of links in a plane, x to the right and z up, in metres."""

    chain: np.ndarray  # [M, V, 2] its joints, the free end last
    marks: Mapping[str, np.ndarray]  # lines [V, 2] that do not move: "ground", "rail" or "target"
    view: tuple[float, float, float, float]  # left, right, bottom, top
    signals: Mapping[str, np.ndarray]  # [M] by name with unit


@dataclass(frozen=True)
class Criterion:
    """A criterion of success, on the measures of an episode and its payoff, or on their means over episodes."""

    name: str  # such as "solved"
    is_met: Callable[[Mapping[str, float]], bool]
    gamma: float = 1.0  # discount of the payoff that it sees, whatever the algorithm's


@dataclass(frozen=True)
class Kernel:
    """A compiled environment. Shapes: O observation, A action, S state, T steps."""

    params: Any  # a NamedTuple of numbers, passed to every function
    reset: Callable
    observe: Callable
    step: Callable
    horizon: int
    state_size: int
    start_size: int  # dimensions of the unit cube; 0: a single start
    observation_low: np.ndarray  # [O]
    observation_high: np.ndarray  # [O]
    action_low: np.ndarray  # [A]
    action_high: np.ndarray  # [A]
    how_branches_start: str = ""
    """How a branch reaches its first state, if not by copying it."""
    is_action_limited: bool = True
    """True if `step` clips the action to its range."""
    is_horizon_terminal: bool = False
    """True if the task ends at the horizon, as where the last step pays for the trajectory; else it is a time limit."""
    start_values: Mapping[str, int] = field(default_factory=dict)
    """Quantities by which a start can be given, and their indices in the state."""
    interface: Interface | None = None
    """Names, units, control rate and delays, for `export`."""
    begin: Callable | None = None
    """begin(params, state): complete a state whose start values were set by hand."""
    describe: Callable[[Any, np.ndarray], dict[str, float]] | None = None
    """describe(params, state): return a step's `info`."""
    measure: Callable[[Any, np.ndarray], dict[str, float]] | None = None
    """measure(params, final_state): return a finished trajectory in physical terms."""
    criterion: Criterion | None = None
    """Success, for the verdict of `evaluate`."""
    draw: Callable[[Any, np.ndarray], Any] | None = None
    """draw(params, states): return a matplotlib figure of a trajectory."""
    render: Callable[[Any, np.ndarray], np.ndarray] | None = None
    """render(params, state): return a picture [height, width, 3]."""
    scene: Callable[[Any, np.ndarray], Scene] | None = None
    """scene(params, states): return a drawing of the states, for films and reports."""
    poses: Callable[[Any, np.ndarray], tuple[Any, np.ndarray]] | None = None
    """poses(params, states): return MuJoCo's model and its positions `qpos` [M, Q], for films."""
    randomise: Callable[[Mapping[str, Any]], "Kernel"] | None = None
    """randomise(ranges): return the kernel with quantities of its MuJoCo model drawn at each start; see ranges.py."""

    @property
    def observation_size(self) -> int:
        return len(self.observation_low)

    @property
    def action_size(self) -> int:
        return len(self.action_low)

    def place(self, state: np.ndarray, values: Mapping[str, float]) -> None:
        """Set the given start values in a state that was just reset."""
        for name, value in values.items():
            if name not in self.start_values:
                known = ", ".join(self.start_values) or "none"
                raise ValueError(f"unknown start value {name!r}; this environment has {known}")
            if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
            state[self.start_values[name]] = value
        if self.begin is not None:
            self.begin(self.params, state)

    def replay(self, state: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states [T + 1, S] visited by taking `actions` [T, A] from `state`."""
        states = np.empty((len(actions) + 1, self.state_size))
        states[0] = state
        for t, action in enumerate(actions):
            states[t + 1] = states[t]
            self.step(self.params, states[t + 1], action.copy())
        return states


ON_STATES = ("begin", "describe", "measure", "draw", "render", "scene", "poses")


def extend(kernel: Kernel, params: Any, size: int, templates: Mapping[str, Any], again: Callable, **changes) -> Kernel:
    """Return a kernel over another one, whose parameters are `params.inner`, and whose state has `size` more numbers.

    `templates` are functions instead of `kernel`'s own by their names; `inner_reset`, `inner_observe`, `inner_step` and
    STATE, ACTION, START (the sizes of `kernel`) are bound in them. `again(other)` does the same to another kernel.
    """
    bound: dict[str, Any] = {"STATE": kernel.state_size, "ACTION": kernel.action_size, "START": kernel.start_size}
    bound |= {f"inner_{name}": getattr(kernel, name) for name in ("reset", "observe", "step", "begin")}

    def on_inner(function):
        """Return a function of (params, states) that calls `function` with the kernel's own part of them."""
        return lambda params, states: function(params.inner, states[..., : kernel.state_size])

    compiled = {name: compile_template(template, **bound) for name, template in templates.items()}
    inherited = {name: on_inner(getattr(kernel, name)) for name in ON_STATES if getattr(kernel, name) is not None}
    if randomise := kernel.randomise:
        inherited["randomise"] = lambda ranges: again(randomise(ranges))
    fields = {"params": params, "state_size": kernel.state_size + size}
    return replace(kernel, **{**inherited, **fields, **compiled, **changes})
