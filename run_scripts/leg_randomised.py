"""The simple leg with and without randomisation: what TDPO gains and loses on other masses and delays."""

import dataclasses
import sys
from itertools import product
from pathlib import Path

import numpy as np

from run_scripts.results import Finished, Result, Setting, choose, main, number, write_table

STEPS = (1.5e7, 1e8)
MORE_STEPS = (5e6, 1e8)  # from a leg that lands
NUM_SEEDS = (3, 25)
RANDOM = {  # within about 20 %; torque_delay_steps is 4 by default, here 3 and up to 2 more
    "env.mass": "0.8:1.2", "env.friction": "0.8:1.2", "env.joint_friction": "0.8:1.2",
    "env.torque_delay_steps": 3, "env.delay_steps": "0:2",
}  # fmt: skip
NAMES = ("torque_delay_steps", "mass")
DELAYS, MASSES = (0, 1, 2, 3, 4, 5, 6, 7, 8), (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)
FIXED = {"friction": 1.0, "joint_friction": 1.0, "delay_steps": 0}  # on the map
REGIONS = {  # delays and masses
    "as in the model": ((4,), (1.0,)),
    "in the trained range": ((3, 4, 5), (0.8, 0.9, 1.0, 1.1, 1.2)),
    "everywhere": (DELAYS, MASSES),
}


def settings(scale: str) -> list[Setting]:
    """Return TDPO with and without randomisation, from random parameters and from the package's agent, which lands."""
    fresh = {"env": "leg", "alg": "tdpo", "num_timesteps": int(choose(scale, *STEPS))}
    trained = {**fresh, "num_timesteps": int(choose(scale, *MORE_STEPS)), "init": "pretrained:leg"}
    panels = {"leg": ("TDPO", fresh), "trained leg": ("TDPO goes on", trained)}
    return [
        Setting(panel, label + also, {**base, **drawn}, choose(scale, *NUM_SEEDS))
        for panel, (label, base) in panels.items()
        for also, drawn in (("", {}), (", randomised", RANDOM))
    ]


def map_run(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the payoff and 1 or 0 for landed or not, at every delay and mass. [D, M] each"""
    from tdpo_baselines.evaluate import evaluate, load

    trained, payoffs, landed = load(run), [], []
    for delay, mass in product(DELAYS, MASSES):
        there = dataclasses.replace(trained, env_changes={**FIXED, **dict(zip(NAMES, (delay, mass)))})
        found = evaluate(there, num_episodes=1)
        payoffs.append(found.results["payoff"].mean())
        landed.append(found.verdict is not None and found.verdict.is_met)
    shape = len(DELAYS), len(MASSES)
    return np.reshape(payoffs, shape), np.reshape(landed, shape).astype(float)


def extra(finished: list[Finished], out: Path) -> None:
    """Draw the maps of landings and of payoffs, and write their means over regions, if all runs are on this disk."""
    if any(f.folders.keys() != f.scores.keys() for f in finished):
        return
    maps = {f.setting.label: np.array([map_run(folder) for folder in f.folders.values()]) for f in finished}
    rows = [row(label, region, found) for label, found in maps.items() for region in REGIONS]
    header = ["method", "delay and mass", "lands", "payoff", "every seed"]
    write_table(out / "leg-randomised-map-table.md", header, rows)
    for kind, (stem, label) in enumerate({"payoffs": "mean payoff", "landings": "share of seeds that land"}.items()):
        figure = draw_maps({name: found[:, kind].mean(axis=0) for name, found in maps.items()}, label)
        figure.savefig(out / f"leg-randomised-{stem}.png", dpi=110)


def row(label: str, region: str, found: np.ndarray) -> list[str]:
    """Return the cells of a region from maps [seeds, 2, D, M]."""
    delays, masses = REGIONS[region]
    inside = found[:, :, [d in delays for d in DELAYS]][..., [m in masses for m in MASSES]].mean(axis=(2, 3))
    payoffs = ", ".join(number(value) for value in inside[:, 0])
    return [label, region, f"{100 * inside[:, 1].mean():.0f} %", number(float(inside[:, 0].mean())), payoffs]


def draw_maps(maps: dict[str, np.ndarray], label: str):
    """Return a heat map for each method, with the range of its training framed."""
    from tdpo_baselines.evaluating.robustness import Sweep
    from tdpo_baselines.plot import draw_sweeps

    own = {False: (4, 1.0), True: ((3, 5), (0.8, 1.2))}
    sweeps = [Sweep(NAMES, (DELAYS, MASSES), values, own["randomised" in name]) for name, values in maps.items()]
    return draw_sweeps(list(maps), sweeps, label)


RESULT = Result(
    "leg_randomised",
    "The robot leg with randomised mass, friction and delay",
    "",
    settings,
    first_seed=40,
    is_log=True,
    extra=extra,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
