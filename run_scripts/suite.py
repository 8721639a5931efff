"""Every algorithm without options on many tasks, at equal counted steps: the table of docs/results/suite.md.

python run_scripts/suite.py train --runs runs/suite --jobs 2 --only chain-tdpo chain-cma     # stop and start at will
python run_scripts/suite.py report --runs runs/suite --out docs/results

Options and defaults are chosen on the tasks of DEVELOP alone; those of FINAL are looked at when a change is complete.
"""

import sys
from pathlib import Path

import numpy as np
from experiments import Experiment, Experiments, main, make_table, summarise_seeds

from tdpo_baselines.plot import read_progress

DEVELOP = {  # task: steps, and the return that counts as solved
    "delayed-spring": (1e6, -12),
    "dead-time": (1e6, -12),
    "double-well": (1e6, -40),
    "birotor": (1e6, 150),
    "pendulum-20hz": (5e6, -180),
    "pendulum-100hz": (2e7, -900),
    "pendulum-500hz": (5e7, -4500),
    "pendulum-nlr": (5e6, -100),
    "leg": (1.5e7, -4000),
    "InvertedPendulum-v5": (1e6, 950),
    "Reacher-v5": (1e6, -6),
}
FINAL = {
    "step-response": (1e6, -20),
    "two-mass": (1e6, -10),
    "cart-pole": (1e6, 450),
    "chain": (1e6, -40),
    "pendulum-nlr-3": (5e6, -100),
    "leg-100hz": (5e6, -2000),
    "InvertedDoublePendulum-v5": (1e6, 8000),
    "Swimmer-v5": (1e6, 90),
    "HalfCheetah-v5": (1e6, 1500),
}
ALGORITHMS = ("tdpo", "trpo", "ppo1", "td3", "ars", "cma")
EXPERIMENTS = {
    f"{task}-{algorithm}": Experiment(
        f"{algorithm} on {task}", task, range(3), steps, ("--alg", algorithm, "--preset", "none")
    )
    for tasks in (DEVELOP, FINAL)
    for task, (steps, _) in tasks.items()
    for algorithm in ALGORITHMS
}
EPISODES = ("--episodes", "100")


def steps_to_level(run: Path, level: float) -> float:
    """Return the timesteps after which the return while training first reached a level; inf if it never did."""
    progress = read_progress(run)
    reached = np.flatnonzero(progress["return_mean"] >= level)
    return float(progress["total_timesteps"][reached[0]]) if len(reached) else np.inf


def score_cell(experiment: Experiment, folder: Path, level: float) -> str:
    """Return the median score, every seed's, and the median steps to the level; empty if the runs are not finished."""
    if not folder.exists() or not experiment.is_finished(folder):
        return ""
    returns = [summary["return"] for summary in summarise_seeds(experiment, folder, *EPISODES).values()]
    steps = np.median([steps_to_level(folder / str(seed), level) for seed in experiment.seeds])
    each = ", ".join(f"{value:.4g}" for value in returns)
    return f"**{np.median(returns):.4g}** ({each}); {f'{steps / 1e6:.2g} M' if np.isfinite(steps) else 'never'}"


def suite_table(tasks: dict, experiments: Experiments, runs: Path) -> str:
    """Return a row for each task, a column for each algorithm."""
    rows = []
    for task, (steps, level) in tasks.items():
        cells = [score_cell(experiments[f"{task}-{name}"], runs / f"{task}-{name}", level) for name in ALGORITHMS]
        if any(cells):
            rows.append(" | ".join([task, f"{steps / 1e6:g}", f"{level:g}", *cells]))
    return make_table(" | ".join(["task", "steps (M)", "level", *ALGORITHMS]), rows)


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write a table for each set of tasks."""
    for name, tasks in (("develop", DEVELOP), ("final", FINAL)):
        (out / f"suite-{name}-table.md").write_text(suite_table(tasks, experiments, runs))


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/suite", report))
