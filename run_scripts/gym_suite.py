"""Gymnasium's MuJoCo tasks: TDPO beside TRPO, PPO1 and TD3."""

import sys

from run_scripts.results import Result, Setting, choose, main

TASKS = ("Swimmer-v5", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Reacher-v5", "InvertedDoublePendulum-v5")
STEPS = (1e6, 1.44e8)
NUM_SEEDS = (3, 100)


def settings(scale: str) -> list[Setting]:
    """Return every algorithm without options at the scale short, with the paper's settings at its scale."""
    preset = choose(scale, "none", "paper")
    found = []
    for task in TASKS:
        base = {"env": task, "num_timesteps": int(choose(scale, *STEPS)), "preset": preset}
        for alg, label in {"tdpo": "TDPO", "trpo": "TRPO", "ppo1": "PPO1"}.items():
            found.append(Setting(task, label, {**base, "alg": alg}, choose(scale, *NUM_SEEDS)))
        if scale == "paper":
            found.append(Setting(task, "TD3", {**base, "alg": "td3"}, choose(scale, *NUM_SEEDS)))
    return found


RESULT = Result("gym_suite", "Gymnasium's MuJoCo tasks", "Figure 9", settings, num_episodes=20)

if __name__ == "__main__":
    sys.exit(main(RESULT))
