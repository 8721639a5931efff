"""Plot learning curves: `python -m tdpo_baselines.plot runs/* --out curves.png` shows every run."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from .harness.run_folder import RunFolder


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
    """Return a figure of all runs, one colour per algorithm and environment, with the median over their seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, (label, curves) in enumerate(read_curves(paths, x=x, y=y, is_log=is_log).items()):
        colour = f"C{number}"
        for xs, ys in curves:
            axes.plot(xs, -ys if is_log else ys, color=colour, alpha=0.35, lw=0.8)
        grid = np.linspace(max(xs[0] for xs, _ in curves), min(xs[-1] for xs, _ in curves), 500)
        median = np.median([np.interp(grid, xs, ys) for xs, ys in curves], axis=0)
        axes.plot(grid, -median if is_log else median, color=colour, lw=2, label=f"{label}: median of {len(curves)}")
    axes.set(xlabel=x, ylabel=f"-{y}" if is_log else y)
    if is_log:
        axes.set_yscale("log")
        axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def read_curves(paths: list[str], *, x: str, y: str, is_log: bool) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the curves of all runs by algorithm and environment."""
    groups: dict[str, list] = {}
    for path in paths:
        config, progress = RunFolder(path).read_config(), read_progress(path)
        for name in (x, y):
            if name not in progress:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(progress)}")
        if is_log and np.any(progress[y] >= 0):
            raise ValueError(f"--log needs values below zero, and {y} of {path} has others; leave --log out")
        groups.setdefault(f"{config.algorithm}, {config.environment}", []).append((progress[x], progress[y]))
    return groups


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.plot", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders")
    parser.add_argument("--out", default="curves.png", metavar="FILE.png", help="file to write (default: curves.png)")
    parser.add_argument("--x", default="total_timesteps", help="column of progress.csv (default: total_timesteps)")
    parser.add_argument("--y", default="payoff", help="column of progress.csv (default: payoff)")
    parser.add_argument("--log", action="store_true", help="logarithmic axis of the distance below zero")
    parsed = parser.parse_args(arguments)
    try:
        draw_curves(parsed.runs, x=parsed.x, y=parsed.y, is_log=parsed.log).savefig(parsed.out, dpi=120)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(parsed.runs)} run(s) -> {parsed.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
