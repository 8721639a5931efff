"""Evaluate: `python -m tdpo_baselines.evaluate PATH ...` rolls out trained policies and compares them.

A PATH is a run folder, its folder `best`, one checkpoint, an exported FILE.npz, or pretrained:NAME. Under mpirun the
ranks share the episodes; the numbers are the same on any number of ranks.
"""

import argparse
import csv
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .common.parallel.comm import Comm, Refused, connect
from .common.parallel.tensorflow_setup import prepare_environment
from .evaluating.robustness import Sweep, parse_ranges, sweep
from .evaluating.trained import PRETRAINED, Evaluation, Trained, evaluate, load
from .options.config import parse_number
from .plot import draw_sweeps
from .run import EXIT_INVALID_INPUT, Parser, refuse
from .viewing.episode import median_episode
from .viewing.film import check_file, make_film
from .viewing.mujoco_frames import set_opengl_aside

COLUMNS = ("episodes", "return", "std", "min", "payoff")  # of a comparison, between policy and verdict


def draw(evaluation: Evaluation):
    """Return the environment's own figure of the episode with the median return, or a plain one."""
    environment, rollouts = evaluation.environment, evaluation.rollouts
    median = median_episode(evaluation)
    actions = rollouts.actions[median, : rollouts.lengths[median]]
    if environment.draw is not None:
        return environment.draw(environment.params, environment.replay(evaluation.start_states[median], actions))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for panel, name in zip(panels, ("observations", "actions", "rewards")):
        panel.plot(getattr(rollouts, name)[median, : rollouts.lengths[median]])
        panel.set_ylabel(name)
    panels[-1].set_xlabel("step")
    return figure


def describe(trained: Trained, evaluation: Evaluation, is_stochastic: bool) -> str:
    """Return the results of one policy as a table."""
    config, num_episodes = trained.config, len(evaluation.results["return"])
    noise = "with exploration noise" if evaluation.has_noise else "without exploration"
    lines = [
        f"{config.algorithm} on {config.environment}, seed {config.seed}, iteration {trained.iteration}"
        + ("" if trained.environment_name == config.environment else f", in {trained.environment_name}")
        + f": {num_episodes} episode(s) {noise}"
        + (", of which this policy has none" if is_stochastic and not evaluation.has_noise else ""),
        f"{'':18}{'mean':>12}{'std':>12}{'min':>12}{'max':>12}",
    ]
    for name, statistics in evaluation.summary().items():
        lines.append(f"{name:18}" + "".join(f"{value:12.5g}" for value in statistics.values()))
    return "\n".join(lines + ([f"verdict: {evaluation.verdict}"] if evaluation.verdict else []))


def compare(names: Sequence[str], policies: Sequence[Trained], evaluations: Sequence[Evaluation]) -> str:
    """Return a table with a line per policy."""
    wheres = [f"{policy.config.algorithm}, {policy.environment_name}" for policy in policies]
    first, second = max(map(len, names)) + 2, max(map(len, wheres)) + 2
    lines = [f"{'policy':{first}}{'':{second}}" + "".join(f"{column:>12}" for column in COLUMNS) + "  verdict"]
    for name, where, evaluation in zip(names, wheres, evaluations):
        summary = evaluation.summary()
        numbers = [summary["return"]["mean"], summary["return"]["std"], summary["return"]["min"]]
        cells = [f"{len(evaluation.results['return']):12d}"]
        cells += [f"{value:12.5g}" for value in (*numbers, summary["payoff"]["mean"])]
        lines.append(f"{name:{first}}{where:{second}}" + "".join(cells) + f"  {evaluation.verdict or '-'}")
    return "\n".join(lines)


def as_values(trained: Trained, evaluation: Evaluation) -> dict[str, Any]:
    """Return the results of every episode as values for JSON."""
    config = trained.config
    head = {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
    head |= {"evaluated_in": trained.environment_name, "iteration": trained.iteration}
    episodes = {name: [finite(value) for value in values.tolist()] for name, values in evaluation.results.items()}
    summary = {name: {s: finite(v) for s, v in of.items()} for name, of in evaluation.summary().items()}
    verdict = evaluation.verdict and evaluation.verdict._asdict()
    return {**head, "has_noise": evaluation.has_noise, "verdict": verdict, "summary": summary, "episodes": episodes}


def finite(value: float) -> float | None:
    """Return None for a number that is not finite, for which JSON has no word."""
    return value if math.isfinite(value) else None


def as_rows(
    names: Sequence[str], policies: Sequence[Trained], evaluations: Sequence[Evaluation]
) -> list[dict[str, Any]]:
    """Return a row for each policy, with all statistics of all results."""
    rows = []
    for name, trained, evaluation in zip(names, policies, evaluations):
        values, verdict = as_values(trained, evaluation), evaluation.verdict
        del values["summary"], values["episodes"]
        row = {"policy": name, **values, "verdict": "" if verdict is None else str(verdict)}
        row["episodes"] = len(evaluation.results["return"])
        statistics = evaluation.summary().items()
        rows.append(row | {f"{result}_{s}": value for result, of in statistics for s, value in of.items()})
    return rows


def sweep_rows(names: Sequence[str], sweeps: Sequence[Sweep]) -> list[dict[str, Any]]:
    """Return a row for each policy and combination of option values."""
    return [
        {"policy": name, **{o: v[i] for o, v, i in zip(each.names, each.values, index)}, "return_mean": float(value)}
        for name, each in zip(names, sweeps)
        for index, value in np.ndenumerate(each.returns)
    ]


def describe_sweeps(rows: list[dict[str, Any]]) -> str:
    """Return the mean returns of a sweep as a table."""
    width = max(len(str(row["policy"])) for row in rows) + 2
    lines = [f"{'policy':{width}}" + "".join(f"{name:>16}" for name in list(rows[0])[1:])]
    return "\n".join(
        lines + [f"{row['policy']:{width}}" + "".join(f"{v:16.5g}" for v in list(row.values())[1:]) for row in rows]
    )


def write_csv(path: str, rows: list[dict[str, Any]]) -> None:
    """Write rows under all of their columns; empty where a row has no value."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


def parse_start_values(text: str) -> dict[str, float]:
    """Parse names and numbers such as "theta_hip=-0.8,height=0.5"."""
    values: dict[str, float] = {}
    for part in text.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not (name and sign) or name in values:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE,... with each name once, got {text!r}")
        try:
            values[name] = parse_number(name, value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return values


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; raise ValueError if it is invalid."""
    parser = Parser(prog="python -m tdpo_baselines.evaluate", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="policies to evaluate; several are compared in a table")
    add("--pretrained", nargs="+", default=[], metavar="NAME", help="policies of the package, as pretrained:NAME")
    add("--env", metavar="NAME", help="evaluate in another environment, with its default options; "
        "or allow importing the module of the run's own (module:Id)")  # fmt: skip
    add("--episodes", type=int, default=20, metavar="N", help="number of episodes (default: 20)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the starts (default: 0)")
    add("--best", action="store_true", help="evaluate the best parameters of the training, not the last")
    add("--stochastic", action="store_true", help="act with the exploration noise of the algorithm, if it has any")
    add("--reset", metavar="NAME=VALUE,...", type=parse_start_values, default={}, help="start from these values "
        "(leg: theta_hip, theta_knee in rad, height in m; pendulum: angle, rate)")  # fmt: skip
    add("--robustness", metavar="NAME=LOW:HIGH[:N],...", help="mean return over ranges of one or two numeric options "
        "of the environment, with N values each; run --help --env ENV lists them")  # fmt: skip
    add("--json", action="store_true", help="print JSON, with every episode, instead of a table")
    add("--csv", metavar="FILE.csv", help="also write the table, with all statistics")
    add("--plot", metavar="FILE.png", help="draw the episode with the median return, or the results of --robustness "
        "(default of those: robustness.png)")  # fmt: skip
    add("--video", metavar="FILE", help="film that episode: .mp4, .gif, or .png for a sheet of frames")
    add("--slow", type=float, default=1.0, metavar="FACTOR", help="slow motion, such as 10 (default: 1)")
    parsed = parser.parse_args(arguments)
    parsed.paths += [PRETRAINED + name for name in parsed.pretrained]
    if not parsed.paths:
        raise ValueError("PATH is missing: pass the folder of a run, or --pretrained NAME")
    if parsed.episodes < 1 or parsed.seed < 0:
        raise ValueError("--episodes must be at least 1 and --seed at least 0")
    if len(parsed.paths) > 1 and parsed.plot and not parsed.robustness:
        raise ValueError("--plot draws an episode of a single policy; pass one PATH")
    if parsed.video and (len(parsed.paths) > 1 or parsed.robustness):
        raise ValueError("--video films an episode of a single policy; pass one PATH, without --robustness")
    if parsed.video:
        check_file(parsed.video, parsed.slow)
    return parsed


def show(parsed: argparse.Namespace, policies: list[Trained], evaluations: list[Evaluation]) -> None:
    """Print and write the results."""
    if parsed.json:
        told = [as_values(*pair) for pair in zip(policies, evaluations)]
        text = json.dumps(told if len(told) > 1 else told[0])
    elif len(policies) > 1:
        text = compare(parsed.paths, policies, evaluations)
    else:
        text = describe(policies[0], evaluations[0], parsed.stochastic)
    tell(text)
    if parsed.csv:
        write_csv(parsed.csv, as_rows(parsed.paths, policies, evaluations))
    if parsed.plot:
        draw(evaluations[0]).savefig(parsed.plot, dpi=120)
    tell_files(parsed)
    if parsed.video:
        how = make_film(evaluations[0], parsed.video, parsed.slow)
        print(f"-> {parsed.video} ({how})", file=sys.stderr if parsed.json else sys.stdout)


def show_sweeps(parsed: argparse.Namespace, sweeps: list[Sweep]) -> None:
    """Print, write and draw the results of --robustness."""
    rows = sweep_rows(parsed.paths, sweeps)
    tell(json.dumps(rows) if parsed.json else describe_sweeps(rows))
    if parsed.csv:
        write_csv(parsed.csv, rows)
    parsed.plot = parsed.plot or "robustness.png"
    draw_sweeps(parsed.paths, sweeps).savefig(parsed.plot, dpi=120)
    tell_files(parsed)


def tell(text: str) -> None:
    """Print a text, to a reader that may leave before its end."""
    try:
        print(text, flush=True)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell_files(parsed: argparse.Namespace) -> None:
    """Name the files that were written."""
    for path in filter(None, (parsed.csv, parsed.plot)):
        print(f"-> {path}", file=sys.stderr if parsed.json else sys.stdout)


def work(parsed: argparse.Namespace, policies: list[Trained], comm: Comm) -> None:
    """Evaluate on all ranks; rank 0 prints."""
    how = {"num_episodes": parsed.episodes, "seed": parsed.seed, "start_values": parsed.reset}
    how["is_stochastic"] = parsed.stochastic
    if parsed.robustness:
        sweeps = [sweep(policy, parse_ranges(parsed.robustness), comm, **how) for policy in policies]
        comm.on_root(lambda: show_sweeps(parsed, sweeps))
    else:
        evaluations = [evaluate(policy, comm=comm, **how) for policy in policies]
        comm.on_root(lambda: show(parsed, policies, evaluations))


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()
    set_opengl_aside()
    try:
        parsed = parse(sys.argv[1:] if arguments is None else arguments)
        policies = [load(path, use_best=parsed.best, env=parsed.env) for path in parsed.paths]
        _ = [policy.network for policy in policies]  # raises ValueError before the ranks connect
        comm = connect()
    except (ValueError, OSError) as error:
        return refuse(error)
    try:
        work(parsed, policies, comm)
    except (ValueError, Refused) as error:  # the same on all ranks
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        comm.broadcast(None)  # no rank leaves before the message is printed
        return EXIT_INVALID_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
