"""Interfaces between the parts of the package: environments, rollers, learners, algorithms.

They are Protocols: a class that has the members fits, without inheriting. Shapes: B rollouts, K saved states,
D perturbed steps, O observation, A action, S state, U start, P parameters.
"""

import typing
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .common.networks.mlp import Style
from .common.sampling.rollouts import Rollouts

Component = dict[str, Any]
"""Arrays and numbers of one part of a learner, by name."""

State = dict[str, Component]
"""Everything a checkpoint holds, by component. `state["policy"]["theta"]` is the deterministic policy."""


@runtime_checkable
class Environment(Protocol):
    """A task with flat vectors for observations, actions and its whole state."""

    horizon: int  # steps of an episode at most
    is_horizon_terminal: bool  # whether the task ends there; else it is a mere time limit
    observation_size: int
    action_size: int
    state_size: int
    start_size: int  # dimensions of the unit cube that starts are drawn from; 0: a single start
    action_low: np.ndarray  # [A]
    action_high: np.ndarray  # [A]
    is_action_limited: Any  # whether the environment clips actions to their range, for all or for each [A]
    how_branches_start: str  # shown before a run; empty if there is nothing to say
    interface: Any  # names and units of the signals, control rate, delays, for `export`; None if unknown
    measure: Callable | None  # measure(params, final_state): named results of a finished episode, for `evaluate`
    criterion: Any  # success of an episode: name, is_met(measures), gamma of the payoff it sees; None if undefined
    draw: Callable | None  # draw(params, states): a figure of an episode, for `evaluate --plot`
    scene: Callable | None  # scene(params, states): a drawing of states, for films and reports
    poses: Callable | None  # poses(params, states): MuJoCo's model and its positions in states, for films

    def place(self, state: np.ndarray, values: Mapping[str, float]) -> None:
        """Put a state that was just reset at the given start values."""


@runtime_checkable
class Roller(Protocol):
    """Rollouts of an environment with an MLP policy inside the loop."""

    horizon: int
    is_horizon_terminal: bool
    start_size: int
    state_size: int
    gamma: float  # discount of `Rollouts.discounted_returns`
    layer_sizes: tuple[int, ...]  # observation, hidden..., action
    num_parameters: int
    style: Style  # of the policy network
    has_action_range: np.ndarray  # [A] whether the action has a lower and an upper limit
    is_action_limited: np.ndarray  # [A] whether the environment clips the action to them

    def start_states(self, starts: np.ndarray) -> np.ndarray:
        """Return the states [B, S] at points [B, U] of the unit cube."""

    def rollouts(
        self,
        theta: np.ndarray,
        states: np.ndarray,
        *,
        num_steps: np.ndarray | None = None,
        offsets: np.ndarray | None = None,
        save_steps: np.ndarray | None = None,
        num_recorded: int | None = None,
    ) -> Rollouts:
        """Roll out from `states` [B, S] for `num_steps` [B] (default: the horizon).

        All follow one policy, `theta` [P], or n policies [n, P], each of them B / n consecutive rollouts. Add
        `offsets` [B, D, A] to the first D actions, save the states before `save_steps` [B, K] (ascending), and record
        the first `num_recorded` steps (default: all).
        """

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observation [O] in a state [S]."""


class Row(typing.TypedDict):
    """Keys that every row of the log must have. An algorithm may add numbers of its own.

    Returns and payoff are those of theta before the update; with a true `is_after_update`, of theta after it. A row
    with a true `is_random` is no candidate for the best parameters.
    """

    num_timesteps: int  # simulated in this update, by all ranks
    num_episodes: int
    return_mean: float
    discounted_return_mean: float
    payoff: float  # discounted return per discounted step


@runtime_checkable
class Learner(Protocol):
    """One algorithm at work. All ranks call every method together."""

    roller: Roller  # that the learner was made with
    replay_bytes: int  # by how much a checkpoint may grow beyond its first size

    @property
    def theta(self) -> np.ndarray:
        """The parameters [P] of the deterministic policy."""

    def iterate(self, iteration: int, total_timesteps: int) -> Mapping[str, Any]:
        """Collect, estimate, step; return the row for the log, with the keys of `Row`."""

    def state(self) -> State:
        """Return everything a checkpoint must hold, on rank 0 at least."""

    def replicated(self) -> State:
        """Return the part of the state that is the same on all ranks."""

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before, which may have had another task and other options."""


@runtime_checkable
class Algorithm(Protocol):
    """The face of an algorithm's room, `tdpo_baselines/NAME/__init__.py`."""

    Config: Any  # a frozen `options.config.Settings` with at least num_trajectories, gamma and hidden_sizes
    Learner: Any  # Learner(config, roller, comm, seed)

    def check(self, config: Any, environment: Environment, num_ranks: int) -> None:
        """Raise ValueError if the options cannot run."""

    def exploration(
        self, config: Any, environment: Environment, state: State, rng: np.random.Generator, shape: tuple[int, ...]
    ) -> np.ndarray | None:
        """Return the noise that the policy of a checkpoint explores with, or None if it has none."""
