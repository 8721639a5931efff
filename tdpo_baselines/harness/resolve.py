"""Resolve the arguments of the command line to everything that decides a run.

Options come from the algorithm's defaults, the preset, --config and --set; each overrides the ones before. Instead of
the first two, a run that is resumed or repeated begins with its own options. A preset or a file may also give the
budget, "num_timesteps", and an option may have it as its value: a schedule as long as the run.
"""

import re
from argparse import Namespace
from dataclasses import fields, replace
from typing import NamedTuple

from ..common.files import read_json
from ..options import registry
from ..options.budget import Budget, format_count
from ..options.config import did_you_mean, parse_count, split_prefix, to_text
from ..storage.run_folder import LIMITS, RunConfig, RunFolder, default_path
from . import stages

BUDGET = {field.name for field in fields(Budget)}
TIMESTEPS = "num_timesteps"


class Name(NamedTuple):
    """Algorithm, environment and seed: they tell runs with the same options apart."""

    algorithm: str
    environment: str
    seed: int


class Run(NamedTuple):
    """A run, resolved: everything that its arguments ask for."""

    config: RunConfig
    preset: str  # name
    stages: list[stages.Stage]  # the run's own last
    budget: Budget


def resolve(arguments: Namespace) -> Run:
    """Return the run that the arguments ask for."""
    base, file_values = find_base(arguments)
    name = identify(arguments, base)
    preset, values = collect_values(arguments, base, name, file_values)
    limits = {name: value for name, value in vars(arguments).items() if name in BUDGET and value is not None}
    if base is not None and not limits.keys() & set(LIMITS):
        limits |= {name: base.made_with[name] for name in LIMITS if base.made_with.get(name) is not None}
    budget, values = apply_budget(values, limits)
    config = replace(resolve_config(name, values), init=find_init(arguments, base))
    return Run(config, preset, stages.make(config), budget)


def find_base(arguments: Namespace) -> tuple[RunConfig | None, dict]:
    """Return the config of the run that --resume continues or --config repeats, if any, and the options of --config."""
    values = read_json(arguments.config) if arguments.config else {}
    base = None
    if {"algorithm", "environment", "options"} <= values.keys():
        base, values = RunConfig.from_values(values, arguments.config), {}
        if (arguments.alg or base.algorithm, arguments.env or base.environment) != (base.algorithm, base.environment):
            run = f"{base.algorithm} on {base.environment}"
            raise ValueError(f"--config {arguments.config} repeats {run}; leave out --alg and --env, or pass the same")
    seed = parse_count("seed", arguments.seed or "0", low=0)
    folder = RunFolder(arguments.log_dir or default_path(arguments.alg or "tdpo", arguments.env, seed))
    if arguments.resume and folder.has_run():
        here = folder.find_config()
        is_same = arguments.alg in (None, here.algorithm) and arguments.env in (None, here.environment)
        base = here if is_same and base is None else base
    return base, _flatten(values)


def _flatten(values: dict, prefix: str = "") -> dict:
    """Return options by dotted names: those in an object "env" begin with "env."."""
    flat: dict = {}
    for name, value in values.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def identify(arguments: Namespace, base: RunConfig | None) -> Name:
    """Return the algorithm, environment and seed of the run."""
    algorithm, environment, seed = arguments.alg, arguments.env, arguments.seed
    if base is not None:
        algorithm, seed = base.algorithm, seed or str(base.seed)
        if not environment:
            registry.require_trusted(base.environment, base.env_options)
        environment = base.environment
    algorithm = algorithm or "tdpo"
    check_option_arguments(arguments, algorithm)
    if not environment:
        missing = f" and {arguments.log_dir} holds no run" if arguments.resume and arguments.log_dir else ""
        raise ValueError(f"--env is missing{missing}; --list shows the environments")
    registry.check_environment(environment)
    return Name(algorithm, environment, parse_count("seed", seed or "0", low=0))


def collect_values(arguments: Namespace, base: RunConfig | None, name: Name, file_values: dict) -> tuple[str, dict]:
    """Return the name of the preset, and all options that differ from the algorithm's defaults."""
    if base is not None and arguments.preset is None:
        preset, values = base.made_with.get("preset", "none"), base.values()
    else:
        preset, chosen = choose_preset(name.algorithm, name.environment, arguments.preset)
        values = ({} if base is None else base.values()) | chosen
    given = dict(parse_assignment(text) for group in arguments.set for text in group)
    return preset, values | file_values | given | arguments.option_arguments


def find_init(arguments: Namespace, base: RunConfig | None) -> dict:
    """Return where the policy comes from that the run begins with; empty if it begins with random weights."""
    if arguments.init is None:
        return {} if base is None else base.init
    from .initial import name_source

    return {"from": name_source(arguments.init)}


def apply_budget(values: dict, limits: dict) -> tuple[Budget, dict]:
    """Return the budget, with `limits` over what the values say, and the options among them with it filled in."""
    of_values = {TIMESTEPS: values[TIMESTEPS]} if TIMESTEPS in values else {}
    budget = Budget.from_values({**of_values, **limits})
    options = {name: value for name, value in values.items() if name != TIMESTEPS}
    return budget, {name: budget.num_timesteps if value == TIMESTEPS else value for name, value in options.items()}


def resolve_config(name: Name, values: dict) -> RunConfig:
    """Return the config of the run with all options, of the environment and the stages too."""
    algorithm, environment, seed = name
    first, values = stages.split(values)
    env_options, options = split_prefix(registry.resolve_values(algorithm, environment, values), "env.")
    return RunConfig(
        algorithm=algorithm,
        environment=environment,
        seed=seed,
        options=options,
        env_options=env_options,
        stages=stages.resolve(algorithm, environment, values, first),
    )


def check_option_arguments(arguments: Namespace, algorithm: str) -> None:
    """Raise ValueError for an argument that is no option of the algorithm, the environment or a stage."""
    known = [field.name for field in fields(registry.algorithm(algorithm).Config)]
    for name in arguments.option_arguments:
        if name not in known and not re.match(r"(env|stage\d+)\.", name):
            near = did_you_mean(name, [*vars(arguments), *known], "--")
            raise ValueError(
                f"unknown argument '--{name}'{near}; --help --alg {algorithm} lists the arguments and options"
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
    meanings = registry.option_meanings(environment)
    for name, value in (registry.environment_options(environment) | env_options).items():
        lines.append(f"  env.{name}={to_text(value)}" + (f"\n        {meanings[name]}" if name in meanings else ""))
    for number, changes in enumerate(first, start=1):
        lines += [f"  stage{number}.{name}={value}" for name, value in changes.items()]
    return "\n".join(lines) + "\n"
