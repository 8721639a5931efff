"""Seconds that every algorithm takes for a million steps. Run it on a quiet machine, one run at a time."""

import sys
from pathlib import Path

import numpy as np

from run_scripts.results import Finished, Result, Setting, choose, main, write_table
from tdpo_baselines.plot import algorithm_colour, read_progress

TASKS = {"pendulum-nlr": 1e6, "leg": 1e6, "leg-100hz": 2e5, "pendulum-20hz": 1e6, "HalfCheetah-v5": 2e5}
ALGORITHMS = ("tdpo", "trpo", "ppo1", "td3", "ddpg", "ars", "cma")
WITH_REPLAY, FEWER = ("td3", "ddpg"), 20  # as many times fewer steps


def settings(scale: str) -> list[Setting]:
    """Return every algorithm on every task, without options."""
    factor = choose(scale, 1, 10)
    found = []
    for task, steps in TASKS.items():
        for alg in ALGORITHMS:
            count = int(factor * max(2e4, steps / FEWER if alg in WITH_REPLAY else steps))
            values = {"env": task, "alg": alg, "preset": "none", "num_timesteps": count}
            found.append(Setting(task, alg.upper(), values, choose(scale, 1, 3)))
    return found


def seconds_per_million(run: Path) -> float:
    """Return the time for a million steps, over the second half of a run: compilation is over, buffers are filled."""
    progress = read_progress(run)
    steps, seconds = progress["total_timesteps"], progress["wall_time"]
    middle = min(int(np.searchsorted(steps, steps[-1] / 2)), len(steps) - 2)
    return float(1e6 * (seconds[-1] - seconds[middle]) / (steps[-1] - steps[middle]))


def extra(finished: list[Finished], out: Path) -> None:
    """Write the table of times and draw them as bars, a panel for each task."""
    from matplotlib.figure import Figure

    times = {
        (f.setting.panel, f.setting.label): np.mean([seconds_per_million(run) for run in f.folders.values()])
        for f in finished
        if f.folders
    }
    tasks = list(dict.fromkeys(task for task, _ in times))
    labels = [alg.upper() for alg in ALGORITHMS]
    rows = [[task, *(f"{times[task, a]:.3g}" if (task, a) in times else "" for a in labels)] for task in tasks]
    write_table(out / "running-time-seconds.md", ["seconds per million steps", *labels], rows)
    figure = Figure(figsize=(2.6 * len(tasks), 3.2), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks):
        shown = [(a, times[task, a]) for a in labels if (task, a) in times]
        axes.bar(*zip(*shown), color=[algorithm_colour(a.lower()) for a, _ in shown])
        axes.set(title=task, yscale="log")
        axes.tick_params(axis="x", rotation=90)
    figure.supylabel("seconds per million steps", fontsize="medium")
    figure.savefig(out / "running-time.png", dpi=110)


RESULT = Result("running_time", "Seconds per million steps", "Figure 10", settings, num_episodes=1, extra=extra)

if __name__ == "__main__":
    sys.exit(main(RESULT))
