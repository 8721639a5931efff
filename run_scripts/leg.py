"""The robot leg: runs, tables and pictures of docs/results/leg.md.

python run_scripts/leg.py train --runs runs/leg --jobs 2     # stop and start at will
python run_scripts/leg.py report --runs runs/leg --out docs/results
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
from experiments import Experiment, Experiments, draw_costs, evaluate, main, make_table, summarise_seeds

from envs.leg.report import LANDING_GAMMA, has_landed

LAST, BEST = ("--episodes", "1"), ("--episodes", "1", "--best")  # the simple leg has a single start

EXPERIMENTS = {
    "main": Experiment("No options", "leg", range(20, 30), 1.5e7),
    "paper": Experiment("The paper's settings", "leg", range(20, 22), 3.5e7, ("--preset", "paper")),
}

# Controllers u = kp (target - angle) - kd rate: (kp, kd, target in degrees) of hip and of knee.
PD = {
    "by hand": ((8.0, 0.3, -45.0), (8.0, 0.3, -90.0)),
    "random search": ((6.02, 0.256, -46.54), (6.24, 0.369, -81.43)),
}
HEADER = (
    "seed | payoff | hip (deg) | knee (deg) | foot x (cm) | last in the air (s) | torque roughness (N m) | steps (M) "
    "| minutes | lands"
)


def row(label, s: dict) -> str:
    """Return a row of a table."""
    return (
        f"{label} | {s['payoff']:.3f} | {s['final_hip_deg']:.1f} | {s['final_knee_deg']:.1f} | "
        f"{s['final_foot_x_cm']:.2f} | {s['last_in_air_s']:.2f} | {s['torque_roughness']:.1e} | "
        f"{s.get('steps', 0) / 1e6:.0f} | {s.get('seconds', 0) / 60:.1f} | {'yes' if has_landed(s) else 'no'}"
    )


def table(experiment: Experiment, summaries: dict[int, dict], which: str) -> str:
    """Return a title, the command and a row for each seed; empty without runs."""
    if not summaries:
        return ""
    num_landed = sum(has_landed(s) for s in summaries.values())
    title = f"### {experiment.title}, {which} parameters: {num_landed} of {len(summaries)} land and stand"
    rows = [row(seed, s) for seed, s in summaries.items()]
    return f"{title}\n{experiment.shown_command()}\n\n{make_table(HEADER, rows)}"


def run_pd(gains) -> dict:
    """Return payoff and measures of a PD controller on the simple leg."""
    env = gymnasium.make("envs:tdpo/Leg-v0")
    observation, _ = env.reset(seed=0)
    (kp, kd, target), payoff, discount, truncated = np.transpose(gains), 0.0, 1.0, False
    while not truncated:
        action = kp * (np.radians(target) - observation[:2]) - kd * observation[2:]
        observation, reward, _, truncated, info = env.step(action)
        payoff += discount * reward
        discount *= LANDING_GAMMA
    return {**info, "payoff": payoff * (1 - LANDING_GAMMA) / (1 - discount)}


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write tables of all experiments that were trained, curves of every seed, and the best and the worst landing."""
    main_runs, paper_runs = experiments["main"], experiments["paper"]
    landings = summarise_seeds(main_runs, runs / "main", *BEST)
    pd_title = "### PD controllers, delayed observations as for the policy"
    pd_rows = [row(name, run_pd(gains)) for name, gains in PD.items()]
    tables = [
        table(main_runs, landings, "best"),
        table(main_runs, summarise_seeds(main_runs, runs / "main", *LAST), "last"),
        table(paper_runs, summarise_seeds(paper_runs, runs / "paper", *BEST), "best"),
        f"{pd_title}\n\n{make_table(HEADER, pd_rows)}",
    ]
    (out / "leg-tables.md").write_text("\n".join(filter(None, tables)))
    by_payoff = sorted(landings, key=lambda seed: landings[seed]["payoff"])
    for word, seed in zip(("worst", "best"), by_payoff[:1] + by_payoff[-1:]):
        evaluate(runs / "main" / str(seed), "--plot", str(out / f"leg-{word}.png"), *BEST)
    draw_costs(experiments, runs, out / "leg-curves.png", column="payoff", label="- payoff")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/leg", report))
