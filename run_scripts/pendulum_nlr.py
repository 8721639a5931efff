"""The pendulum with non-local reward: trains and reports everything in docs/results/pendulum-nlr.md.

python run_scripts/pendulum_nlr.py train --runs runs/pendulum-nlr --jobs 2     # hours; stop and start at will
python run_scripts/pendulum_nlr.py report --runs runs/pendulum-nlr --out docs/results
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

OFFSET_ERROR, BAND_SHARE, AMPLITUDE_RATIO = 0.01, 0.9, 1.1  # what counts as solved
EPISODES = 100


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


EXPERIMENTS = {
    "main": Experiment("Main variant, shipped settings", "pendulum-nlr", range(10), 1e8),
    **{
        f"variant-{v}": Experiment(f"Variant {v}, shipped settings", f"pendulum-nlr-{v}", range(3), 6e7)
        for v in range(2, 10)
    },
    "full-starts": Experiment(
        "Main variant, starts on the whole circle", "pendulum-nlr", range(3), 2e8, ("--set", "env.start_scale=1")
    ),
    "paper": Experiment("Main variant, the paper's settings", "pendulum-nlr", range(3), 1e8, ("--preset", "paper")),
}


def train(runs: Path, names: list[str], jobs: int) -> None:
    """Every run that is not finished yet, `jobs` at a time, each on one rank: the result is the same on any number."""

    def one(job: tuple[str, int]) -> None:
        name, seed = job
        folder = runs / name / str(seed)
        command = [sys.executable, "-m", "tdpo_baselines.run", *EXPERIMENTS[name].command(seed)]
        done = subprocess.run([*command, "--log_dir", str(folder), "--resume", "--quiet"])
        print(f"{name} seed {seed}: exit code {done.returncode}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [(name, seed) for name in names for seed in EXPERIMENTS[name].seeds]))


def summary_of(folder: Path) -> dict | None:
    """Evaluation, steps and wall time of a finished run, or None. Evaluations are kept beside the run."""
    kept, progress = folder / "evaluation.json", folder / "progress.csv"
    if not progress.exists():
        return None
    if not kept.exists() or kept.stat().st_mtime < progress.stat().st_mtime:
        command = [sys.executable, "-m", "tdpo_baselines.evaluate", str(folder), "--json", "--episodes", str(EPISODES)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return None
        kept.write_text(done.stdout)
    means = {name: s["mean"] for name, s in json.loads(kept.read_text())["summary"].items()}
    lines = progress.read_text().splitlines()
    row = dict(zip(lines[0].split(","), lines[-1].split(",")))
    return {**means, "steps": float(row["total_timesteps"]), "seconds": float(row["wall_time"])}


def is_solved(s: dict) -> bool:
    return (
        s["offset_error"] <= OFFSET_ERROR and s["band_share"] >= BAND_SHARE and s["amplitude_ratio"] <= AMPLITUDE_RATIO
    )


def table(name: str, summaries: dict[int, dict]) -> str:
    experiment = EXPERIMENTS[name]
    solved = sum(is_solved(s) for s in summaries.values())
    arguments = " ".join(experiment.command(0)).replace("--seed 0", "--seed SEED")
    lines = [
        f"### {experiment.title}: {solved} of {len(summaries)} solved",
        f"`python -m tdpo_baselines.run {arguments}`",
        "",
        "| seed | return | offset error (rad) | amplitude / limit | in-band share | steps (M) | minutes | solved |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, s in summaries.items():
        lines.append(
            f"| {seed} | {s['return']:.1f} | {s['offset_error']:.4f} | {s['amplitude_ratio']:.3f} | "
            f"{s['band_share']:.3f} | {s['steps'] / 1e6:.0f} | {s['seconds'] / 60:.1f} | "
            f"{'yes' if is_solved(s) else 'no'} |"
        )
    return "\n".join([*lines, ""])


def report(runs: Path, out: Path) -> None:
    """Tables of all finished runs in tables.md, learning curves, and pictures of the best and the worst main seed."""
    tables = []
    for name, experiment in EXPERIMENTS.items():
        found = {seed: summary_of(runs / name / str(seed)) for seed in experiment.seeds}
        summaries = {seed: s for seed, s in found.items() if s is not None}
        if summaries:
            tables.append(table(name, summaries))
        if name == "main" and summaries:
            by_return = sorted(summaries, key=lambda seed: summaries[seed]["return"])
            for word, seed in {"best": by_return[-1], "worst": by_return[0]}.items():
                picture = str(out / f"pendulum-nlr-{word}.png")
                draw = ["tdpo_baselines.evaluate", str(runs / name / str(seed)), "--plot", picture]
                subprocess.run([sys.executable, "-m", *draw, "--episodes", str(EPISODES)], check=True)
    (out / "pendulum-nlr-tables.md").write_text("\n".join(tables))
    for word, names in {"main": ["main"], "paper": ["main", "paper"]}.items():
        draw_curves(runs, names, out / f"pendulum-nlr-{word}-curves.png")


def draw_curves(runs: Path, names: list[str], picture: Path) -> None:
    """Return against timesteps, every seed, on a logarithmic scale."""
    from matplotlib.figure import Figure

    from tdpo_baselines.plot import read_progress

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for colour, name in enumerate(names):
        for number, folder in enumerate(sorted((runs / name).glob("*"))):
            progress = read_progress(folder)
            label = EXPERIMENTS[name].title if number == 0 else None
            every = max(1, len(progress["return_mean"]) // 1000)
            smooth = -np.minimum(progress["return_mean"], -1e-3)
            axes.plot(
                progress["total_timesteps"][::every] / 1e6, smooth[::every], color=f"C{colour}", lw=0.7, label=label
            )
    axes.set(xlabel="timesteps (million), branches included", ylabel="- mean return per update", yscale="log")
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "report"))
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/pendulum-nlr"), help="where the runs are (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("docs/results"), help="where the report goes (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="which to train")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default: 1)")
    arguments = parser.parse_args()
    if arguments.action == "train":
        train(arguments.runs, arguments.only, arguments.jobs)
    else:
        report(arguments.runs, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
