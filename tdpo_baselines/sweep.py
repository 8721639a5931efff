"""Sweep: train many settings with many seeds, on this machine or on a cluster.

    python -m tdpo_baselines.sweep --env pendulum-nlr --seeds 0-9 --vary gamma=0.99,1 --vary num_branches=2,3 --jobs 4
    python -m tdpo_baselines.sweep run_scripts/sweeps/ppo1_leg_100hz.json --jobs 32
    python -m tdpo_baselines.sweep run_scripts/sweeps/ppo1_leg_100hz.json --submit slurm --ranks 4

The same command continues a sweep: finished runs are not repeated, interrupted ones go on, failed ones are tried again.
Exit codes: 0 finished or submitted; 1 runs have failed twice; 2 invalid input; 85 stopped early with everything saved.
"""

import argparse
import dataclasses
import os
import sys
from collections import Counter
from pathlib import Path

from .common.parallel.tensorflow_setup import prepare_environment
from .harness.resolve import parse_assignment
from .run import EXIT_INTERRUPTED, EXIT_INVALID_INPUT
from .sweeping.definition import Definition, make_runs, parse_list, parse_seeds, read, write


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tdpo_baselines.sweep",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE.json", help="definition of the sweep; the arguments below add to it")
    for name in ("env", "alg", "preset"):
        add(f"--{name}", help="as for tdpo_baselines.run")
    add("--seeds", metavar="0-9", help="seeds of every setting, such as 0-9 or 1,5,7 (default: 0)")
    add("--vary", metavar="KEY=V1,V2", action="append", default=[], help="values of an argument or option of "
        "tdpo_baselines.run; several --vary make all combinations")  # fmt: skip
    add("--set", metavar="KEY=VALUE", action="extend", nargs="+", default=[], help="arguments or options of all runs")
    add("--out", type=Path, metavar="DIR", help="folder of the sweep (default: sweeps/NAME)")
    add("--jobs", type=int, default=1, metavar="N", help="runs at the same time on this machine (default: 1)")
    add("--status", action="store_true", help="only show what is done and write the CSV files")
    add_submission(parser, "unfinished runs")
    return parser.parse_args(arguments)


def add_submission(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the arguments of a submission to a cluster."""
    add = parser.add_argument
    add("--submit", choices=("slurm", "pbs"), help=f"submit the {what} to a cluster instead")
    add("--ranks", type=int, default=1, metavar="N", help="with --submit: MPI ranks of a run (default: 1)")
    add("--time", default="12:00:00", help="with --submit: time limit of a job (default: 12:00:00)")
    add("--dry-run", action="store_true", help="with --submit: write the script and show it, but submit nothing")


def define(parsed: argparse.Namespace) -> Definition:
    """Return the definition in the file, if there is one, with the arguments added."""
    base = read(parsed.file) if parsed.file else Definition()
    fixed = {name: getattr(parsed, name) for name in ("env", "alg", "preset") if getattr(parsed, name)}
    varied = [parse_list(text) for text in parsed.vary]
    twice = next((key for key, count in Counter(key for key, _ in varied).items() if count > 1), None)
    if twice:
        raise ValueError(f"--vary {twice} is given twice; write --vary {twice}=V1,V2")
    return dataclasses.replace(
        base,
        fixed={**base.fixed, **fixed, **dict(map(parse_assignment, parsed.set))},
        cartesian={**base.cartesian, **dict(varied)},
        seeds=parse_seeds(parsed.seeds) if parsed.seeds else base.seeds,
    )


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()  # also of the processes that train
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    from .sweeping.sweep import Sweep, submit, train  # loads NumPy

    try:
        if parsed.jobs < 1:
            raise ValueError(f"--jobs must be at least 1, got {parsed.jobs}")
        definition = define(parsed)
        values = definition.fixed
        name = Path(parsed.file).stem if parsed.file else f"{values.get('alg', 'tdpo')}-{values.get('env', '')}"
        out = parsed.out or Path("sweeps", name.replace(":", "-").replace("/", "-"))
        sweep = Sweep(make_runs(definition, out), out)
        write(definition, out)
        if parsed.status:
            print(sweep.summary())
            return 0
        return submit(sweep, parsed) if parsed.submit else train(sweep, parsed.jobs)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:  # a second Ctrl-C
        return EXIT_INTERRUPTED
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_INVALID_INPUT


if __name__ == "__main__":
    sys.exit(main())
