"""The swing-up at 20, 100 and 500 Hz: the same ten seconds in 200, 1000 and 5000 steps."""

import sys

from run_scripts.results import Result, Setting, choose, main

HORIZONS = {"pendulum-20hz": 200, "pendulum-100hz": 1000, "pendulum-500hz": 5000}
NUM_EPISODES = 20_000
RIVALS = {"trpo": "TRPO", "ppo1": "PPO1", "td3": "TD3"}
NUM_SEEDS = {"trpo": (3, 100), "ppo1": (3, 100), "td3": (1, 24)}


def settings(scale: str) -> list[Setting]:
    """Return TDPO without options and its rivals with the paper's settings."""
    found = []
    for task, horizon in HORIZONS.items():
        steps = {"num_timesteps": horizon * NUM_EPISODES}
        found.append(Setting(task, "TDPO", {"env": task, "alg": "tdpo", **steps}, 10))
        for algorithm, label in RIVALS.items():
            values = {"env": task, "alg": algorithm, "preset": "paper", **steps}
            found.append(Setting(task, label, values, choose(scale, *NUM_SEEDS[algorithm])))
    return found


RESULT = Result(
    "horizon",
    "The effect of the control rate on the swing-up",
    "Figure 6",
    settings,
    steps_per_unit=HORIZONS,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
