"""Shared parts of these scripts: training, summaries of finished runs, tables, curves, the command line."""

import argparse
import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tdpo_baselines import evaluate as evaluation
from tdpo_baselines.harness.run_folder import RunFolder
from tdpo_baselines.plot import read_progress


@dataclass(frozen=True)
class Experiment:
    """Seeds of one setting. Run folders are RUNS/NAME/SEED."""

    title: str
    environment: str
    seeds: range
    num_timesteps: float
    arguments: tuple[str, ...] = ()

    def command(self, seed: int) -> list[str]:
        """Return the arguments of `tdpo_baselines.run`."""
        run = ["--env", self.environment, "--num_timesteps", f"{self.num_timesteps:g}", "--seed", str(seed)]
        return [*run, *self.arguments]

    def shown_command(self) -> str:
        """Return the command for any seed, as Markdown."""
        arguments = " ".join(self.command(0)).replace("--seed 0", "--seed SEED")
        return f"`python -m tdpo_baselines.run {arguments}`"

    def is_finished(self, folder: Path) -> bool:
        """Return True if the runs of all seeds, in `folder`, have reached their number of timesteps."""
        runs = [folder / str(seed) for seed in self.seeds]
        return all(
            (run / "progress.csv").exists() and read_progress(run)["total_timesteps"][-1] >= self.num_timesteps
            for run in runs
        )


Experiments = dict[str, Experiment]


def train(experiments: Experiments, runs: Path, jobs: int) -> int:
    """Train every run that is not finished, `jobs` at a time; return the largest exit code.

    Each run has one rank: the result is the same on any number.
    """

    def train_one(job: tuple[str, int]) -> int:
        name, seed = job
        command = [sys.executable, "-m", "tdpo_baselines.run", *experiments[name].command(seed)]
        done = subprocess.run([*command, "--log_dir", str(runs / name / str(seed)), "--resume", "--quiet"])
        print(f"{name} seed {seed}: exit code {done.returncode}", flush=True)
        return done.returncode

    with ThreadPoolExecutor(jobs) as pool:
        return max(pool.map(train_one, [(name, seed) for name, e in experiments.items() for seed in e.seeds]))


def summarise_seeds(experiment: Experiment, folder: Path, *arguments: str) -> dict[int, dict]:
    """Return the summary of each seed; empty if no run was begun. An unfinished run stops the report."""
    if not folder.exists():
        return {}
    if not experiment.is_finished(folder):
        raise SystemExit(f"error: {folder} has unfinished runs; run `train` first")
    return {seed: summarise(folder / str(seed), *arguments) for seed in experiment.seeds}


def summarise(run: Path, *arguments: str) -> dict:
    """Return the evaluated means, the worst payoff, timesteps and wall time of a run.

    `arguments` are those of `tdpo_baselines.evaluate`. Its output is kept in the run folder.
    """
    kept, progress = run / f"evaluation{''.join(arguments)}.json", run / "progress.csv"
    if not kept.exists() or kept.stat().st_mtime < progress.stat().st_mtime:
        kept.write_text(evaluate(run, "--json", *arguments))
    summary = json.loads(kept.read_text())["summary"]
    last = {name: float(column[-1]) for name, column in read_progress(run).items()}
    return {
        **{name: statistics["mean"] for name, statistics in summary.items()},
        "worst_payoff": summary["payoff"]["min"],
        "steps": last["total_timesteps"],
        "seconds": last["wall_time"],
    }


def evaluate(run: Path, *arguments: str) -> str:
    """Return the output of `tdpo_baselines.evaluate`; stop the report if it fails."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = evaluation.main([str(run), *arguments])
    if code != 0:
        raise SystemExit(code)
    return output.getvalue()


def make_table(header: str, rows: Iterable[str]) -> str:
    """Return a Markdown table; the header and the rows are cells separated by " | "."""
    lines = [f"| {line} |" for line in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header.split(" | ")) + "|", *lines[1:]]) + "\n"


def mean_minutes(summaries: Iterable[dict]) -> float:
    """Return the mean wall time of runs."""
    return float(np.mean([summary["seconds"] for summary in summaries])) / 60


def make_axes(**size):
    """Return a figure and its axes with a grid."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained", **size)
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def find_end_of_other_tasks(stages: list[dict]) -> int:
    """Return the timesteps up to the end of the last stage that has another environment than the run."""
    others = [k for k, stage in enumerate(stages) if any(name.startswith("env.") for name in stage)]
    return sum(stage["timesteps"] for stage in stages[: others[-1] + 1]) if others else 0


def draw_costs(experiments: Experiments, runs: Path, picture: Path, *, column: str, label: str) -> None:
    """Draw the negative of a column of progress.csv against timesteps, for every seed.

    Curves begin where the task is the run's own. Experiments that were not begun are left out.
    """
    figure, axes = make_axes(figsize=(8, 5))
    for colour, (name, experiment) in enumerate(experiments.items()):
        folders = [runs / name / str(seed) for seed in experiment.seeds]
        for number, folder in enumerate(filter(Path.exists, folders)):
            progress = read_progress(folder)
            begin = find_end_of_other_tasks(RunFolder(folder).read_config().stages)
            is_shown = np.append(0, progress["total_timesteps"][:-1]) >= begin
            millions, cost = progress["total_timesteps"][is_shown] / 1e6, -np.minimum(progress[column][is_shown], -1e-3)
            every = max(1, len(cost) // 1000)
            is_alone = len(experiments) == 1  # then every seed has its colour
            title = f"seed {folder.name}" if is_alone else experiment.title if number == 0 else None
            axes.plot(millions[::every], cost[::every], color=f"C{number if is_alone else colour}", lw=0.7, label=title)
    axes.set(xlabel="timesteps (million), branches included", ylabel=label, yscale="log")
    axes.invert_yaxis()
    figure.legend(loc="outside right upper")
    figure.savefig(picture, dpi=110)


def main(
    description: str, experiments: Experiments, folder: str, report: Callable[[Experiments, Path, Path], None]
) -> int:
    """Run the command line of a script: `train` some of the experiments, or `report` on all."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("action", choices=("train", "report"))
    add("--runs", type=Path, default=Path(folder), help="folder of the runs (default: %(default)s)")
    add("--out", type=Path, default=Path("docs/results"), help="folder of the report (default: %(default)s)")
    add("--only", nargs="+", choices=experiments, default=list(experiments), help="experiments to train (default: all)")
    add("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    arguments = parser.parse_args()
    if arguments.action == "train":
        return train({name: experiments[name] for name in arguments.only}, arguments.runs, arguments.jobs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    report(experiments, arguments.runs, arguments.out)
    return 0
