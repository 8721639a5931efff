"""Stages: the first parts of a run, each with other options of the algorithm or the environment.

`stage1.timesteps=2e7 stage1.env.offset=0 stage1.delta_max=0.1` trains for 2e7 timesteps with that offset and that trust
region; stage2 and so on may follow, and the run's own options come last. Timesteps are counted through all stages, and
schedules go on; a new stage keeps only the policy. `RunConfig.stages` holds what differs in each stage.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ..options import registry
from ..options.config import did_you_mean, parse_count, split_prefix
from ..storage.run_folder import RunConfig

if TYPE_CHECKING:  # loads NumPy, which `run` must not do before it has limited the number of threads
    from ..contracts import Environment, Learner


class Stage(NamedTuple):
    """The algorithm's options and the environment in one stage."""

    options: Any
    environment: "Environment"


def split(values: dict) -> tuple[list[dict], dict]:
    """Return the options of stage1, stage2, ... in this order, each with its "timesteps", and the other options."""
    stages: list[dict] = []
    while True:
        name = f"stage{len(stages) + 1}"
        changes, values = split_prefix(values, f"{name}.")
        if not changes:
            break
        stages.append({**changes, "timesteps": _parse_timesteps(name, changes)})
    later = next((key for key in values if re.match(r"stage[0-9]+\.", key)), None)
    if later:
        raise ValueError(f"{later} is set but nothing of {name}; number the stages from stage1 on")
    return stages, values


def _parse_timesteps(name: str, changes: dict) -> int:
    if "timesteps" in changes:
        return parse_count(f"{name}.timesteps", str(changes["timesteps"]), low=0)
    typo = next((key for key in changes if did_you_mean(key, ["timesteps"])), None)
    if typo:
        raise ValueError(f"unknown option '{name}.{typo}', did you mean '{name}.timesteps'?")
    raise ValueError(f"{name}.timesteps is missing; pass --set {name}.timesteps=N with the timesteps it lasts")


def resolve(algorithm: str, environment: str, values: dict, stages: list[dict]) -> list[dict]:
    """Return for each stage its "timesteps" and the options that differ from the run's own `values`."""
    own, resolved = registry.resolve_values(algorithm, environment, values), []
    for number, changes in enumerate(stages, start=1):
        changes = dict(changes)
        timesteps = changes.pop("timesteps")
        with _naming(number):
            its = registry.resolve_values(algorithm, environment, {**values, **changes})
        differences = {name: value for name, value in its.items() if value != own.get(name)}
        resolved.append({"timesteps": timesteps, **differences})
    return resolved


def make(config: RunConfig) -> list[Stage]:
    """Make the options and environments of all stages, the run's own last."""
    own, stages = _make_one(config, {}), []
    for number, changes in enumerate(config.stages, start=1):
        with _naming(number):
            stages.append(_make_one(config, changes))
            if _network(stages[-1]) != _network(own):
                raise ValueError(
                    "observations, actions, hidden_sizes, activation and use_observation_normalisation "
                    "must be the same as in the rest of the run"
                )
    return [*stages, own]


def _make_one(config: RunConfig, changes: dict) -> Stage:
    env_changes, changes = split_prefix(changes, "env.")
    options = {**config.options, **{name: value for name, value in changes.items() if name != "timesteps"}}
    environment = registry.make_environment(config.environment, {**config.env_options, **env_changes})
    return Stage(registry.algorithm(config.algorithm).Config.from_values(options).fit(environment), environment)


def _network(stage: Stage) -> tuple:
    """Return what the networks of all stages must have in common."""
    options, environment = stage
    is_normalised = options.to_values().get("use_observation_normalisation")
    sizes = (environment.observation_size, *options.hidden_sizes, environment.action_size)
    return sizes, options.network_style(environment), is_normalised


def check(algorithm: str, stages: list[Stage], num_ranks: int) -> None:
    """Raise ValueError if a stage cannot run."""
    for number, stage in enumerate(stages, start=1):
        with _naming(number) if number < len(stages) else contextlib.nullcontext():
            registry.algorithm(algorithm).check(stage.options, stage.environment, num_ranks)


@contextlib.contextmanager
def _naming(number: int) -> Iterator[None]:
    """Begin the messages of errors with the stage they are about."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"stage{number}: {error}") from error


def describe(config: RunConfig, num_timesteps: int) -> list[str]:
    """Return lines that announce the stages, and a warning if the run ends before its own options take effect."""
    lines = []
    for number, changes in enumerate(config.stages, start=1):
        words = " ".join(f"{name}={value}" for name, value in changes.items() if name != "timesteps")
        lines.append(f"stage {number}: {changes['timesteps']} timesteps with {words}")
    before = sum(changes["timesteps"] for changes in config.stages)
    if num_timesteps <= before:
        lines.append(f"warning: the run ends before its last stage begins; pass --num_timesteps {2 * before:g} or so")
    return lines


class StagedLearner:
    """The learner of the present stage, replaced when its timesteps are over."""

    def __init__(self, makers: "Sequence[Callable[[], Learner]]", durations: Iterable[int]):
        """Take a function per stage that makes its learner, and the timesteps of all stages but the last."""
        self._makers, self._ends = makers, list(accumulate(durations))
        self._index = self._index_at(0)
        self.now = makers[self._index]()

    def _index_at(self, total_timesteps: int) -> int:
        return sum(total_timesteps >= end for end in self._ends)

    @property
    def number(self) -> int:
        """The number of the present stage, from 1."""
        return self._index + 1

    def seek(self, total_timesteps: int) -> bool:
        """Make a new learner if that many timesteps are in another stage; return whether they are."""
        index = self._index_at(total_timesteps)
        if index == self._index:
            return False
        self._index, self.now = index, self._makers[index]()
        return True

    def advance(self, total_timesteps: int) -> bool:
        """Begin the next stage, with the policy learned so far, if the present one is over; return whether it is."""
        before = self.now
        if not self.seek(total_timesteps):
            return False
        self.now.begin_from(before.replicated())
        return True
