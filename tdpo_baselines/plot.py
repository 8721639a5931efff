"""Plot learning curves: `python -m tdpo_baselines.plot runs/* --out curves.png` shows every run, finished or not.

A thick line is the interquartile mean over the seeds of an algorithm in an environment, and a band its 95 % bootstrap
interval (1,000 resamples of the seeds), as far as all of them have come. Where an environment has several algorithms,
the probability of improvement is printed: that a seed of the one is ahead of a seed of the other.
"""

import argparse
import csv
import importlib.util
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .evaluating.robustness import Sweep
from .storage.logger import NothingYet, read_columns
from .storage.run_folder import RunFolder

LABELS = {
    "return_mean": "mean return per update, while training",
    "payoff": "payoff: discounted reward per step, with each run's own discount",
    "total_timesteps": "timesteps (million)",
    "wall_time": "wall time (s)",
    "episodes": "episodes",
}
UNITS = {"total_timesteps": 1e6}
COLOURS = {  # of Okabe and Ito, told apart by colour-blind readers; always the same for an algorithm
    "tdpo": "#D55E00", "trpo": "#0072B2", "ppo1": "#009E73", "td3": "#CC79A7", "ddpg": "#E69F00", "ars": "#56B4E9",
    "cma": "#000000",
}  # fmt: skip
STYLES = ("-", "--", ":", "-.")  # of environments
NUM_RESAMPLES = 1000
PARQUET = ".parquet"
MAX_LABEL = 120  # characters
LAST = 0.1  # fraction of x over which ends are compared


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of the middle half of the seeds: values [..., seed, point] -> [..., point]."""
    cut = values.shape[-2] // 4
    return np.sort(values, axis=-2)[..., cut : values.shape[-2] - cut, :].mean(axis=-2)


def bootstrap_interval(values: np.ndarray) -> np.ndarray:
    """Return the 95 % interval of the interquartile mean over resamples of the seeds. [seed, point] -> [2, point]"""
    chosen = np.random.default_rng(0).integers(len(values), size=(NUM_RESAMPLES, len(values)))
    means = np.array([interquartile_mean(values[rows]) for rows in chosen])  # [resample, point]
    return np.quantile(means, (0.025, 0.975), axis=0)


def improvement(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the probability that a seed of ours is better than one of theirs, and its 95 % bootstrap interval. [3]"""
    better = (ours[:, None] > theirs) + 0.5 * (ours[:, None] == theirs)  # [our seed, their seed]
    random = np.random.default_rng(0)
    rows = random.integers(len(ours), size=(NUM_RESAMPLES, len(ours)))
    columns = random.integers(len(theirs), size=(NUM_RESAMPLES, len(theirs)))
    resampled = better[rows[:, :, None], columns[:, None, :]].mean((1, 2))
    return np.array([better.mean(), *np.quantile(resampled, (0.025, 0.975))])


def describe_improvement(groups: dict[tuple[str, str], list], x: str) -> list[str]:
    """Return a line for each pair of algorithms in an environment, compared as far as all of their runs have come."""
    lines = []
    for (ours, environment), (theirs, other) in itertools.combinations(groups, 2):
        if environment != other:
            continue
        both = groups[ours, environment], groups[theirs, environment]
        end = min(xs[-1] for curves in both for xs, _ in curves)
        last = np.linspace((1 - LAST) * end, end, 100)
        ends = [np.array([np.interp(last, xs, ys).mean() for xs, ys in curves]) for curves in both]
        value, low, high = improvement(*ends)
        lines.append(
            f"{environment}: a seed of {ours} is better than one of {theirs} with probability {value:.2f} "
            f"({low:.2f} to {high:.2f}), at {end:.4g} {LABELS.get(x, x)}"
        )
    return lines


def read_progress(path: str | Path) -> dict[str, np.ndarray]:
    """Read the columns of a run's progress.csv, without an incomplete last line."""
    columns = read_columns(RunFolder(path).progress_path)
    return {name: np.frombuffer(column) for name, column in columns.items()}


def plain(text: str) -> str:
    """Return a text that Matplotlib shows as it is, without mathematics in it, and not too long for a line."""
    shown = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 3]}..."
    return shown.replace("$", r"\$").lstrip("_")  # an underscore at the beginning would hide it


def draw_curves(groups: dict[tuple[str, str], list], *, x: str, y: str, is_log: bool):
    """Return a figure of the curves of `read_curves`: a colour for each algorithm, a style for each environment."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    environments, labels = list(dict.fromkeys(environment for _, environment in groups)), {}
    for (algorithm, environment), curves in groups.items():
        style = STYLES[environments.index(environment) % len(STYLES)]
        line = draw_group(axes, curves, colour=algorithm_colour(algorithm), style=style, is_log=is_log)
        how_many = f": interquartile mean of {len(curves)} runs" if len(curves) > 1 else ""
        labels[plain(f"{algorithm}, {environment}{how_many}")] = line
    axes.set(xlabel=LABELS.get(x, x), ylabel=LABELS.get(y, y))
    if is_log:
        show_as_negative(axes)
    axes.grid(alpha=0.3)
    figure.legend(labels.values(), labels, loc="outside upper center", ncols=2)
    return figure


def show_as_negative(axes) -> None:
    """Make the vertical axis logarithmic and turn it round, and label the distances below zero as negative numbers."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Negative(LogFormatterSciNotation):
        def __call__(self, value, position=None):
            return super().__call__(value, position).replace("{", "{-", 1)

    axes.set_yscale("log")
    axes.invert_yaxis()
    axes.yaxis.set_major_formatter(Negative())
    axes.yaxis.set_minor_formatter(Negative(labelOnlyBase=False))


def algorithm_colour(algorithm: str) -> str:
    """Return the colour of an algorithm, grey for one that is not ours."""
    return COLOURS.get(algorithm, "0.4")


def draw_group(axes, curves: list, *, colour: str, style: str, is_log: bool):
    """Draw the curves (xs, ys) of all seeds, thin if there are several, their interquartile mean and its interval.

    Return the strongest line.
    """
    sign, is_single = -1 if is_log else 1, len(curves) == 1
    for xs, ys in curves:
        strength = {"alpha": 1, "lw": 1.5} if is_single else {"alpha": 0.35, "lw": 0.8}
        (line,) = axes.plot(xs, sign * ys, color=colour, ls=style, **strength)
    begin, end = max(xs[0] for xs, _ in curves), min(xs[-1] for xs, _ in curves)
    if not is_single and begin < end:
        grid = np.linspace(begin, end, 500)
        values = np.array([np.interp(grid, xs, ys) for xs, ys in curves])  # [seed, point]
        (line,) = axes.plot(grid, sign * interquartile_mean(values), color=colour, ls=style, lw=2)
        axes.fill_between(grid, *(sign * bootstrap_interval(values)), color=colour, alpha=0.2, lw=0)
    return line


def read_curves(paths: list[str], *, x: str, y: str, is_log: bool) -> dict[tuple[str, str], list]:
    """Return the curves (xs, ys) of all runs by algorithm and environment."""
    groups: dict[tuple[str, str], list] = {}
    for path in paths:
        config, (xs, ys) = RunFolder(path).read_config(), read_curve(path, x=x, y=y)
        if is_log and np.any(ys >= 0):
            raise ValueError(f"--log needs values below zero, and {y} of {path} has others; leave --log out")
        curve = (xs / UNITS.get(x, 1), ys)
        groups.setdefault((config.algorithm, config.environment), []).append(curve)
    return groups


def read_curve(path: str | Path, *, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns of a run's progress.csv, without rows in which the second is not a number."""
    progress = read_progress(path)
    for name in (x, y):
        if name not in progress:
            raise ValueError(f"{path} has no column {name!r}; it has {', '.join(progress)}")
    is_known = np.isfinite(progress[y])
    if not is_known.any():
        raise NothingYet(f"{y} of {path} has no number yet: no episode has ended")
    return progress[x][is_known], progress[y][is_known]


def write_rows(paths: list[str], out: str) -> None:
    """Write the rows of all runs as one tidy table, with the run, its algorithm, environment and seed."""
    rows = []
    for path in paths:
        config, progress = RunFolder(path).read_config(), read_progress(path)
        head = {"run": path, "algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
        rows += [{**head, **dict(zip(progress, values))} for values in zip(*(v.tolist() for v in progress.values()))]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if out.endswith(PARQUET):
        write_parquet(names, rows, out)
        return
    with open(out, "w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(names: list[str], rows: list[dict], out: str) -> None:
    """Write rows as a Parquet file."""
    from pyarrow import parquet, table

    parquet.write_table(table({name: [row.get(name) for row in rows] for name in names}), out)


def require_parquet(out: str) -> None:
    """Raise ValueError if a Parquet file is asked for without the package that writes it."""
    if out.endswith(PARQUET) and importlib.util.find_spec("pyarrow") is None:
        raise ValueError(f'--csv {out} needs pyarrow; pip install "tdpo_baselines[parquet]", or name a .csv file')


def leave_out_empty(paths: list[str], *, x: str, y: str) -> list[str]:
    """Return the runs that have something to show, and name the others; raise ValueError if there is none."""
    empty = {}
    for path in paths:
        try:
            read_curve(path, x=x, y=y)
        except NothingYet as error:
            empty[path] = error
    if len(empty) == len(set(paths)):
        raise empty[paths[0]]
    for why in empty.values():
        print(f"left out: {why}")
    return [path for path in paths if path not in empty]


def draw_sweeps(names: Sequence[str], sweeps: Sequence[Sweep], label: str = "mean return"):
    """Return a figure of the mean returns over one option, a curve per policy, or over two, a heat map per policy."""
    from matplotlib.figure import Figure

    num_maps = len(sweeps) if len(sweeps[0].names) == 2 else 1
    figure = Figure(figsize=(1.5 + 5 * num_maps, 4.5), layout="constrained")
    panels = figure.subplots(1, num_maps, squeeze=False)[0]
    if len(sweeps[0].names) == 1:
        _draw_sweep_curves(figure, panels[0], names, sweeps, label)
    else:
        _draw_heat_maps(figure, panels, names, sweeps, label)
    return figure


def _draw_sweep_curves(figure, axes, names: Sequence[str], sweeps: Sequence[Sweep], label: str) -> None:
    for name, each in zip(names, sweeps):
        axes.plot(each.values[0], each.returns, "o-", ms=4, label=plain(name))
    ends = {end for each in sweeps if each.own[0] is not None for end in np.atleast_1d(each.own[0])}
    for number, end in enumerate(sorted(ends)):
        axes.axvline(end, color="0.5", lw=1, ls=":", label="" if number else "in training")
    axes.set(xlabel=sweeps[0].names[0], ylabel=label, xticks=sweeps[0].values[0])
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2)


def _draw_heat_maps(figure, panels, names: Sequence[str], sweeps: Sequence[Sweep], label: str) -> None:
    everything = np.concatenate([each.returns.ravel() for each in sweeps])
    limits = (np.nanmin(everything), np.nanmax(everything))
    for panel, name, each in zip(panels, names, sweeps):
        xs, ys = each.values
        image = panel.imshow(each.returns.T, origin="lower", aspect="auto", vmin=limits[0], vmax=limits[1])
        panel.set_xticks(range(len(xs)), [f"{value:.4g}" for value in xs])
        panel.set_yticks(range(len(ys)), [f"{value:.4g}" for value in ys])
        panel.set(xlabel=each.names[0], ylabel=each.names[1], title=plain(name))
        for index, value in np.ndenumerate(each.returns):
            colour = "white" if value < sum(limits) / 2 else "black"
            text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
            panel.text(*index, text, ha="center", va="center", fontsize=7, color=colour)
        _frame_own(panel, each)
    figure.colorbar(image, ax=panels, label=label)


def _frame_own(panel, each: Sweep) -> None:
    """Frame the cells with the values that the policy was trained with, if there are some."""
    found = [_find(own, values) for own, values in zip(each.own, each.values)]
    if all(len(places) for places in found):
        (left, right), (low, high) = ((places[0] - 0.5, places[-1] + 0.5) for places in found)
        panel.plot(
            [left, right, right, left, left], [low, low, high, high, low],
            color="red", lw=2, label="in training", clip_on=False,
        )  # fmt: skip
        panel.legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False)


def _find(own, values: Sequence[float]) -> np.ndarray:
    """Return where the values inside a range are, or those that equal a number."""
    if own is None or isinstance(own, str):
        return np.array([])
    low, high = np.atleast_1d(own)[[0, -1]]
    tolerance = 1e-6 * max(abs(low), abs(high))
    return np.flatnonzero((np.array(values) >= low - tolerance) & (np.array(values) <= high + tolerance))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.plot", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders")
    parser.add_argument("--out", default="curves.png", metavar="FILE.png", help="file to write (default: curves.png)")
    parser.add_argument(
        "--x",
        default="total_timesteps",
        help="column of progress.csv, such as wall_time or episodes (default: total_timesteps)",
    )
    parser.add_argument("--y", default="return_mean", help="column of progress.csv (default: return_mean). Payoffs of "
                        "algorithms with different discounts cannot be compared")  # fmt: skip
    parser.add_argument("--csv", metavar="FILE", help="also write every row of all runs as one table, .csv or .parquet")
    parser.add_argument("--log", action="store_true", help="logarithmic axis, for values below zero")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parsed = parse(arguments)
    try:
        require_parquet(parsed.csv or "")
        runs = leave_out_empty(parsed.runs, x=parsed.x, y=parsed.y)
        groups = read_curves(runs, x=parsed.x, y=parsed.y, is_log=parsed.log)
        draw_curves(groups, x=parsed.x, y=parsed.y, is_log=parsed.log).savefig(parsed.out, dpi=120)
        if parsed.csv:
            write_rows(runs, parsed.csv)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join([*describe_improvement(groups, parsed.x), f"{len(runs)} run(s) -> {parsed.out}"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
