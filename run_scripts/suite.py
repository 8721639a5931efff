"""Every algorithm without options on many tasks, at equal counted steps.

Options and defaults are chosen on the tasks of DEVELOP alone; those of FINAL are looked at when a change is complete.
"""

import sys
from pathlib import Path

import numpy as np

from run_scripts.results import Finished, Result, Setting, choose, main, number, write_table
from tdpo_baselines.plot import read_progress

DEVELOP = {  # task: steps, and the return that counts as solved
    "delayed-spring": (1e6, -12),
    "dead-time": (1e6, -12),
    "double-well": (1e6, -40),
    "birotor": (1e6, 150),
    "cart-pole": (1e6, 450),
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
    "chain": (1e6, -40),
    "pendulum-nlr-3": (5e6, -100),
    "leg-100hz": (5e6, -4),
    "InvertedDoublePendulum-v5": (1e6, 8000),
    "Swimmer-v5": (1e6, 90),
    "HalfCheetah-v5": (1e6, 1500),
}
ALGORITHMS = {"tdpo": "TDPO", "trpo": "TRPO", "ppo1": "PPO1", "td3": "TD3", "ars": "ARS", "cma": "CMA-ES"}
NUM_SEEDS = (3, 10)


def settings(scale: str) -> list[Setting]:
    """Return every algorithm on every task."""
    return [
        Setting(
            task,
            label,
            {"env": task, "alg": alg, "num_timesteps": int(steps), "preset": "none"},
            choose(scale, *NUM_SEEDS),
        )
        for task, (steps, _) in {**DEVELOP, **FINAL}.items()
        for alg, label in ALGORITHMS.items()
    ]


def steps_to_level(run: Path, level: float) -> float:
    """Return the timesteps after which the return while training first reached a level; inf if it never did."""
    progress = read_progress(run)
    reached = np.flatnonzero(progress["return_mean"] >= level)
    return float(progress["total_timesteps"][reached[0]]) if len(reached) else np.inf


def cell(finished: Finished, level: float) -> str:
    """Return the median score, every seed's, and the median steps to the level if the runs are on this disk."""
    text = f"**{number(float(np.median(finished.returns())))}** ({', '.join(map(number, finished.returns()))})"
    if not finished.folders:
        return text
    steps = np.median([steps_to_level(folder, level) for folder in finished.folders.values()])
    return f"{text}; {steps / 1e6:.2g} M" if np.isfinite(steps) else f"{text}; never"


def extra(finished: list[Finished], out: Path) -> None:
    """Write a table for each set of tasks: a row for each task, a column for each algorithm."""
    found = {(f.setting.panel, f.setting.label): f for f in finished}
    for name, tasks in (("develop", DEVELOP), ("final", FINAL)):
        rows = []
        for task, (steps, level) in tasks.items():
            cells = [cell(found[task, a], level) if (task, a) in found else "" for a in ALGORITHMS.values()]
            rows += [[task, f"{steps / 1e6:g}", f"{level:g}", *cells]] if any(cells) else []
        write_table(out / f"suite-{name}-table.md", ["task", "steps (M)", "level", *ALGORITHMS.values()], rows)


RESULT = Result("suite", "All algorithms without options on twenty tasks", "", settings, extra=extra)

if __name__ == "__main__":
    sys.exit(main(RESULT))
