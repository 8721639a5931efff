"""The pendulum with non-local reward: the main variant beside rivals, eight others, starts on the whole circle."""

import sys
from pathlib import Path

from run_scripts.results import Finished, Result, Setting, choose, draw_extremes, main

MAIN = "pendulum-nlr"
STEPS = (3e7, 5e8)
RIVALS = {"trpo": "TRPO", "ppo1": "PPO1"}
SEARCHES = {"cma": "CMA-ES", "ars": "ARS"}
REPLAY = {"td3": "TD3", "ddpg": "DDPG"}
SLOW_STEPS = (1e6, 5e8)  # of algorithms with a replay buffer
STAGED_STEPS = {2: 6e7, 5: 1e8}  # of variants whose preset approaches the offset in stages
NUM_SEEDS = (3, 25)
LITERAL = {"action_scale": 5, "c1_over_c2": 1, "cg_damping": 0.01, "num_branches": 4}  # what the preset deviates from


def settings(scale: str) -> list[Setting]:
    """Return TDPO without options and with the paper's settings, rivals with the paper's, and the other variants."""
    steps, num_seeds = choose(scale, *STEPS), choose(scale, *NUM_SEEDS)

    def make(panel: str, label: str, alg: str, num_timesteps: float, seeds: int, **others) -> Setting:
        values = {"env": MAIN, "alg": alg, "num_timesteps": int(num_timesteps), **others}
        return Setting(panel, label, values, seeds)

    found = [make(MAIN, "TDPO", "tdpo", steps, choose(scale, 10, 25))]
    found += [make(MAIN, label, alg, steps, num_seeds, preset="paper") for alg, label in RIVALS.items()]
    found += [make(MAIN, "TRPO, tuned", "trpo", steps, num_seeds, preset="tuned")]
    found += [make(MAIN, label, alg, steps, num_seeds) for alg, label in SEARCHES.items()]
    for alg, label in REPLAY.items():
        found.append(make(MAIN, label, alg, choose(scale, *SLOW_STEPS), choose(scale, 2, num_seeds), preset="paper"))
    found.append(make(MAIN, "TDPO, the paper's settings", "tdpo", steps, 3, preset="paper"))
    found.append(make(MAIN, "TDPO, the same read literally", "tdpo", steps, 3, preset="paper", **LITERAL))
    found.append(make(f"{MAIN}, whole circle", "TDPO", "tdpo", 5e7, 3, **{"env.start_scale": 1}))
    found.append(make(f"{MAIN}, 50 M steps", "TDPO", "tdpo", 5e7, 10))
    for v in range(2, 10):
        found.append(make(f"{MAIN}-{v}", "TDPO", "tdpo", STAGED_STEPS.get(v, steps), 3, env=f"{MAIN}-{v}"))
    return found


def extra(finished: list[Finished], out: Path) -> None:
    """Draw the best and the worst seed of the main variant."""
    draw_extremes(finished[0], out, "pendulum-nlr")


RESULT = Result(
    "pendulum_nlr",
    "The pendulum with non-local reward",
    "Figures 1 and 11 to 19",
    settings,
    is_log=True,
    extra=extra,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
