"""Plot learning curves: `python -m tdpo_baselines.plot runs/* --out curves.png` shows every run, finished or not.

A thick line is the interquartile mean over the seeds of an algorithm in an environment, and a band its 95 % bootstrap
interval (1,000 resamples of the seeds), as far as all of them have come.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from .harness.run_folder import RunFolder

COLOURS = {  # of Okabe and Ito, told apart by colour-blind readers; always the same for an algorithm
    "tdpo": "#D55E00", "trpo": "#0072B2", "ppo1": "#009E73", "td3": "#CC79A7", "ddpg": "#E69F00", "ars": "#56B4E9",
    "cma": "#000000",
}  # fmt: skip
STYLES = ("-", "--", ":", "-.")  # of environments
NUM_RESAMPLES = 1000


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of the middle half of the seeds: values [..., seed, point] -> [..., point]."""
    cut = values.shape[-2] // 4
    return np.sort(values, axis=-2)[..., cut : values.shape[-2] - cut, :].mean(axis=-2)


def bootstrap_interval(values: np.ndarray) -> np.ndarray:
    """Return the 95 % interval of the interquartile mean over resamples of the seeds. [seed, point] -> [2, point]"""
    chosen = np.random.default_rng(0).integers(len(values), size=(NUM_RESAMPLES, len(values)))
    means = np.array([interquartile_mean(values[rows]) for rows in chosen])  # [resample, point]
    return np.quantile(means, (0.025, 0.975), axis=0)


def read_progress(path: str | Path) -> dict[str, np.ndarray]:
    """Read the columns of a run's progress.csv, without an incomplete last line."""
    folder = RunFolder(path)
    if not folder.progress_path.is_file():
        raise ValueError(f"{path} has no progress.csv")
    complete = [line for line in folder.progress_path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    header, *rows = list(csv.reader(complete)) or [[]]
    if not rows:
        raise ValueError(f"{folder.progress_path} has no rows yet")
    return {name: np.array(column, dtype=float) for name, column in zip(header, zip(*rows))}


def draw_curves(paths: list[str], *, x: str, y: str, is_log: bool):
    """Return a figure of all runs: a colour for each algorithm, a line style for each environment."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    groups, sign = read_curves(paths, x=x, y=y, is_log=is_log), -1 if is_log else 1
    environments = list(dict.fromkeys(environment for _, environment in groups))
    for (algorithm, environment), curves in groups.items():
        colour, style = COLOURS.get(algorithm, "0.4"), STYLES[environments.index(environment) % len(STYLES)]
        for xs, ys in curves:
            axes.plot(xs, sign * ys, color=colour, ls=style, alpha=0.35, lw=0.8)
        grid = np.linspace(max(xs[0] for xs, _ in curves), min(xs[-1] for xs, _ in curves), 500)
        values = np.array([np.interp(grid, xs, ys) for xs, ys in curves])  # [seed, point]
        label = f"{algorithm}, {environment}: interquartile mean of {len(curves)}"
        axes.plot(grid, sign * interquartile_mean(values), color=colour, ls=style, lw=2, label=label)
        if len(curves) > 1:
            axes.fill_between(grid, *(sign * bootstrap_interval(values)), color=colour, alpha=0.2, lw=0)
    axes.set(xlabel=x, ylabel=f"-{y}" if is_log else y)
    if is_log:
        axes.set_yscale("log")
        axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def read_curves(paths: list[str], *, x: str, y: str, is_log: bool) -> dict[tuple[str, str], list]:
    """Return the curves (xs, ys) of all runs by algorithm and environment, without points that have no value yet."""
    groups: dict[tuple[str, str], list] = {}
    for path in paths:
        config, progress = RunFolder(path).read_config(), read_progress(path)
        for name in (x, y):
            if name not in progress:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(progress)}")
        if is_log and np.any(progress[y] >= 0):
            raise ValueError(f"--log needs values below zero, and {y} of {path} has others; leave --log out")
        is_known = np.isfinite(progress[y])
        if not is_known.any():
            raise ValueError(f"{path} has no value of {y} yet; wait, or leave the run out")
        curve = progress[x][is_known], progress[y][is_known]
        groups.setdefault((config.algorithm, config.environment), []).append(curve)
    return groups


def write_csv(paths: list[str], out: str) -> None:
    """Write the rows of all runs as one tidy table, with the run, its algorithm, environment and seed."""
    rows = []
    for path in paths:
        config, progress = RunFolder(path).read_config(), read_progress(path)
        head = {"run": path, "algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
        rows += [{**head, **dict(zip(progress, values))} for values in zip(*(v.tolist() for v in progress.values()))]
    with open(out, "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.plot", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders")
    parser.add_argument("--out", default="curves.png", metavar="FILE.png", help="file to write (default: curves.png)")
    parser.add_argument(
        "--x",
        default="total_timesteps",
        help="column of progress.csv, such as wall_time or episodes (default: total_timesteps)",
    )
    parser.add_argument("--y", default="payoff", help="column of progress.csv (default: payoff)")
    parser.add_argument("--csv", metavar="FILE.csv", help="also write every row of all runs as one table")
    parser.add_argument("--log", action="store_true", help="logarithmic axis of the distance below zero")
    parsed = parser.parse_args(arguments)
    try:
        draw_curves(parsed.runs, x=parsed.x, y=parsed.y, is_log=parsed.log).savefig(parsed.out, dpi=120)
        if parsed.csv:
            write_csv(parsed.runs, parsed.csv)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(parsed.runs)} run(s) -> {parsed.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
