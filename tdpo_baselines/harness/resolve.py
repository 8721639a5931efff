"""Resolve the arguments of the command line to everything that decides a run.

Options come from the algorithm's defaults, the preset, --config and --set; each overrides the ones before. A preset or
a file may also give the budget, "num_timesteps", and an option may have it as its value: a schedule as long as the run.
"""

from argparse import Namespace
from dataclasses import fields
from typing import NamedTuple

from . import registry, stages
from .budget import Budget, format_count
from .config import did_you_mean, parse_count, read_json, split_prefix
from .run_folder import RunConfig

BUDGET = {field.name for field in fields(Budget)}
TIMESTEPS = "num_timesteps"


class Run(NamedTuple):
    """A run, resolved: everything that its arguments ask for."""

    config: RunConfig
    preset: str  # name
    stages: list[stages.Stage]  # the run's own last
    budget: Budget


def resolve(arguments: Namespace) -> Run:
    """Return the run that the arguments ask for."""
    preset, values = collect_values(arguments)
    limits = {name: value for name, value in vars(arguments).items() if name in BUDGET and value is not None}
    budget, values = apply_budget(values, limits)
    config = resolve_config(arguments, values)
    return Run(config, preset, stages.make(config), budget)


def collect_values(arguments: Namespace) -> tuple[str, dict]:
    """Return the name of the preset, and all options that differ from the algorithm's defaults."""
    algorithm, environment = arguments.alg, arguments.env
    registry.algorithm(algorithm)
    if environment is None:
        raise ValueError("--env is missing; --list shows the environments")
    registry.check_environment(environment)
    preset, values = choose_preset(algorithm, environment, arguments.preset)
    values |= read_json(arguments.config) if arguments.config else {}
    values |= dict(parse_assignment(text) for group in arguments.set for text in group)
    if arguments.num_trajectories is not None:
        values["num_trajectories"] = arguments.num_trajectories
    return preset, values


def apply_budget(values: dict, limits: dict) -> tuple[Budget, dict]:
    """Return the budget, with `limits` over what the values say, and the options among them with it filled in."""
    of_values = {TIMESTEPS: values[TIMESTEPS]} if TIMESTEPS in values else {}
    budget = Budget.from_values({**of_values, **limits})
    options = {name: value for name, value in values.items() if name != TIMESTEPS}
    return budget, {name: budget.num_timesteps if value == TIMESTEPS else value for name, value in options.items()}


def resolve_config(arguments: Namespace, values: dict) -> RunConfig:
    """Return the config of the run with all options, of the environment and the stages too."""
    algorithm, environment = arguments.alg, arguments.env
    first, values = stages.split(values)
    env_options, options = split_prefix(registry.resolve_values(algorithm, environment, values), "env.")
    return RunConfig(
        algorithm=algorithm,
        environment=environment,
        seed=parse_count("seed", arguments.seed, low=0),
        options=options,
        env_options=env_options,
        stages=stages.resolve(algorithm, environment, values, first),
    )


def choose_preset(algorithm: str, environment: str, name: str | None) -> tuple[str, dict]:
    """Return the name of a preset and its options; by default "tuned" where it exists, else "none"."""
    available = registry.presets(algorithm, environment)
    if name is None:
        name = "tuned" if "tuned" in available else "none"
    if name == "none":
        return name, {}
    if name not in available:
        raise ValueError(
            f"no preset {name!r} of {algorithm} for {environment}{did_you_mean(name, available)}; "
            f"choose one of {', '.join([*available, 'none'])}"
        )
    return name, dict(available[name])


def parse_assignment(text: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"--set takes KEY=VALUE, got {text!r}")
    return key, value


def describe_options(algorithm: str, environment: str | None, preset: str | None) -> str:
    """Return the help on all options of an algorithm, and with an environment on those too, with their values."""
    config_class = registry.algorithm(algorithm).Config
    if environment is None:
        where = "defaults; add --env NAME to see the preset for an environment"
        return f"options of {algorithm} for --set ({where}):\n{config_class().describe()}\n"
    registry.check_environment(environment)
    preset, values = choose_preset(algorithm, environment, preset)
    budget, values = apply_budget(values, {})
    first, values = stages.split(values)
    env_options, values = split_prefix(values, "env.")
    lines = [f"budget for {environment}, preset {preset}: --num_timesteps {format_count(budget.num_timesteps)}", ""]
    lines += [f"options of {algorithm} for --set (for {environment}, preset {preset}):"]
    lines += [
        config_class.from_values(values).describe(),
        "",
        f"options of {environment}, and of its stages, for --set:",
    ]
    lines += [
        f"  env.{name}={value}" for name, value in (registry.environment_options(environment) | env_options).items()
    ]
    for number, changes in enumerate(first, start=1):
        lines += [f"  stage{number}.{name}={value}" for name, value in changes.items()]
    return "\n".join(lines) + "\n"
