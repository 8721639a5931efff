"""The inverted pendulum whose actions are delayed by 0 to 5 steps."""

import sys

from run_scripts.results import Result, Setting, choose, main

STEPS = (3e5, 1e6)  # the paper states none
NUM_SEEDS = (3, 25)
NUM_SLOW_SEEDS = (1, 25)


def settings(scale: str) -> list[Setting]:
    """Return TDPO without options and its rivals with the paper's settings, for every delay."""
    found = []
    for delay in range(6):
        panel = f"delay of {delay} steps"
        base = {"env": "InvertedPendulum-v5", "num_timesteps": int(choose(scale, *STEPS)), "env.delay_steps": delay}
        found.append(Setting(panel, "TDPO", {**base, "alg": "tdpo"}, choose(scale, *NUM_SEEDS)))
        for alg, label in {"trpo": "TRPO", "ppo1": "PPO1"}.items():
            found.append(Setting(panel, label, {**base, "alg": alg, "preset": "none"}, choose(scale, *NUM_SEEDS)))
        found.append(Setting(panel, "TD3", {**base, "alg": "td3", "preset": "none"}, choose(scale, *NUM_SLOW_SEEDS)))
    return found


RESULT = Result("action_delay", "The effect of delayed actions on the inverted pendulum", "Figure 7", settings)

if __name__ == "__main__":
    sys.exit(main(RESULT))
