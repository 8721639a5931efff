"""Tune: search the options with the best return, from the range of a sweep's definition.

    python -m tdpo_baselines.tune --alg ppo1 --env leg-100hz --evaluations 60 --jobs 8
    python -m tdpo_baselines.tune --alg trpo --env pendulum-nlr --vary gamma=0.9,0.9999 --vary max_kl=0.001,0.1

The same command continues a search; more --evaluations extend it. The winner is trained again on fresh seeds, and
best.json has its options for `tdpo_baselines.run --config`. Exit codes: 0 finished; 1 the winner has failed on a fresh
seed; 2 invalid input; 85 stopped early or submitted, with everything saved.
"""

import argparse
import sys
from pathlib import Path

from .common.parallel.tensorflow_setup import prepare_environment
from .run import EXIT_INTERRUPTED, EXIT_INVALID_INPUT
from .sweep import add_submission, define

SHIPPED = Path(__file__).parent.parent / "run_scripts/sweeps"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tdpo_baselines.tune",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE.json", help="definition of a sweep: the range of a parameter is that of its "
        "values (default: the paper's for --alg and --env, if there is one and --vary is not given)")  # fmt: skip
    for name in ("env", "alg", "preset"):
        add(f"--{name}", help="as for tdpo_baselines.run")
    add("--vary", metavar="KEY=LOW,HIGH", action="append", default=[], help="range of a parameter, or its choices")
    add("--set", metavar="KEY=VALUE", action="extend", nargs="+", default=[], help="arguments or options of all runs")
    add("--library", default="optuna", help="optuna (the default), bayesopt, skopt, gpyopt, or random")
    add("--variant", default="B", choices="ABC", help="the paper's: A proposes 30 settings a round, each trained "
        "with one of 3 seeds; B 10 settings with all 3 seeds (default); C 30 with one of 100")  # fmt: skip
    add("--batch", type=int, metavar="N", help="settings of a round, instead of 30 or 10")
    add("--evaluations", type=int, default=100, metavar="N", help="settings to evaluate (default: 100)")
    add("--sweep", type=Path, metavar="DIR", help="folder of a sweep whose settings are evaluations to start from")
    add("--prune", choices=("median", "hyperband"), help="end runs that do worse than earlier ones did at that point, "
        "by this pruner of Optuna (default: train all to the end)")  # fmt: skip
    add("--fresh_seeds", type=int, default=5, metavar="N", help="seeds to train the winner with again (default: 5)")
    add("--seed", type=int, default=0, help="seed of the search (default: 0)")
    add("--jobs", type=int, default=1, metavar="N", help="runs at the same time on this machine (default: 1)")
    add_submission(parser, "runs of a round")
    add("--out", type=Path, metavar="DIR", help="folder of the search (default: studies/ALG-ENV-LIBRARY)")
    return parser.parse_args(arguments)


def find_definition(parsed: argparse.Namespace):
    """Return what to search: the file's, or the paper's for the algorithm and the environment."""
    if not parsed.file and not parsed.vary:
        shipped = SHIPPED / f"{parsed.alg}_{str(parsed.env).replace('-', '_')}.json"
        if not shipped.exists():
            raise ValueError(f"no search space of {parsed.alg} for {parsed.env}; pass FILE.json or --vary KEY=LOW,HIGH")
        parsed.file = str(shipped)
    parsed.seeds = None
    return define(parsed)


def check(parsed: argparse.Namespace) -> None:
    """Raise ValueError for invalid arguments."""
    from .options.config import did_you_mean
    from .tuning.libraries import LIBRARIES, require

    for name in ("jobs", "evaluations", "fresh_seeds", "batch"):
        if getattr(parsed, name) is not None and getattr(parsed, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(parsed, name)}")
    if parsed.seed < 0:
        raise ValueError(f"--seed must be at least 0, got {parsed.seed}")
    if parsed.library not in LIBRARIES:
        near = did_you_mean(parsed.library, LIBRARIES)
        raise ValueError(f"--library must be one of {', '.join(LIBRARIES)}, got {parsed.library!r}{near}")
    require(parsed.library)
    if parsed.prune:
        require("optuna")
    if parsed.prune and parsed.submit:
        raise ValueError("--prune watches runs on this machine; leave --prune or --submit out")


def search(parsed: argparse.Namespace) -> int:
    """Search, train the winner again, and write the results; return the exit code."""
    from .harness.stop_request import EXIT_STOPPED
    from .sweeping.pool import Prunes
    from .sweeping.sweep import Sweep, lock, submit_unfinished, train_unfinished
    from .tuning.figure import draw
    from .tuning.study import Plan, Study, read_sweep

    definition = find_definition(parsed)
    values = definition.fixed
    name = f"{values.get('alg', 'tdpo')}-{values.get('env', '')}-{parsed.library}".replace(":", "-").replace("/", "-")
    out = parsed.out or Path("studies", name)
    prior = read_sweep(parsed.sweep, definition) if parsed.sweep else []
    plan = Plan(definition, parsed.library, parsed.variant, parsed.batch, parsed.seed, parsed.prune)
    study = Study(plan, out, prior)

    def train(sweep: Sweep, prunes: Prunes | None) -> bool:
        return submit_unfinished(sweep, parsed) if parsed.submit else train_unfinished(sweep, parsed.jobs, prunes)

    with lock(out):
        code = study.search(parsed.evaluations, train)
        if not code:
            draw(study).savefig(out / "history.png", dpi=120)
            winner = study.winner()
            shown = ", ".join(f"{key}={value}" for key, value in winner.values.items())
            print(f"best score {winner.score:.5g}: {shown}\ntraining it again on {parsed.fresh_seeds} fresh seeds")
            scores, code = study.confirm(winner, parsed.fresh_seeds, train)
    if code == EXIT_STOPPED:
        print("the same command continues" + " when the submitted runs have ended" * bool(parsed.submit))
        return code
    study.write_winner(winner, scores)
    mean = sum(scores) / len(scores) if scores else float("nan")
    print(f"fresh seeds: mean {mean:.5g} of {len(scores)} -> {out}: best.json, summary.json, history.csv, history.png")
    return code


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()  # also of the processes that train
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        check(parsed)
        return search(parsed)
    except KeyboardInterrupt:  # a second Ctrl-C
        return EXIT_INTERRUPTED
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_INVALID_INPUT


if __name__ == "__main__":
    sys.exit(main())
