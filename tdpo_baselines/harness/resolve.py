"""Resolve the arguments of the command line to everything that decides a run.

Options come from the algorithm's defaults, the preset, --config and --set; each overrides the ones before.
"""

from argparse import Namespace
from dataclasses import fields
from typing import NamedTuple

from . import registry, stages
from .budget import Budget
from .config import did_you_mean, parse_count, read_json, split_prefix
from .run_folder import RunConfig

BUDGET = {field.name for field in fields(Budget)}


class Run(NamedTuple):
    """A run, resolved: everything that its arguments ask for."""

    config: RunConfig
    preset: str  # name
    stages: list[stages.Stage]  # the run's own last
    budget: Budget


def resolve(arguments: Namespace) -> Run:
    """Return the run that the arguments ask for."""
    limits = {name: value for name, value in vars(arguments).items() if name in BUDGET and value is not None}
    budget, (config, preset) = Budget.from_values(limits), resolve_config(arguments)
    return Run(config, preset, stages.make(config), budget)


def resolve_config(arguments: Namespace) -> tuple[RunConfig, str]:
    """Return the config of the run, and the name of the preset it starts from."""
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
    first, values = stages.split(values)
    env_options, options = split_prefix(registry.resolve_values(algorithm, environment, values), "env.")
    config = RunConfig(
        algorithm=algorithm,
        environment=environment,
        seed=parse_count("seed", arguments.seed, low=0),
        options=options,
        env_options=env_options,
        stages=stages.resolve(algorithm, environment, values, first),
    )
    return config, preset


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
    first, values = stages.split(values)
    env_options, values = split_prefix(values, "env.")
    lines = [f"options of {algorithm} for --set (for {environment}, preset {preset}):"]
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
