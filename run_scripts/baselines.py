"""TRPO, PPO1, DDPG and TD3 beside published scores."""

import sys
from pathlib import Path

import numpy as np

from run_scripts.results import Finished, Result, Setting, main, number, write_table

SCORES = {  # algorithm, task: steps, score to reach, published scores (docs/results/baselines.md has their sources)
    ("td3", "Pendulum-v1"): (2e4, "-180", "-152"),
    ("ddpg", "Pendulum-v1"): (2e4, "-180", "-152"),
    ("ppo1", "Pendulum-v1"): (2e5, "-200", "-172"),
    ("trpo", "Pendulum-v1"): (2e5, "-200", "-175"),
    ("ppo1", "InvertedPendulum-v5"): (3e5, "950", "963 at 1 million"),
    ("trpo", "InvertedPendulum-v5"): (3e5, "950", "905 at 1 million"),
    ("ppo1", "HalfCheetah-v5"): (1e6, "1400", "1443, 1669"),
    ("trpo", "HalfCheetah-v5"): (1e6, "1300", "1290, 1803"),
    ("trpo", "Swimmer-v5"): (1e6, "90", "95, 359"),
    ("td3", "HalfCheetah-v5"): (3e5, "", "see text"),
}
SMALL_NETWORK = {"hidden_sizes": "64,64", "batch_size": 128}  # of TD3 on HalfCheetah, as of the peer it is beside


def settings(scale: str) -> list[Setting]:
    """Return every algorithm and task with shipped settings; the scales do not differ."""
    found = []
    for (alg, task), (steps, _, _) in SCORES.items():
        others = SMALL_NETWORK if (alg, task) == ("td3", "HalfCheetah-v5") else {}
        values = {"env": task, "alg": alg, "num_timesteps": int(steps), **others}
        found.append(Setting(task, alg.upper(), values, 3))
    return found


def extra(finished: list[Finished], out: Path) -> None:
    """Write the scores beside the published ones."""
    rows = []
    for f in finished:
        alg, task = f.setting.values["alg"], f.setting.panel
        steps, goal, others = SCORES[alg, task]
        exploring = [s["return_exploring"] for s in f.scores.values() if s["return_exploring"] is not None]
        each, minutes = ", ".join(map(number, f.returns())), np.mean([s["minutes"] for s in f.scores.values()])
        medians = [number(float(np.median(values))) if values else "" for values in (f.returns(), exploring)]
        rows.append([alg, task, f"{steps:,.0f}", each, *medians, goal, others, f"{minutes:.1f}"])
    header = ["algorithm", "task", "steps", "deterministic, each seed", "median", "with exploration", "goal", "others"]
    write_table(out / "baselines-scores.md", [*header, "minutes"], rows)


RESULT = Result("baselines", "TRPO, PPO1, DDPG and TD3 beside published scores", "", settings, extra=extra)

if __name__ == "__main__":
    sys.exit(main(RESULT))
