"""Results by command: train what a figure or table needs, evaluate it, and write its table and figure.

Each script of this folder defines a `Result` and calls `main`:

    python -m run_scripts.horizon --scale short --jobs 2     # stop and start at will; finished runs are not repeated
    python -m run_scripts.list                               # all results, what they cost and what is on disk

The scales: `smoke` takes seconds and shows that a script works, `short` fits two cores, `paper` has the paper's seeds,
settings and steps.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment

SCALES = ("smoke", "short", "paper")
EXIT_INVALID_INPUT = 2
CURVE_POINTS = 100  # of a recorded curve
NUM_SMOKE_EPISODES = 3


@dataclass(frozen=True)
class Setting:
    """A line of a figure: an algorithm with its options on a task."""

    panel: str
    label: str
    values: Mapping[str, Any]  # arguments and options of tdpo_baselines.run
    num_seeds: int

    @property
    def name(self) -> str:
        """The label of its runs."""
        return f"{self.panel} {self.label}"

    def command(self) -> str:
        """Return the command that trains it."""
        words = " ".join(f"--{key} {value}" for key, value in self.values.items())
        return f"python -m tdpo_baselines.run {words} --seed SEED"


@dataclass(frozen=True)
class Result:
    """A figure or table: its settings, and how to show them."""

    name: str  # of the script
    title: str
    paper: str  # figure or table of the paper; empty if it is ours
    settings: Callable[[str], list[Setting]]  # of a scale; those of smoke are shrunk
    first_seed: int = 0
    num_episodes: int = 100  # of an evaluation
    x: str = "total_timesteps"
    is_log: bool = False
    steps_per_unit: Mapping[str, int] = field(default_factory=dict)  # panel: divisor of returns, such as the horizon
    extra: Callable[[list["Finished"], Path], None] | None = None  # writes what only this result has
    prepare: Callable[[argparse.Namespace], int] | None = None  # does what the settings need; returns an exit code

    @property
    def stem(self) -> str:
        """The beginning of its files' names."""
        return self.name.replace("_", "-")

    def at_scale(self, scale: str, num_seeds: int | None = None) -> list[Setting]:
        """Return the settings of a scale, with another number of seeds if one is given."""
        found = self.settings(scale)
        found = [shrink(setting) for setting in found] if scale == "smoke" else found
        return [replace(s, num_seeds=num_seeds or s.num_seeds) for s in found]


@dataclass(frozen=True)
class Finished:
    """The finished runs of a setting by seed: folders of those on this disk, scores and curves of recorded ones too."""

    setting: Setting
    folders: dict[int, Path]
    scores: dict[int, dict[str, Any]]
    curves: dict[int, list[list[float]]] = field(default_factory=dict)  # seed: x and return while training

    def returns(self) -> list[float]:
        """Return the returns without exploration."""
        return [score["return"] for score in self.scores.values()]


def choose(scale: str, short: Any, paper: Any) -> Any:
    """Return the value of a scale; smoke has that of short."""
    return paper if scale == "paper" else short


def shrink(setting: Setting) -> Setting:
    """Return a setting of two seeds and two updates, of a small network unless policies are linear or given."""
    values = {key: value for key, value in setting.values.items() if key != "num_timesteps"}
    network = {} if values["alg"] in ("ars", "cma") or "init" in values else {"hidden_sizes": 8}
    return replace(setting, values={**values, **network, "num_iterations": 2}, num_seeds=2)


def make_sweep(result: Result, settings: list[Setting], runs: Path):
    """Return the runs of all settings as a sweep, which can train or submit them."""
    from tdpo_baselines.sweeping.definition import make_run
    from tdpo_baselines.sweeping.sweep import Sweep

    seeds = [(s, result.first_seed + number) for s in settings for number in range(s.num_seeds)]
    return Sweep([make_run(s.name, dict(s.values), seed, runs) for s, seed in seeds], runs)


def collect(result: Result, settings: list[Setting], sweep, num_episodes: int) -> list[Finished]:
    """Evaluate the finished runs of every setting, which may have none."""
    done = [run for run, state in zip(sweep.runs, sweep.results) if state.status == "finished"]
    found = []
    for setting in settings:
        folders = {run.seed: run.folder.path for run in done if run.label == setting.name}
        scores = {seed: score(folder, num_episodes) for seed, folder in folders.items()}
        found.append(Finished(setting, folders, scores, {seed: curve(at, result.x) for seed, at in folders.items()}))
    return found


def curve(run: Path, x: str) -> list[list[float]]:
    """Return a column and the return while training, at a hundred updates, with few digits."""
    from tdpo_baselines.plot import read_curve

    columns = read_curve(run, x=x, y="return_mean")
    rows = np.unique(np.linspace(0, len(columns[0]) - 1, CURVE_POINTS).astype(int))
    return [[float(f"{value:.5g}") for value in column[rows]] for column in columns]


def with_recorded(result: Result, scale: str, finished: list[Finished], out: Path) -> list[Finished]:
    """Return settings that have scores, with the recorded ones of seeds whose runs are not on this disk.

    A record counts as long as the command of its setting is unchanged.
    """
    path = out / f"{result.stem}.json"
    recorded = json.loads(path.read_text()) if path.exists() else {"scale": scale, "rows": []}
    rows = {(row["panel"], row["command"]): row for row in recorded["rows"] if recorded["scale"] == scale}
    merged = []
    for f in finished:
        row = rows.get((f.setting.panel, f.setting.command()), {})
        seeds = range(result.first_seed, result.first_seed + f.setting.num_seeds)
        scores, curves = ({s: row[k][str(s)] for s in seeds if str(s) in row.get(k, ())} for k in ("seeds", "curves"))
        merged.append(Finished(f.setting, f.folders, {**scores, **f.scores}, {**curves, **f.curves}))
    return [f for f in merged if f.scores]


def score(run: Path, num_episodes: int) -> dict[str, Any]:
    """Return the evaluation of a run with and without exploration, its steps and its time. It is kept in the folder."""
    kept = run / f"scores-{num_episodes}.json"
    if not kept.exists() or kept.stat().st_mtime < (run / "progress.csv").stat().st_mtime:
        kept.write_text(json.dumps(evaluate(run, num_episodes)))
    return json.loads(kept.read_text())


def evaluate(run: Path, num_episodes: int) -> dict[str, Any]:
    """Evaluate the last parameters of a run."""
    from tdpo_baselines.evaluate import evaluate as evaluate_policy
    from tdpo_baselines.evaluate import load
    from tdpo_baselines.plot import read_progress

    policy, progress = load(run), read_progress(run)
    plain, noisy = (
        evaluate_policy(policy, num_episodes=num_episodes, seed=0, start_values={}, is_stochastic=is_stochastic)
        for is_stochastic in (False, True)
    )
    return {
        **{name: statistics["mean"] for name, statistics in plain.summary().items()},
        "worst_return": plain.summary()["return"]["min"],
        "return_exploring": noisy.summary()["return"]["mean"] if noisy.has_noise else None,
        "is_met": plain.verdict.is_met if plain.verdict else None,
        "steps": float(progress["total_timesteps"][-1]),
        "minutes": float(progress["wall_time"][-1]) / 60,
    }


def record(result: Result, scale: str, finished: list[Finished]) -> dict[str, Any]:
    """Return all scores, as values for JSON."""
    rows = [
        {
            "panel": f.setting.panel,
            "label": f.setting.label,
            "command": f.setting.command(),
            "seeds": f.scores,
            "curves": f.curves,
        }
        for f in finished
    ]
    command = f"python -m run_scripts.{result.name} --scale {scale}"
    return {"name": result.name, "paper": result.paper, "scale": scale, "command": command, "rows": rows}


def table(result: Result, finished: list[Finished]) -> str:
    """Return a Markdown table with a row for each setting."""
    from tdpo_baselines.plot import bootstrap_interval, interquartile_mean

    has_criterion = any(s["is_met"] is not None for f in finished for s in f.scores.values())
    header = ["task", "method", "return (interquartile mean)", "95 % interval", "every seed", "exploring (mean)"]
    rows = [[*header, *(["criterion met"] if has_criterion else []), "steps (M)", "minutes"]]
    for f in finished:
        unit, scores = result.steps_per_unit.get(f.setting.panel, 1), list(f.scores.values())
        returns = np.array(f.returns())[:, None] / unit  # [seed, 1]
        exploring = [s["return_exploring"] / unit for s in scores if s["return_exploring"] is not None]
        cells = [f.setting.panel, f.setting.label, number(interquartile_mean(returns)[0])]
        cells += [" to ".join(number(end) for end in bootstrap_interval(returns)[:, 0]) if len(returns) > 1 else ""]
        cells += [", ".join(number(value) for value in returns[:, 0])]
        cells += [number(float(np.mean(exploring))) if exploring else ""]
        if has_criterion:
            met = [s["is_met"] for s in scores if s["is_met"] is not None]
            cells += [f"{sum(met)} of {len(met)}" if met else ""]
        cells += [
            f"{np.mean([s['steps'] for s in scores]) / 1e6:.3g}",
            f"{np.mean([s['minutes'] for s in scores]):.1f}",
        ]
        rows.append(cells)
    return markdown(rows[0], rows[1:])


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *rows))


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a Markdown table."""
    path.write_text(markdown(header, rows))


def draw_extremes(finished: Finished, out: Path, name: str) -> None:
    """Draw the median episode of the best and of the worst seed, unless the runs of some are not on this disk."""
    from tdpo_baselines.evaluate import draw as draw_episode
    from tdpo_baselines.evaluate import evaluate as evaluate_policy
    from tdpo_baselines.evaluate import load

    if finished.folders.keys() != finished.scores.keys():
        return
    by_return = sorted(finished.scores, key=lambda seed: finished.scores[seed]["return"])
    for word, seed in zip(("worst", "best"), by_return[:1] + by_return[-1:]):
        found = evaluate_policy(load(finished.folders[seed]), num_episodes=20, seed=0, start_values={})
        draw_episode(found).savefig(out / f"{name}-{word}.png", dpi=110)


def number(value: float) -> str:
    """Return a number with four digits, grouped."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def draw(result: Result, finished: list[Finished]):
    """Return the learning curves of all settings, a panel for each task that has some."""
    from matplotlib.figure import Figure

    from tdpo_baselines.plot import LABELS, STYLES, UNITS, algorithm_colour, draw_group, show_as_negative

    with_curves = dict.fromkeys(f.setting.panel for f in finished if f.curves)
    panels = list(with_curves or dict.fromkeys(f.setting.panel for f in finished))
    num_columns = min(3, len(panels))
    num_rows = -(-len(panels) // num_columns)
    figure = Figure(figsize=(1.5 + 4 * num_columns, 0.7 + 3.2 * num_rows), layout="constrained")
    places = figure.subplots(num_rows, num_columns, squeeze=False).flat
    for unused in places[len(panels) :]:
        unused.set_axis_off()
    all_axes = dict(zip(panels, places))
    labels: dict[str, Any] = {}
    for panel, axes in all_axes.items():
        here, counts = [f for f in finished if f.setting.panel == panel], {}
        for f in here:
            algorithm = str(f.setting.values["alg"])
            style = STYLES[counts.setdefault(algorithm, 0) % len(STYLES)]
            counts[algorithm] += 1
            colour, unit = algorithm_colour(algorithm), result.steps_per_unit.get(panel, 1)
            curves = [(np.array(xs) / UNITS.get(result.x, 1), np.array(ys) / unit) for xs, ys in f.curves.values()]
            if curves:
                labels[f.setting.label] = draw_group(axes, curves, colour=colour, style=style, is_log=result.is_log)
            else:  # recorded without: marks of the final returns at the edge
                ends = [(-1 if result.is_log else 1) * value / unit for value in f.returns()]
                edge = {"transform": axes.get_yaxis_transform(), "clip_on": False}
                (labels[f.setting.label],) = axes.plot([1] * len(ends), ends, "<", color=colour, alpha=0.6, **edge)
        axes.set(title=panel, xlabel=LABELS.get(result.x, result.x))
        axes.grid(alpha=0.3)
        if result.is_log:
            show_as_negative(axes)
    what = "return per step" if result.steps_per_unit else "return"
    figure.supylabel(f"{what} while training", fontsize="medium")
    figure.legend(labels.values(), labels, loc="outside upper center", ncols=min(4, 2 * num_columns))
    return figure


def report(result: Result, scale: str, finished: list[Finished], out: Path) -> None:
    """Write the record, the table and the figure, and say where they are."""
    out.mkdir(parents=True, exist_ok=True)
    stem, text = result.stem, table(result, finished)
    values = json.dumps(record(result, scale, finished), indent=1)
    lists_on_a_line = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", values)
    (out / f"{stem}.json").write_text(lists_on_a_line + "\n")
    (out / f"{stem}-table.md").write_text(text)
    draw(result, finished).savefig(out / f"{stem}-curves.png", dpi=110)
    if result.extra:
        result.extra(finished, out)
    print(text)
    print(f"-> {out}/{stem}.json, {stem}-table.md, {stem}-curves.png", flush=True)


def parse(result: Result, arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    shown = f"{result.title}{f' ({result.paper} of the paper)' if result.paper else ''}."
    parser = argparse.ArgumentParser(prog=f"python -m run_scripts.{result.name}", description=shown, allow_abbrev=False)
    add = parser.add_argument
    add("--scale", choices=SCALES, default="short", help="smoke: seconds; short: two cores; paper: as in the paper "
        "(default: short)")  # fmt: skip
    add("--seeds", type=int, metavar="N", help="seeds of every setting (default: by scale)")
    add("--only", nargs="+", metavar="TEXT", help="settings with one of these texts in `TASK METHOD` (default: all)")
    add("--runs", type=Path, metavar="DIR", help=f"folder of the runs (default: runs/{result.name}-SCALE)")
    add("--out", type=Path, metavar="DIR", help="folder of the table and the figure (default: that of the runs)")
    add("--jobs", type=int, default=1, metavar="N", help="runs at the same time on this machine (default: 1)")
    add("--report", action="store_true", help="train nothing; report on what is finished")
    add("--submit", choices=("slurm", "pbs"), help="submit the unfinished runs to a cluster instead")
    add("--ranks", type=int, default=1, metavar="N", help="with --submit: MPI ranks of a run (default: 1)")
    add("--time", default="12:00:00", help="with --submit: time limit of a job (default: 12:00:00)")
    add("--dry-run", action="store_true", help="with --submit: write the script and show it, but submit nothing")
    add("--resume", action="store_true", help="accepted for symmetry with run: a result always continues")
    parsed = parser.parse_args(arguments)
    for name in ("jobs", "seeds"):
        if getattr(parsed, name) is not None and getattr(parsed, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(parsed, name)}")
    parsed.runs = parsed.runs or Path("runs", f"{result.name}-{parsed.scale}")
    parsed.out = parsed.out or parsed.runs
    return parsed


def select(settings: list[Setting], texts: list[str] | None) -> list[Setting]:
    """Return the settings that --only names; raise ValueError if there are none."""
    found = [s for s in settings if not texts or any(text in s.name for text in texts)]
    if not found:
        raise ValueError(f"--only {' '.join(texts or [])} names no setting; there are {[s.name for s in settings]}")
    return found


def make(result: Result, parsed: argparse.Namespace) -> int:
    """Train what is missing and report; return the exit code."""
    from tdpo_baselines.sweeping.sweep import submit, train

    if result.prepare and not parsed.report:
        code = result.prepare(parsed)
        if code:
            return code
    settings = result.at_scale(parsed.scale, parsed.seeds)
    chosen = select(settings, parsed.only)
    sweep = make_sweep(result, chosen, parsed.runs)
    if parsed.submit:
        return submit(sweep, parsed)
    code = 0 if parsed.report else train(sweep, parsed.jobs)
    everything = make_sweep(result, settings, parsed.runs)
    here = collect(result, settings, everything, NUM_SMOKE_EPISODES if parsed.scale == "smoke" else result.num_episodes)
    finished = with_recorded(result, parsed.scale, here, parsed.out)
    if not any(f.folders for f in here):
        raise ValueError(f"{parsed.runs} has no finished run; run the command without --report")
    report(result, parsed.scale, finished, parsed.out)
    return code


def main(result: Result, arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()
    try:
        return make(result, parse(result, sys.argv[1:] if arguments is None else arguments))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_INVALID_INPUT
