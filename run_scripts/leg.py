"""The robot leg: trains and reports everything in docs/results/leg.md.

python run_scripts/leg.py train --runs runs/leg --jobs 2     # stop and start at will
python run_scripts/leg.py report --runs runs/leg --out docs/results
"""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
from experiments import Experiment, draw_curves, main, summaries_of

ANGLE_ERROR_DEG, FOOT_X_CM, ROUGHNESS, PAYOFF = 10, 3, 0.01, -0.6  # what counts as landed
GAMMA = 0.99975
LAST, BEST = ("--episodes", "1"), ("--episodes", "1", "--best")  # the simple leg has a single start

EXPERIMENTS = {
    "main": Experiment("Shipped settings", "leg", range(20, 30), 3.5e7),
    "paper": Experiment("The paper's settings", "leg", range(20, 22), 3.5e7, ("--preset", "paper")),
}

# Controllers u = kp (target - angle) - kd rate: (kp, kd, target in degrees) of hip and of knee.
PD = {
    "by hand": ((8.0, 0.3, -45.0), (8.0, 0.3, -90.0)),
    "random search": ((6.02, 0.256, -46.54), (6.24, 0.369, -81.43)),
}


def has_landed(s: dict) -> bool:
    """Stands as asked, without chatter, and with the payoff asked for."""
    return (
        abs(s["final_hip_deg"] + 45) <= ANGLE_ERROR_DEG
        and abs(s["final_knee_deg"] + 90) <= ANGLE_ERROR_DEG
        and abs(s["final_foot_x_cm"]) <= FOOT_X_CM
        and s["torque_roughness"] <= ROUGHNESS
        and s["payoff"] > PAYOFF
    )


def row(label, s: dict) -> str:
    return (
        f"| {label} | {s['payoff']:.3f} | {s['final_hip_deg']:.1f} | {s['final_knee_deg']:.1f} | "
        f"{s['final_foot_x_cm']:.2f} | {s['last_in_air_s']:.2f} | {s['torque_roughness']:.1e} | "
        f"{s.get('steps', 0) / 1e6:.0f} | {s.get('seconds', 0) / 60:.1f} | {'yes' if has_landed(s) else 'no'} |"
    )


HEADER = [
    "| seed | payoff | hip (deg) | knee (deg) | foot x (cm) | last in the air (s) | torque roughness (N m) | steps (M) "
    "| minutes | lands |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def table(experiment: Experiment, summaries: dict[int, dict], which: str) -> str:
    landed = sum(has_landed(s) for s in summaries.values())
    if not summaries:
        return ""
    title = f"### {experiment.title}, {which} parameters: {landed} of {len(summaries)} land and stand"
    rows = [row(seed, s) for seed, s in summaries.items()]
    return "\n".join([title, experiment.shown_command(), "", *HEADER, *rows, ""])


def pd_summary(gains) -> dict:
    """Payoff and measures of a PD controller on the simple leg."""
    env = gymnasium.make("envs:tdpo/Leg-v0")
    observation, _ = env.reset(seed=0)
    (kp, kd, target), payoff, discount, truncated = np.transpose(gains), 0.0, 1.0, False
    while not truncated:
        action = kp * (np.radians(target) - observation[:2]) - kd * observation[2:]
        observation, reward, _, truncated, info = env.step(action)
        payoff += discount * reward
        discount *= GAMMA
    return {**info, "payoff": payoff * (1 - GAMMA) / (1 - discount)}


def report(runs: Path, out: Path) -> None:
    """Tables of all experiments that were trained, curves of every seed, and the best and the worst landing."""
    main_runs, paper_runs = EXPERIMENTS["main"], EXPERIMENTS["paper"]
    landings = summaries_of(main_runs, runs / "main", *BEST)
    pd = ["### PD controllers, delayed observations as for the policy", "", *HEADER]
    tables = [
        table(main_runs, landings, "best"),
        table(main_runs, summaries_of(main_runs, runs / "main", *LAST), "last"),
        table(paper_runs, summaries_of(paper_runs, runs / "paper", *BEST), "best"),
        "\n".join([*pd, *(row(name, pd_summary(gains)) for name, gains in PD.items()), ""]),
    ]
    (out / "leg-tables.md").write_text("\n".join(filter(None, tables)))
    by_payoff = sorted(landings, key=lambda seed: landings[seed]["payoff"])
    for word, seed in {"best": by_payoff[-1], "worst": by_payoff[0]}.items():
        draw = ["tdpo_baselines.evaluate", str(runs / "main" / str(seed)), "--plot", str(out / f"leg-{word}.png")]
        subprocess.run([sys.executable, "-m", *draw, *BEST], check=True)
    shown = {name: experiment for name, experiment in EXPERIMENTS.items() if (runs / name).exists()}
    draw_curves(shown, runs, out / "leg-curves.png", column="payoff", label="- payoff")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/leg", report))
