"""The contest at equal effort: rivals tuned with the same number of evaluations, beside TDPO without options."""

import argparse
import sys

from run_scripts.results import Result, Setting, choose, main
from run_scripts.searches import Search, run_searches

TASKS = {
    "pendulum-nlr": (3e6, 3e7),
    "leg-100hz": (5e5, 5e6),
    "leg": (3e6, 1.5e7),
}  # steps of a search's runs, of the winner's; a third of them at the scale short
LABELS = {"trpo": "TRPO", "ppo1": "PPO1", "ars": "ARS", "cma": "CMA-ES", "td3": "TD3", "ddpg": "DDPG"}
WITH_REPLAY = ("td3", "ddpg")  # too slow for the scale short


def searches(scale: str) -> list[Search]:
    """Return a search for each task and rival."""
    num_evaluations = choose(scale, short=20, paper=100)
    algs = [alg for alg in LABELS if scale == "paper" or alg not in WITH_REPLAY]
    share = choose(scale, short=1 / 3, paper=1)
    return [Search(alg, env, share * steps, num_evaluations) for env, (steps, _) in TASKS.items() for alg in algs]


def prepare(parsed: argparse.Namespace) -> int:
    """Run the searches of the tasks that --only names."""
    found = [s for s in searches(parsed.scale) if not parsed.only or any(text in s.env for text in parsed.only)]
    return run_searches(found, parsed)


def settings(scale: str) -> list[Setting]:
    """Return TDPO without options and the winners of the searches that have been run."""
    (num_seeds, share), found = choose(scale, short=(3, 1 / 3), paper=(10, 1)), []
    for env, (_, steps) in TASKS.items():
        limit = {"num_timesteps": round(share * steps)}
        found.append(
            Setting(env, "TDPO, no options", {"alg": "tdpo", "env": env, "preset": "none", **limit}, num_seeds)
        )
        for search in searches(scale):
            if search.env == env and search.winner(scale).exists():
                values = {**search.options(scale), **limit}
                found.append(Setting(env, f"{LABELS[search.alg]}, tuned", values, num_seeds))
    return found


RESULT = Result(
    "contest",
    "TDPO without options beside rivals that were tuned with equal effort",
    "",
    settings,
    first_seed=2000,
    num_episodes=50,
    is_log=True,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
