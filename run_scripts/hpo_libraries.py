"""Libraries for hyper-parameter optimisation on the leg at 100 Hz: best scores, and the winners on fresh seeds."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from run_scripts.results import Finished, Result, Setting, choose, main
from run_scripts.searches import Search, run_searches

ENVIRONMENT = "leg-100hz"
LIBRARIES = {
    "optuna": "Optuna",
    "bayesopt": "BayesOpt",
    "skopt": "Scikit-Opt",
    "gpyopt": "GPyOpt",
    "random": "random search",
}
COLOURS = dict(zip(LIBRARIES, ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "0.5")))
ALGORITHMS = {"trpo": "TRPO", "ppo1": "PPO1"}


def searches(scale: str) -> list[Search]:
    """Return a search for each algorithm and library."""
    steps, num_evaluations = choose(scale, short=(2e5, 40), paper=(4e6, 750))
    return [Search(alg, ENVIRONMENT, steps, num_evaluations, library) for alg in ALGORITHMS for library in LIBRARIES]


def prepare(parsed: argparse.Namespace) -> int:
    """Run the searches that --only names."""
    found = [s for s in searches(parsed.scale) if not parsed.only or any(text in s.name for text in parsed.only)]
    return run_searches(found, parsed)


def settings(scale: str) -> list[Setting]:
    """Return the winners of the searches that have been run."""
    return [
        Setting(
            f"{ENVIRONMENT}, {ALGORITHMS[search.alg]}",
            LIBRARIES[search.library],
            {**search.options(scale), "num_timesteps": int(search.num_timesteps)},
            choose(scale, short=10, paper=100),
        )
        for search in searches(scale)
        if search.winner(scale).exists()
    ]


def read_best(winner: Path) -> np.ndarray:
    """Return the best score after each evaluation of a search."""
    with open(winner.with_suffix(".csv"), newline="") as file:
        return np.array([float(row["best_score"]) for row in csv.DictReader(file)])


def extra(finished: list[Finished], out: Path) -> None:
    """Draw the best score over the evaluations, and the winner's on its search's seeds and on fresh ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    panels = figure.subplots(2, len(ALGORITHMS), squeeze=False)
    for column, (alg, label) in enumerate(ALGORITHMS.items()):
        here = [f for f in finished if f.setting.values["alg"] == alg]
        for place, f in enumerate(here):
            best = read_best(Path(f.setting.values["config"]))
            library = next(key for key, name in LIBRARIES.items() if name == f.setting.label)
            panels[0, column].step(
                range(1, len(best) + 1), -best, where="post", color=COLOURS[library], label=f.setting.label
            )
            bars = (-best[-1], -float(np.mean(f.returns())))
            panels[1, column].bar([place - 0.2, place + 0.2], bars, 0.4, color=COLOURS[library], hatch=["", "//"])
        panels[0, column].set(title=label, xlabel="evaluation", ylabel="- best score so far", yscale="log")
        panels[1, column].set_xticks(range(len(here)), [f.setting.label for f in here], rotation=20)
        panels[1, column].set(ylabel="- return: search (plain), fresh seeds (hatched)", yscale="log")
        if here:
            panels[0, column].legend()
    figure.savefig(out / "hpo-libraries.png", dpi=110)


RESULT = Result(
    "hpo_libraries",
    "The choice of a library for hyper-parameter optimisation",
    "Figures 3 and 21",
    settings,
    first_seed=2000,
    num_episodes=20,
    is_log=True,
    extra=extra,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
