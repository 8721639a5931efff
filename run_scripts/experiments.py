"""What the scripts of this folder share: training seeds, summaries of finished runs, curves, the command line."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Experiment:
    """Some seeds of one setting."""

    title: str
    environment: str
    seeds: range
    num_timesteps: float
    arguments: tuple[str, ...] = ()

    def command(self, seed: int) -> list[str]:
        run = ["--env", self.environment, "--num_timesteps", f"{self.num_timesteps:g}", "--seed", str(seed)]
        return [*run, *self.arguments]

    def shown_command(self) -> str:
        arguments = " ".join(self.command(0)).replace("--seed 0", "--seed SEED")
        return f"`python -m tdpo_baselines.run {arguments}`"


def train(experiments: dict[str, Experiment], runs: Path, jobs: int) -> int:
    """Every run that is not finished yet, `jobs` at a time, each on one rank: the result is the same on any number.

    Returns 0 if all ended well.
    """

    def one(job: tuple[str, int]) -> int:
        name, seed = job
        folder = runs / name / str(seed)
        command = [sys.executable, "-m", "tdpo_baselines.run", *experiments[name].command(seed)]
        done = subprocess.run([*command, "--log_dir", str(folder), "--resume", "--quiet"])
        print(f"{name} seed {seed}: exit code {done.returncode}", flush=True)
        return done.returncode

    with ThreadPoolExecutor(jobs) as pool:
        return max(pool.map(one, [(name, seed) for name, e in experiments.items() for seed in e.seeds]))


def summaries_of(experiment: Experiment, folder: Path, *evaluation: str) -> dict[int, dict]:
    """By seed, evaluation, steps and wall time of the runs; nothing if none was begun. A run that failed or is not
    finished stops the report."""
    if not folder.exists():
        return {}
    return {seed: summary_of(experiment, folder / str(seed), *evaluation) for seed in experiment.seeds}


def summary_of(experiment: Experiment, folder: Path, *evaluation: str) -> dict:
    """`evaluation` are arguments of the program; what it says is kept beside the run."""
    kept, progress = folder / f"evaluation{''.join(evaluation)}.json", folder / "progress.csv"
    lines = progress.read_text().splitlines() if progress.exists() else [""]
    row = dict(zip(lines[0].split(","), lines[-1].split(",")))
    if float(row.get("total_timesteps", 0)) < experiment.num_timesteps:
        raise SystemExit(f"error: {folder} is not finished; run `train` first")
    if not kept.exists() or kept.stat().st_mtime < progress.stat().st_mtime:
        command = [sys.executable, "-m", "tdpo_baselines.evaluate", str(folder), "--json"]
        done = subprocess.run([*command, *evaluation], stdout=subprocess.PIPE, text=True, check=True)
        kept.write_text(done.stdout)
    summary = json.loads(kept.read_text())["summary"]
    means = {name: s["mean"] for name, s in summary.items()}
    run = {"steps": float(row["total_timesteps"]), "seconds": float(row["wall_time"])}
    return {**means, "worst_payoff": summary["payoff"]["min"], **run}


def end_of_other_tasks(stages: list[dict]) -> int:
    """Timesteps up to the end of the last stage that has another environment than the run."""
    others = [k for k, stage in enumerate(stages) if any(name.startswith("env.") for name in stage)]
    return sum(stage["timesteps"] for stage in stages[: others[-1] + 1]) if others else 0


def draw_curves(experiments: dict[str, Experiment], runs: Path, picture: Path, *, column: str, label: str) -> None:
    """A column of progress.csv against timesteps, from where the task is the run's own; every seed, negated."""
    import numpy as np
    from matplotlib.figure import Figure

    from tdpo_baselines.harness.run_folder import RunFolder
    from tdpo_baselines.plot import read_progress

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for colour, (name, experiment) in enumerate(experiments.items()):
        for number, folder in enumerate(sorted((runs / name).glob("*"))):
            progress = read_progress(folder)
            begin = end_of_other_tasks(RunFolder(folder).read_config().stages)
            is_shown = np.append(0, progress["total_timesteps"][:-1]) >= begin
            progress = {name: values[is_shown] for name, values in progress.items()}
            every = max(1, len(progress[column]) // 1000)
            cost = -np.minimum(progress[column], -1e-3)
            title = experiment.title if number == 0 else None
            millions = progress["total_timesteps"] / 1e6
            axes.plot(millions[::every], cost[::every], color=f"C{colour}", lw=0.7, label=title)
    axes.set(xlabel="timesteps (million), branches included", ylabel=label, yscale="log")
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


def main(
    description: str, experiments: dict[str, Experiment], folder: str, report: Callable[[Path, Path], None]
) -> int:
    """The command line of an experiment's script: `train` some of the experiments, or `report` on all."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "report"))
    parser.add_argument("--runs", type=Path, default=Path(folder), help="where the runs are (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("docs/results"), help="where the report goes (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", choices=experiments, default=list(experiments), help="which to train")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    arguments = parser.parse_args()
    if arguments.action == "train":
        return train({name: experiments[name] for name in arguments.only}, arguments.runs, arguments.jobs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    report(arguments.runs, arguments.out)
    return 0
