"""A trained policy: load it from a run, act with it, evaluate it. Loading executes nothing that a run names."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..common.networks import mlp
from ..common.parallel.checks import require_memory
from ..common.parallel.seeding import generator
from . import callables, checkpoint, registry
from .contracts import Roller
from .run_folder import RunConfig, RunFolder


@dataclass
class Trained:
    """A checkpoint with the config of its run, and the environment to use instead of the run's own, if any."""

    config: RunConfig
    state: dict[str, Any]  # the whole checkpoint; one of `best` holds little more than the policy
    given_env: str | Callable | None = None

    @property
    def theta(self) -> np.ndarray:
        """The parameters [P] of the deterministic policy."""
        return self.state["policy"]["theta"]

    @property
    def iteration(self) -> int:
        """The number of updates before it was saved."""
        return int(self.state["progress"]["iteration"])

    @cached_property
    def environment_name(self) -> str:
        """The name of the environment to use. A run may be someone else's: no module is imported by its name alone."""
        if callable(self.given_env):
            return callables.register(self.given_env)
        if not self.given_env:
            registry.require_trusted(self.config.environment)
        return self.given_env or self.config.environment

    @property
    def environment_options(self) -> dict:
        """The options of the environment: the run's, or the defaults of another environment."""
        is_same = callables.without_hash(self.environment_name) == callables.without_hash(self.config.environment)
        return registry.resolve_options(self.environment_name, self.config.env_options if is_same else {})

    @cached_property
    def environment(self) -> Any:
        """The environment with its flat state, for rollouts."""
        return registry.make_environment(self.environment_name, self.environment_options)

    @cached_property
    def env(self) -> Any:
        """The environment with Gymnasium's interface."""
        return registry.make_gymnasium(self.environment_name, self.environment_options)

    @cached_property
    def options(self) -> Any:
        """The algorithm's options."""
        return registry.algorithm(self.config.algorithm).Config.from_values(self.config.options).fit(self.environment)

    @cached_property
    def roller(self) -> Roller:
        """Rollouts of the policy; raise ValueError if the environment does not fit it."""
        roller = registry.make_roller(self.environment, self.options)
        if self.theta.shape != (roller.num_parameters,):
            observation, *_, action = roller.layer_sizes
            raise ValueError(
                f"the checkpoint has {self.theta.size} parameters, its config asks for {roller.num_parameters} in "
                f"{self.environment_name} ({observation} observations, {action} actions); "
                f"the policy was trained in {self.config.environment}"
            )
        return roller

    @cached_property
    def _forward(self) -> mlp.Forward:
        return mlp.Forward(self.roller.layer_sizes, self.roller.style)

    def act(self, observation) -> np.ndarray:
        """Return the actions [..., A] for observations [..., O] without noise, clipped as the environment does."""
        observed, size = np.asarray(observation, dtype=np.float64), self.roller.layer_sizes[0]
        if observed.shape[-1:] != (size,):
            raise ValueError(f"observation must have {size} numbers, got shape {observed.shape}")
        is_limited, limits = self.roller.is_action_limited, (self.environment.action_low, self.environment.action_high)
        actions = self._forward(self.theta, observed)
        return np.where(is_limited, np.clip(actions, *limits), actions)

    def evaluate(
        self, *, num_episodes: int = 20, seed: int = 0, start_values: Mapping[str, float] | None = None
    ) -> "Evaluation":
        """Run episodes without exploration, as the function `evaluate` does."""
        return evaluate(self, num_episodes=num_episodes, seed=seed, start_values=start_values)

    def __getstate__(self) -> dict:
        """Pickle what was loaded; environments and compiled code are made anew."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def load(path: str | Path, *, use_best: bool = False, env: str | Callable | None = None) -> Trained:
    """Load the newest checkpoint of a run folder, or of its folder `best` or `checkpoints`, or a single checkpoint.

    Pass `env` to use another environment than the run's, to allow importing the module that the run names
    (`module:Id`), or to pass the callable again that made the run's.
    """
    path = Path(path).expanduser()
    is_part = checkpoint.is_checkpoint(path) or checkpoint.has_checkpoints(path)
    if use_best and is_part:
        raise ValueError(f"--best chooses among a run's checkpoints, and {path} is not a run; pass the run's folder")
    state = checkpoint.load(path) if checkpoint.is_checkpoint(path) else None
    if state is None:
        folder = RunFolder(path)
        if not is_part:
            folder.read_config()
        state = checkpoint.load_newest(path if is_part else folder.best if use_best else folder.checkpoints)
    if state is None:
        what, why = ("best parameters", "no episode has ended") if use_best else ("checkpoint", "it has just begun")
        raise ValueError(f"{path} has no {what} yet: {why}")
    return Trained(RunConfig.from_checkpoint(state), state, env)


@dataclass
class Evaluation:
    """Per-episode results [E] by name, and the rollouts from `start_states` [E, S] that gave them."""

    results: dict[str, np.ndarray]
    start_states: np.ndarray
    rollouts: Any
    environment: Any

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, standard deviation, minimum and maximum of each result."""
        names = ("mean", "std", "min", "max")
        return {key: {s: float(getattr(values, s)()) for s in names} for key, values in self.results.items()}


def evaluate(
    trained: Trained, *, num_episodes: int = 20, seed: int = 0, start_values: Mapping[str, float] | None = None
) -> Evaluation:
    """Run episodes from random starts, in which `start_values` replace some quantities."""
    environment, options, roller = trained.environment, trained.options, trained.roller
    states = make_starts(environment, roller, num_episodes, seed, start_values or {})
    rollouts = roller.rollouts(trained.theta, states)
    scale = options.gamma ** np.arange(environment.horizon)
    results = {
        "return": rollouts.rewards.sum(axis=1),
        "discounted_return": rollouts.discounted_returns,
        "payoff": rollouts.discounted_returns / scale.sum(),
    }
    shape = (num_episodes, environment.horizon, environment.action_size)
    algorithm = registry.algorithm(trained.config.algorithm)
    offsets = algorithm.exploration(options, environment, trained.state, generator(seed, "actions"), shape)
    if offsets is not None:
        exploring = roller.rollouts(trained.theta, states, offsets=offsets, num_recorded=environment.horizon)
        results["return_exploring"] = exploring.rewards.sum(axis=1)
    if environment.measure is not None:
        measured = [environment.measure(environment.params, state) for state in rollouts.final_states]
        results |= {name: np.array([m[name] for m in measured]) for name in measured[0]}
    return Evaluation(results, states, rollouts, environment)


def make_starts(environment, roller, num_episodes: int, seed: int, start_values: Mapping[str, float]) -> np.ndarray:
    """Draw the start states [E, S]; raise ValueError if the episodes would not fit into memory."""
    floats_per_step = environment.observation_size + environment.action_size + 1
    floats = num_episodes * (2 * environment.horizon * floats_per_step + 2 * environment.state_size)
    require_memory("--episodes", 8 * floats)
    states = roller.start_states(generator(seed, "evaluation").random((num_episodes, environment.start_size)))
    for state in states if start_values else ():
        environment.place(state, start_values)
    return states
