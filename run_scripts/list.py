"""Every result: the paper's figure, what it costs at each scale, and what is on disk. `python -m run_scripts.list`"""

import csv
import json
import sys
from importlib import import_module
from pathlib import Path

from run_scripts.results import Result, Setting

SCRIPTS = (
    "pendulum_nlr", "leg", "leg_stochastic", "leg_randomised", "horizon", "action_delay", "gym_suite", "running_time",
    "hpo_libraries", "contest", "suite", "ablations", "baselines",
)  # fmt: skip
RATES = Path(__file__).parent.parent / "docs/results/running-time.json"
SCALES = ("short", "paper")


def results() -> list[Result]:
    """Return the definitions of all scripts."""
    return [import_module(f"run_scripts.{name}").RESULT for name in SCRIPTS]


def seconds_per_step() -> dict[str, float]:
    """Return the measured mean cost of a step of each algorithm; empty before `running_time` was run."""
    if not RATES.exists():
        return {}
    costs: dict[str, list[float]] = {}
    for row in json.loads(RATES.read_text())["rows"]:
        each = [60 * score["minutes"] / score["steps"] for score in row["seeds"].values()]
        costs.setdefault(row["label"].lower(), []).extend(each)
    return {name: sum(each) / len(each) for name, each in costs.items()}


def cost(settings: list[Setting], rates: dict[str, float]) -> str:
    """Return the number of runs, their steps, and the hours that they take on one core if that was measured."""
    steps = {s.name: s.num_seeds * float(s.values.get("num_timesteps", 0)) for s in settings}
    text = f"{sum(s.num_seeds for s in settings)} runs, {sum(steps.values()) / 1e6:,.0f} M steps"
    if all(s.values["alg"] in rates for s in settings):
        text += f", {sum(steps[s.name] * rates[s.values['alg']] for s in settings) / 3600:,.1f} h"
    return text


def on_disk(name: str, scale: str) -> str:
    """Return how many runs the default folder has."""
    table = Path("runs", f"{name}-{scale}", "runs.csv")
    if not table.exists():
        return "-"
    with open(table, newline="") as file:
        states = [row["status"] for row in csv.DictReader(file)]
    return f"{states.count('finished')} of {len(states)} finished"


def main() -> int:
    """Print the list."""
    rates = seconds_per_step()
    for result in results():
        print(f"{result.name:15} {result.title}{f' ({result.paper})' if result.paper else ''}")
        for scale in SCALES:
            print(f"{'':15} {scale:6} {cost(result.at_scale(scale), rates):42} {on_disk(result.name, scale)}")
    print("\npython -m run_scripts.NAME --scale smoke|short|paper --jobs N; --help explains")
    return 0


if __name__ == "__main__":
    sys.exit(main())
