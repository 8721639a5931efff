"""Train: `python -m tdpo_baselines.run --env pendulum-nlr`, alone or under mpirun.

Exit codes: 0 finished; 1 failed; 2 invalid input, and the message says what to change; 85 stopped early with everything
saved, continue with --resume; 130 ended at once by a second Ctrl-C.
"""

from .common.parallel import launcher

if __name__ == "__main__":
    launcher.announce()  # before the other imports: with many ranks on few cores they take long

import argparse
import contextlib
import os
import re
import sys
import time
from typing import TYPE_CHECKING

from .common.parallel import mpirun
from .common.parallel.tensorflow_setup import paused_collection, prepare_environment
from .harness.stop_request import EXIT_STOPPED, StopRequest

if TYPE_CHECKING:
    from .harness.resolve import Run

EXIT_FAILED = 1
EXIT_INVALID_INPUT = 2
EXIT_INTERRUPTED = 130
SECONDS_FOR_ROOT_TO_PRINT = 20
SPELLINGS = {
    "--algo": "--alg",
    "--n_timesteps": "--num_timesteps",
    "--log_path": "--log_dir",
    "--log_folder": "--log_dir",
}


class Parser(argparse.ArgumentParser):
    """A parser that raises ValueError instead of exiting, so that rank 0 alone can print the message."""

    def error(self, message):
        raise ValueError(message)


def make_parser() -> Parser:
    """Return the parser of the command line."""
    from dataclasses import fields

    from .options.budget import Budget

    parser = Parser(
        prog="python -m tdpo_baselines.run",
        description="Train a policy. Under mpirun the ranks share the work; the run is the same on any number of them.",
        epilog=__doc__.partition("\n\n")[2],
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--help", "-h", action="store_true", help="show this, and the options of --alg for --env")
    add("--list", action="store_true", help="show the algorithms and environments")
    add("--alg", help="algorithm (default: tdpo)")
    add("--env", help="environment: a name of --list, any id of Gymnasium, or module:function")
    add("--seed", help="the same seed gives the same run on any number of ranks (default: 0)")
    add("--log_dir", help="folder of the run (default: runs/ALG-ENV-SEED)")
    add("--preset", help="shipped options to start from: tuned (the default where it exists), paper, or none")
    add("--config", metavar="FILE.json", help="options from a JSON object; they override the preset. "
        "With the config.json of a run, repeat that run")  # fmt: skip
    add("--set", metavar="KEY=VALUE", action="append", nargs="+", default=[], help="options; they override all others. "
        "Their names are arguments too: --gamma 0.9 is short for --set gamma=0.9. "
        "env.KEY=VALUE sets an option of the environment. stage1.timesteps=N trains for N timesteps with "
        "stage1.KEY=VALUE and stage1.env.KEY=VALUE first; stage2 and so on may follow")  # fmt: skip
    add("--init", metavar="PATH", help="begin with the policy of a run, a checkpoint, an exported FILE.npz or "
        "pretrained:NAME, if its network fits")  # fmt: skip
    for field in fields(Budget):
        default = "" if field.default is None else f" (default: {field.default:g})".replace("+0", "")
        kind = "HH:MM:SS" if field.name == "max_walltime" else "N"
        add(f"--{field.name}", metavar=kind, help=field.metadata["meaning"] + default)
    add("--ranks", metavar="N", help="start N ranks on this machine; 1: alone, also inside of a SLURM step")
    add("--resume", action="store_true", help="continue the run in --log_dir with its own options, or start it if "
        "there is none")  # fmt: skip
    add("--track", metavar="NAME", action="append", default=[], help="also log to tensorboard, wandb or trackio; each "
        "needs the extra of its name. A resumed run continues the same tracked run")  # fmt: skip
    add("--tensorboard", action="append_const", const="tensorboard", dest="track", help="short for --track tensorboard")
    add("--quiet", action="store_true", help="print errors only")
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line. Arguments that the parser does not know become `option_arguments`."""
    parsed, unknown = make_parser().parse_known_args([spell(word) for word in arguments])
    parsed.option_arguments = {}
    while unknown:
        name, equals, value = unknown.pop(0).partition("=")
        if not name.startswith("--"):
            hint = f"pass --{name} {value}" if equals else "--help lists the arguments"
            raise ValueError(f"unknown argument {name + equals + value!r}; {hint}")
        if not equals and (not unknown or unknown[0].startswith("--")):
            raise ValueError(f"{name} is no argument, or an option without a value; --help lists both")
        parsed.option_arguments[name[2:]] = value if equals else unknown.pop(0)
    return parsed


def spell(word: str) -> str:
    """Return an argument in our spelling: underscores for dashes, and our names for those of baselines and its zoo."""
    name, equals, value = word.partition("=")
    if not re.match(r"--\w", name):
        return word
    name = name.replace("-", "_").replace("__", "--", 1)
    return SPELLINGS.get(name, name) + equals + value


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()  # before anything imports NumPy
    with StopRequest(is_starting=True) as stop:
        return parse_and_train(sys.argv[1:] if arguments is None else arguments, stop)


def parse_and_train(arguments: list[str], stop: StopRequest, comm=None) -> int:
    """Parse, resolve, connect the ranks unless `comm` connects them already, and train."""
    from .harness.resolve import resolve

    try:
        parsed = parse(arguments)
        if parsed.help or parsed.list:
            if not launcher.rank():
                show_help(parsed)
            return 0
        num_ranks = read_ranks(parsed.ranks)
        if num_ranks is not None and num_ranks > 1 and launcher.rank() is None:
            require_runnable(parsed, num_ranks)
            return mpirun.run(num_ranks, "run", arguments)
        if parsed.step_timeout is not None:
            watch_environments(parsed.step_timeout)
        with paused_collection():
            run = resolve(parsed)
        from .common.parallel.comm import connect

        comm = comm or connect(is_alone=num_ranks == 1)
    except ValueError as error:  # usually the same on every rank
        return refuse(error)
    except (MemoryError, OSError, ImportError) as error:
        from .common.parallel.checks import describe_shortage

        if what := describe_shortage(error):
            return refuse(ValueError(what))
        raise
    return train(parsed, run, comm, stop)


def read_ranks(text: str | None) -> int | None:
    """Return the number of ranks that --ranks asks for; raise ValueError if mpirun has started another number."""
    if text is None:
        return None
    from .options.config import parse_count

    num, started = parse_count("ranks", text, low=1), launcher.num_expected()
    if launcher.rank() is not None and started not in (None, num):
        raise ValueError(f"--ranks {num} under an mpirun that started {started}; leave out --ranks or mpirun")
    return num


def require_runnable(parsed: argparse.Namespace, num_ranks: int) -> None:
    """Raise ValueError for invalid input before ranks are started, which takes long where they share cores."""
    from .harness import stages
    from .harness.resolve import resolve

    run = resolve(parsed)
    stages.check(run.config.algorithm, run.stages, num_ranks)


def watch_environments(seconds: str) -> None:
    """End the job if a step of an environment takes this long."""
    from .common.sampling import watchdog
    from .options.budget import Budget

    limit = Budget.from_values({"step_timeout": seconds}).step_timeout
    assert limit is not None
    watchdog.start(limit)


def refuse(error: Exception) -> int:
    """Print what is wrong with the input, on rank 0 unless this rank alone knows; return the exit code."""
    if not launcher.rank():
        print(f"error: {error}", file=sys.stderr, flush=True)
    else:
        time.sleep(SECONDS_FOR_ROOT_TO_PRINT)  # mpirun ends all ranks when the first one leaves
        print(f"[rank {launcher.rank()}] error: {error}", file=sys.stderr, flush=True)
    return EXIT_INVALID_INPUT


def show_help(parsed: argparse.Namespace) -> None:
    """Print what --help or --list asks for."""
    from .harness.resolve import describe_options
    from .options import registry

    with contextlib.suppress(BrokenPipeError):  # of `| head`
        if parsed.list:
            print(registry.describe(), flush=True)
        else:
            print(
                make_parser().format_help(),
                describe_options(parsed.alg or "tdpo", parsed.env, parsed.preset),
                sep="\n",
                flush=True,
            )


def train(parsed: argparse.Namespace, run: "Run", comm, stop: StopRequest) -> int:
    """Train on all ranks. Errors that all ranks know of end the job in order; any other ends it at once."""
    from .common.parallel.checks import BadEnvironment, NotFinite, describe_shortage
    from .common.parallel.comm import Refused, rank_traceback
    from .harness.session import set_up
    from .storage.run_folder import RunFolder, default_path

    config, exit_code = run.config, EXIT_INVALID_INPUT
    folder = RunFolder(parsed.log_dir or default_path(config.algorithm, config.environment, config.seed))
    how = {"is_resumed": parsed.resume, "is_quiet": parsed.quiet, "track": parsed.track}
    try:
        with paused_collection():
            training = set_up(run, folder, comm, stop, **how)
        exit_code = EXIT_FAILED
        return training.run()
    except (Refused, NotFinite) as error:
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        comm.broadcast(None)  # no rank leaves before the message is printed
        return exit_code
    except KeyboardInterrupt:
        os._exit(EXIT_INTERRUPTED)
    except BaseException as error:  # an environment that calls sys.exit too: the other ranks would wait forever
        what = str(error) if isinstance(error, BadEnvironment) else describe_shortage(error)
        text = f"[rank {comm.rank}] error: {what}\n" if what else rank_traceback(comm)
        sys.stderr.write(text)
        with contextlib.suppress(OSError):
            folder.note(comm.rank, text)
        comm.abort()
        return EXIT_FAILED


if __name__ == "__main__":
    exit_code = main()
    sys.exit(mpirun.tell(exit_code) if exit_code == EXIT_STOPPED else exit_code)
