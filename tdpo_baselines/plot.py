"""Learning curves: `python -m tdpo_baselines.plot runs/* --out curves.png`, every run shown."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from .harness.run_folder import RunFolder


def read_progress(path: str | Path) -> dict[str, np.ndarray]:
    """Columns of a run's progress.csv; a torn last line is left out."""
    folder = RunFolder(path)
    if not folder.progress_path.is_file():
        raise ValueError(f"{path} has no progress.csv")
    complete = [line for line in folder.progress_path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    header, *rows = list(csv.reader(complete)) or [[]]
    if not rows:
        raise ValueError(f"{folder.progress_path} has no rows yet")
    return {name: np.array(column, dtype=float) for name, column in zip(header, zip(*rows))}


def draw_curves(paths: list[str], *, x: str, y: str, is_log: bool):
    """All runs, one colour per algorithm and environment, with the median over their seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    groups: dict[str, list] = {}
    for path in paths:
        config, progress = RunFolder(path).read_config(), read_progress(path)
        for name in (x, y):
            if name not in progress:
                raise ValueError(f"{path} has no column {name!r}; it has {', '.join(progress)}")
        if is_log and np.any(progress[y] >= 0):
            raise ValueError(f"--log draws values below zero only, and {y} of {path} is not; leave it out")
        groups.setdefault(f"{config.algorithm}, {config.environment}", []).append((progress[x], progress[y]))
    for number, (label, curves) in enumerate(groups.items()):
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.plot", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders")
    parser.add_argument("--out", default="curves.png", metavar="FILE.png", help="default: curves.png")
    parser.add_argument("--x", default="total_timesteps", help="column of progress.csv (default: total_timesteps)")
    parser.add_argument("--y", default="payoff", help="column of progress.csv (default: payoff)")
    parser.add_argument("--log", action="store_true", help="logarithmic distance below zero, for negative payoffs")
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
