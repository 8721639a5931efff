"""Train: `python -m tdpo_baselines.run --env pendulum-nlr`, alone or under mpirun."""

import argparse
import contextlib
import os
import platform
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from . import __version__
from .common.parallel import launcher
from .common.parallel.tensorflow_setup import prepare_environment
from .harness import registry
from .harness.budget import Budget
from .harness.config import did_you_mean, parse_number, read_json
from .harness.run_folder import RunConfig, RunFolder
from .harness.stop_request import StopRequest

EXIT_FAILED = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
SECONDS_FOR_ROOT_TO_SPEAK = 20


class Parser(argparse.ArgumentParser):
    """Raises what a user must mend instead of exiting, so that one rank alone can print it."""

    def error(self, message):
        raise ValueError(message)


def make_parser() -> Parser:
    parser = Parser(
        prog="python -m tdpo_baselines.run",
        description="Train a policy. Under mpirun the ranks share the work; the run is the same on any number of them.",
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--help", "-h", action="store_true", help="show this, with the options of the chosen --alg and --env")
    add("--list", action="store_true", help="show the algorithms and environments")
    add("--alg", default="tdpo", help="algorithm (default: tdpo)")
    add("--env", help="environment, by a name of --list")
    add("--num_timesteps", default="5e7", help="simulated steps, over all ranks, branches included (default: 5e7)")
    add("--num_iterations", help="stop after this many updates, if that comes first")
    add("--num_trajectories", help="main trajectories per update, over all ranks: short for --set num_trajectories=N")
    add("--seed", default="0", help="the same seed gives the same run on any number of ranks (default: 0)")
    add("--log_dir", help="the run's folder (default: runs/ALG-ENV-SEED)")
    add("--preset", help="shipped settings to start from: tuned (the default where there are any), paper, none")
    add("--config", metavar="FILE.json", help="options from a JSON object, over the preset's")
    add("--set", metavar="KEY=VALUE", action="append", nargs="+", default=[],
        help="options, over all others; env.KEY=VALUE sets the environment's; stage1.timesteps=N trains that long with "
        "stage1.KEY=VALUE and stage1.env.KEY=VALUE first; stage2 and so on may follow, then the run")  # fmt: skip
    add("--checkpoint_every", default="1000", metavar="N", help="updates between checkpoints (default: 1000)")
    add("--checkpoint_minutes", default="2", metavar="M", help="and minutes between them at most (default: 2)")
    add("--max_walltime", metavar="HH:MM:SS", help="then checkpoint and stop with exit code 85, to be resumed")
    add("--resume", action="store_true", help="continue the run in --log_dir; start it if it has not begun")
    add("--tensorboard", action="store_true", help="also write TensorBoard events (needs the tensorboard extra)")
    add("--quiet", action="store_true", help="print errors only")
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser()
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        word = unknown[0].split("=")[0]
        raise ValueError(f"unknown argument {unknown[0]!r}{did_you_mean(word, known)}; --help lists the arguments")
    return parsed


def resolve(arguments: argparse.Namespace) -> tuple[RunConfig, str]:
    """The run that the arguments ask for, and the name of the preset it starts from."""
    registry.algorithm(arguments.alg)
    if arguments.env is None:
        raise ValueError("--env is missing; --list shows the environments")
    registry.check_environment(arguments.env)
    preset, values = choose_preset(arguments.alg, arguments.env, arguments.preset)
    values |= read_json(arguments.config) if arguments.config else {}
    values |= dict(key_value(text) for group in arguments.set for text in group)
    if arguments.num_trajectories is not None:
        values["num_trajectories"] = arguments.num_trajectories
    stages, values = split_stages(values)
    options, env_options = resolve_values(arguments.alg, arguments.env, values)
    config = RunConfig(
        algorithm=arguments.alg,
        environment=arguments.env,
        seed=whole_number("seed", arguments.seed, low=0),
        options=options,
        env_options=env_options,
        stages=[resolve_stage(arguments.alg, arguments.env, values, name, changes) for name, changes in stages.items()],
    )
    return config, preset


def split(values: dict, prefix: str) -> tuple[dict, dict]:
    """The values whose names begin with the prefix, without it, and the others."""
    chosen = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return chosen, {name: value for name, value in values.items() if not name.startswith(prefix)}


def resolve_values(algorithm: str, environment: str, values: dict) -> tuple[dict, dict]:
    """All options of the algorithm and of the environment."""
    env_options, options = split(values, "env.")
    resolved = registry.algorithm(algorithm).Config.from_values(options).to_values()
    return resolved, registry.resolve_options(environment, env_options)


def split_stages(values: dict) -> tuple[dict[str, dict], dict]:
    """The values of stage1, stage2, ... in that order, and the others. A stage may have no timesteps."""
    stages: dict[str, dict] = {}
    while True:
        name = f"stage{len(stages) + 1}"
        changes, values = split(values, f"{name}.")
        if not changes:
            break
        if "timesteps" not in changes:
            raise ValueError(f"{name}.timesteps is missing: how long it lasts{did_you_mean('timesteps', changes)}")
        stages[name] = {**changes, "timesteps": whole_number(f"{name}.timesteps", str(changes["timesteps"]), low=0)}
    later = [key for key in values if re.match(r"stage[0-9]+\.", key)]
    if later:
        raise ValueError(f"{later[0]} is given but nothing of {name}; stages are numbered from stage1 on")
    return stages, values


def resolve_stage(algorithm: str, environment: str, values: dict, name: str, changes: dict) -> dict:
    """The "timesteps" of a stage and what differs in it, as `RunConfig` holds them."""
    timesteps, changes = changes["timesteps"], {key: value for key, value in changes.items() if key != "timesteps"}
    own = resolve_values(algorithm, environment, values)
    with naming(name):
        its = resolve_values(algorithm, environment, {**values, **changes})
    differences = {"timesteps": timesteps}
    for prefix, mine, other in zip(("", "env."), own, its):
        differences |= {prefix + name: value for name, value in other.items() if value != mine.get(name)}
    return differences


@contextlib.contextmanager
def naming(stage: str):
    """What is wrong in there is said of the stage."""
    try:
        yield
    except ValueError as error:
        raise type(error)(f"{stage}: {error}") from error


class Stage(NamedTuple):
    """A part of a run: the algorithm's options and the environment in it."""

    options: Any
    environment: Any


def make_stages(config: RunConfig) -> list[Stage]:
    """All stages, the run's own last."""
    own = make_stage(config, {})
    stages = []
    for number, changes in enumerate(config.stages, start=1):
        with naming(f"stage{number}"):
            stages.append(make_stage(config, changes))
            if network(stages[-1]) != network(own):
                raise ValueError(
                    "observations, actions, hidden_sizes, activation, use_observation_normalisation must be the run's"
                )
    return [*stages, own]


def network(stage: Stage) -> tuple:
    """What the networks of all stages must have in common."""
    options, environment = stage
    style = options.network_style(environment)
    is_normalised = options.to_values().get("use_observation_normalisation")
    return environment.observation_size, environment.action_size, options.hidden_sizes, style, is_normalised


def make_stage(config: RunConfig, changes: dict) -> Stage:
    env_options, options = split(changes, "env.")
    options = {name: value for name, value in options.items() if name != "timesteps"}
    environment = registry.make_environment(config.environment, {**config.env_options, **env_options})
    return Stage(registry.algorithm(config.algorithm).Config.from_values({**config.options, **options}), environment)


def choose_preset(algorithm: str, environment: str, name: str | None) -> tuple[str, dict]:
    available = registry.presets(algorithm, environment)
    if name is None:
        name = "tuned" if "tuned" in available else "none"
    if name == "none":
        return name, {}
    if name not in available:
        raise ValueError(
            f"no preset {name!r} of {algorithm} for {environment}{did_you_mean(name, available)}; "
            f"there is {', '.join([*available, 'none'])}"
        )
    return name, dict(available[name])


def key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"--set takes KEY=VALUE, got {text!r}")
    return key, value


def whole_number(name: str, text: str, low: int) -> int:
    value = parse_number(name, text, int)
    if not low <= value <= 10**18:
        raise ValueError(f"{name} must be at least {low} and at most 1e18, got {text}")
    return value


def positive_number(name: str, text: str) -> float:
    value = parse_number(name, text)
    if value <= 0:
        raise ValueError(f"{name} must be more than 0, got {text}")
    return value


def seconds(name: str, text: str) -> float:
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise ValueError(f"{name} must be HH:MM:SS, got {text!r}")
    return float(int(parts[0]) * 3600 + int(parts[1]) * 60 + int(parts[2]))


def make_budget(arguments: argparse.Namespace) -> Budget:
    iterations, walltime = arguments.num_iterations, arguments.max_walltime
    return Budget(
        num_timesteps=whole_number("num_timesteps", arguments.num_timesteps, low=1),
        num_iterations=None if iterations is None else whole_number("num_iterations", iterations, low=1),
        checkpoint_every=whole_number("checkpoint_every", arguments.checkpoint_every, low=1),
        checkpoint_seconds=60 * positive_number("checkpoint_minutes", arguments.checkpoint_minutes),
        max_walltime=None if walltime is None else seconds("max_walltime", walltime),
    )


def help_text(arguments: argparse.Namespace) -> str:
    algorithm = registry.algorithm(arguments.alg)
    text = make_parser().format_help()
    preset = "none"
    values: dict = {}
    others: dict = {}
    if arguments.env is not None:
        registry.check_environment(arguments.env)
        preset, values = choose_preset(arguments.alg, arguments.env, arguments.preset)
        stages, values = split_stages(values)
        env_options, values = split(values, "env.")
        others = {f"env.{name}": value for name, value in registry.environment_options(arguments.env).items()}
        others |= {f"env.{name}": value for name, value in env_options.items()}
        others |= {f"{name}.{key}": value for name, changes in stages.items() for key, value in changes.items()}
    config = algorithm.Config.from_values(values)
    where = f"for {arguments.env}, preset {preset}" if arguments.env else "defaults; add --env NAME for its preset"
    text += f"\noptions of {arguments.alg} for --set ({where}):\n{config.describe()}\n"
    if arguments.env:
        text += f"\noptions of {arguments.env}, and of its stages, for --set:\n"
        text += "".join(f"  {name}={value}\n" for name, value in others.items())
    return text


def list_text() -> str:
    lines = ["algorithms (--alg):", *(f"  {name}" for name in registry.ALGORITHMS), "environments (--env):"]
    return "\n".join(lines + [f"  {name:16} {target}" for name, (target, _) in registry.ENVIRONMENTS.items()])


def prepare_folder(folder: RunFolder, config: RunConfig, *, is_resumed: bool, circumstances: dict) -> None:
    """Check and create the run folder: nothing that is there already is overwritten."""
    folder.create()
    folder.lock()
    try:
        if folder.has_run():
            if not is_resumed:
                raise ValueError(
                    f"{folder.path} holds a run already; continue it with --resume or pass another --log_dir"
                )
            differences = folder.read_config().differences(config)
            if differences:
                raise ValueError(f"{folder.path} holds another run ({'; '.join(differences)}); pass another --log_dir")
    except ValueError:
        folder.unlock()
        raise
    folder.write_config(RunConfig(**{**vars(config), "made_with": {**versions(), **circumstances}}))


def versions() -> dict[str, str | None]:
    """Versions of what decides the numbers, and the revision if this is a checkout."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {"tdpo_baselines": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "tensorflow", "gymnasium", "mujoco"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    checkout = Path(__file__).parent.parent
    if (checkout / ".git").exists():
        command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
        with contextlib.suppress(OSError):
            found["git_revision"] = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return found


def check_stages(algorithm, stages: list[Stage], num_ranks: int) -> None:
    for number, stage in enumerate(stages, start=1):
        with naming(f"stage{number}") if number < len(stages) else contextlib.nullcontext():
            algorithm.check(stage.options, stage.environment, num_ranks)


def stage_text(number: int, changes: dict) -> str:
    words = " ".join(f"{name}={value}" for name, value in changes.items() if name != "timesteps")
    return f"stage {number}: {changes['timesteps']} timesteps with {words}"


def folder_of(arguments: argparse.Namespace, config: RunConfig) -> RunFolder:
    return RunFolder(arguments.log_dir or f"runs/{config.algorithm}-{config.environment}-{config.seed}")


def set_up(arguments: argparse.Namespace, config: RunConfig, preset: str, stages: list[Stage], comm, stop: StopRequest):
    """Everything before the first update."""
    from .harness.logger import Console

    console = Console(arguments.quiet or comm.rank > 0)
    algorithm = registry.algorithm(config.algorithm)
    options, environment = stages[-1]
    comm.on_root(lambda: check_stages(algorithm, stages, comm.size))
    folder, budget = folder_of(arguments, config), make_budget(arguments)
    circumstances = {"num_ranks": comm.size, "preset": preset, "num_timesteps": budget.num_timesteps}
    comm.on_root(lambda: prepare_folder(folder, config, is_resumed=arguments.resume, circumstances=circumstances))
    console.say(
        f"{config.algorithm} on {config.environment}, seed {config.seed}, preset {preset}: "
        f"{comm.size} rank(s), {options.num_trajectories} trajectories per update -> {folder.path}"
    )
    if comm.crowd:
        console.say("warning: {} ranks share {} core(s) of a host: a rank per core is faster".format(*comm.crowd))
    for number, changes in enumerate(config.stages, start=1):
        console.say(stage_text(number, changes))
    before = sum(changes["timesteps"] for changes in config.stages)
    if budget.num_timesteps <= before:
        console.say(f"warning: the run ends before its last stage begins: pass --num_timesteps {2 * before:g} or so")
    for remark in options.remarks(environment, budget.num_timesteps):
        console.say(remark)
    from .harness.training import Training

    def make_learner(stage: Stage):
        options, environment = stage
        roller = comm.first_on_each_host(lambda: registry.make_roller(environment, options))
        return algorithm.Learner(options, roller, comm, config.seed)

    training = Training([partial(make_learner, stage) for stage in stages], config, folder, comm, budget, console, stop)
    if arguments.tensorboard:
        comm.on_root(training.open_tensorboard)
    training.prepare(is_resumed=arguments.resume)
    return training


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()  # before anything imports NumPy
    with StopRequest() as stop:
        return train_or_explain(sys.argv[1:] if arguments is None else arguments, stop)


def train_or_explain(arguments: list[str], stop: StopRequest) -> int:
    """What the command line asks for; the exit code."""
    is_root = not launcher.rank()
    try:
        parsed = parse(arguments)
        if parsed.help or parsed.list:
            if is_root:
                with contextlib.suppress(BrokenPipeError):  # of `| head`
                    print(help_text(parsed) if parsed.help else list_text(), flush=True)
            return 0
        make_budget(parsed)
        config, preset = resolve(parsed)
        stages = make_stages(config)
        from .common.parallel.comm import connect

        comm = connect()
    except ValueError as error:  # the same on every rank
        if is_root:
            print(f"error: {error}", file=sys.stderr, flush=True)
        else:
            time.sleep(SECONDS_FOR_ROOT_TO_SPEAK)  # the first rank to leave makes mpirun end the others
            print(f"[rank {launcher.rank()}] error: {error}", file=sys.stderr, flush=True)  # this rank's alone
        return EXIT_USER_ERROR
    return run_together(parsed, config, preset, stages, comm, stop)


def run_together(
    arguments: argparse.Namespace, config: RunConfig, preset: str, stages: list[Stage], comm, stop: StopRequest
) -> int:
    """Train on all ranks. What all know of ends in order; anything else on one rank ends the job at once."""
    from .common.parallel.checks import NotFinite
    from .common.parallel.comm import Refused, rank_traceback

    exit_code = EXIT_USER_ERROR
    try:
        training = set_up(arguments, config, preset, stages, comm, stop)
        exit_code = EXIT_FAILED
        return training.run()
    except (Refused, NotFinite) as error:
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        comm.broadcast(None)  # no rank leaves before it is said
        return exit_code
    except KeyboardInterrupt:
        os._exit(EXIT_INTERRUPTED)
    except Exception:
        text = rank_traceback(comm)
        sys.stderr.write(text)
        with contextlib.suppress(OSError):
            folder_of(arguments, config).note(comm.rank, text)
        comm.abort()
        return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
