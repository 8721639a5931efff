"""TDPO on Gymnasium's MuJoCo tasks: runs, table and pictures of docs/results/gym.md.

python run_scripts/gym_suite.py train --runs runs/gym --jobs 2     # stop and start at will
python run_scripts/gym_suite.py report --runs runs/gym --out docs/results
"""

import sys
from pathlib import Path

import numpy as np
from experiments import Experiment, Experiments, main, make_axes, make_table, mean_minutes, summarise_seeds

from tdpo_baselines.plot import read_progress

TASKS = ("Swimmer-v5", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5")
KINDS = {"tuned": (), "untuned": ("--preset", "none")}
NUM_SEEDS = {"tuned": 3, "untuned": 2}
EVALUATIONS = {"last": ("--episodes", "20"), "best": ("--episodes", "20", "--best")}
PUBLISHED = {  # training returns of TRPO and PPO2 of openai/baselines after a million steps
    "Swimmer-v5": (95, 111),
    "HalfCheetah-v5": (1290, 1669),
    "Hopper-v5": (1913, 2316),
    "Walker2d-v5": (2343, 3425),
}
NUM_TIMESTEPS = {"Swimmer-v5": 1e6, "HalfCheetah-v5": 1e6, "Hopper-v5": 5e5, "Walker2d-v5": 5e5}
EXPERIMENTS = {
    f"{task}-{kind}": Experiment(f"{task}, {kind}", task, range(NUM_SEEDS[kind]), NUM_TIMESTEPS[task], arguments)
    for kind, arguments in KINDS.items()
    for task in TASKS
}
HEADER = "task | settings | last, each seed | median | best, each seed | median | TRPO, PPO | minutes"


def table(experiments: Experiments, runs: Path) -> str:
    """Return a row for each task and kind of settings that was trained."""
    rows = []
    for task in TASKS:
        for kind in KINDS:
            experiment, folder = experiments[f"{task}-{kind}"], runs / f"{task}-{kind}"
            found = [summarise_seeds(experiment, folder, *arguments) for arguments in EVALUATIONS.values()]
            if not found[0]:
                continue
            cells = []
            for summaries in found:
                returns = [s["return"] for s in summaries.values()]
                cells += [", ".join(f"{r:.0f}" for r in returns), f"{np.median(returns):.0f}"]
            published = "{}, {}".format(*PUBLISHED[task])
            minutes = mean_minutes(found[0].values())
            rows.append(f"{task} | {kind} | {' | '.join(cells)} | {published} | {minutes:.1f}")
    return make_table(HEADER, rows)


def draw(experiments: Experiments, runs: Path, task: str, picture: Path) -> None:
    """Draw the returns of the main trajectories against timesteps, for every seed that was trained."""
    figure, axes = make_axes(figsize=(5.5, 3.9))
    for colour, kind in enumerate(KINDS):
        folders = [runs / f"{task}-{kind}" / str(seed) for seed in experiments[f"{task}-{kind}"].seeds]
        for number, folder in enumerate(filter(Path.exists, folders)):
            progress = read_progress(folder)
            label = f"TDPO, {kind}" if number == 0 else None
            steps = progress["total_timesteps"] / 1e6
            axes.plot(steps, progress["return_mean"], color=f"C{colour}", lw=0.7, label=label)
    for name, level, style in zip(("TRPO", "PPO"), PUBLISHED[task], (":", "--")):
        axes.axhline(level, color="0.4", lw=0.8, ls=style, label=f"{name}, published at 1 million")
    axes.set(title=task, xlabel="timesteps (million), branches included", ylabel="return")
    axes.legend(fontsize="small")
    figure.savefig(picture, dpi=100)


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write the table and the pictures of the tasks that were trained."""
    (out / "gym-table.md").write_text(table(experiments, runs))
    for task in TASKS:
        if (runs / f"{task}-tuned").exists():
            draw(experiments, runs, task, out / f"gym-{task}.png")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/gym", report))
