"""The stochastic leg: runs, table and pictures of docs/results/leg-stochastic.md.

python run_scripts/leg_stochastic.py train --runs runs/leg-stochastic --jobs 2     # stop and start at will
python run_scripts/leg_stochastic.py report --runs runs/leg-stochastic --out docs/results
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
from experiments import Experiment, Experiments, draw_costs, main, make_table, summarise_seeds

from envs.leg.params import PHYSICS_RATE_HZ, POSITION, RATE, STEP
from envs.leg.report import foot_position
from tdpo_baselines.evaluate import evaluate, load

PD_GAINS = ((4.0, 0.12, -45.0), (4.0, 0.12, -90.0))  # (kp, kd, target in degrees) of hip and of knee
NUM_PD_EPISODES, GAMMA = 40, 0.99975
EVALUATION = ("--episodes", "100")
NUM_LANDINGS = 20
FOOT_X_CM, RATE_LIMIT, HIP_HEIGHT = 5, 0.5, 0.1  # limits of standing: cm, rad/s, m above the foot
LAST_STEPS = PHYSICS_RATE_HZ // 10  # that must keep them

EXPERIMENTS = {
    "advanced": Experiment("Advanced variant", "leg-stochastic", range(8, 10), 3.5e8),
    "basic": Experiment("Basic variant", "leg-stochastic", range(1), 2e8, ("--preset", "basic")),
}
HEADER = " | seed | payoff (paper's units x 1000) | worst of 100 starts | stand, of 20 starts | steps (M) | minutes"


def stands(states: np.ndarray) -> bool:
    """Return True if the leg stood still over the axis, hip above foot, for the last 0.1 s."""
    last = states[-LAST_STEPS:]
    foot_x, foot_z = foot_position(last)
    rates = np.hypot(last[:, RATE + 1], last[:, RATE + 2])
    is_above = last[:, POSITION] - foot_z > HIP_HEIGHT
    return bool(np.all(100 * np.abs(foot_x) < FOOT_X_CM) and np.all(rates < RATE_LIMIT) and np.all(is_above))


def land(run: Path) -> list[np.ndarray]:
    """Return the states of drops from random starts with sensor noise, controlled by the last parameters."""
    result = evaluate(load(run), num_episodes=NUM_LANDINGS, seed=1, start_values={})
    actions = result.rollouts.actions
    return [result.environment.replay(start, a) for start, a in zip(result.start_states, actions)]


def draw_landings(drops: list[np.ndarray], picture: Path) -> None:
    """Draw height, angles and foot of every drop; drops that stand are blue."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True)
    for states in drops:
        colour = "C0" if stands(states) else "C3"
        seconds = states[:, STEP] / PHYSICS_RATE_HZ
        foot_x, _ = foot_position(states)
        hip, knee = np.degrees(states[:, POSITION + 1]), np.degrees(states[:, POSITION + 2])
        for panel, values in zip(panels, (states[:, POSITION], hip, knee, 100 * foot_x)):
            panel.plot(seconds, values, color=colour, linewidth=0.6)
    for panel, label in zip(panels, ("hip height (m)", "hip (deg)", "knee (deg)", "foot x (cm)")):
        panel.set_ylabel(label)
        panel.grid(alpha=0.3)
    panels[-1].set_xlabel("time (s)")
    panels[0].set_title(f"{sum(map(stands, drops))} of {len(drops)} random starts stand (blue)", fontsize="medium")
    figure.savefig(picture, dpi=110)


def run_pd() -> float:
    """Return the mean payoff of a PD controller."""
    env = gymnasium.make("envs:tdpo/LegStochastic-v0")
    kp, kd, target = np.transpose(PD_GAINS)
    payoffs = []
    for seed in range(NUM_PD_EPISODES):
        observation, _ = env.reset(seed=seed)
        payoff, weight, total, truncated = 0.0, 1.0, 0.0, False
        while not truncated:
            action = kp * (np.radians(target) - observation[:2]) - kd * observation[2:]
            observation, reward, _, truncated, _ = env.step(action)
            payoff, total, weight = payoff + weight * reward, total + weight, weight * GAMMA
        payoffs.append(payoff / total)
    return float(np.mean(payoffs))


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write the table of both variants, curves of every seed, and the landings of each seed."""
    rows = []
    for name, experiment in experiments.items():
        for seed, s in summarise_seeds(experiment, runs / name, *EVALUATION).items():
            drops = land(runs / name / str(seed))
            rows.append(
                f"{experiment.title} | {seed} | {1000 * s['payoff']:.1f} | {1000 * s['worst_payoff']:.1f} | "
                f"{sum(map(stands, drops))} | {s['steps'] / 1e6:.0f} | {s['seconds'] / 60:.0f}"
            )
            draw_landings(drops, out / f"leg-stochastic-landings-{name}-{seed}.png")
    rows.append(f"PD controller |  | {1000 * run_pd():.1f} |  |  |  | ")
    (out / "leg-stochastic-table.md").write_text(make_table(HEADER, rows))
    draw_costs(experiments, runs, out / "leg-stochastic-curves.png", column="payoff", label="- payoff")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/leg-stochastic", report))
