"""The stochastic leg: TDPO beside PD gains by CMA-ES, with sensor noise from random starts."""

import sys
from pathlib import Path

import gymnasium
import numpy as np

from envs.leg.params import PHYSICS_RATE_HZ, POSITION, RATE, STEP
from envs.leg.report import foot_position
from run_scripts.results import Finished, Result, Setting, choose, main, write_table

PD_GAINS = ((4.0, 0.12, -45.0), (4.0, 0.12, -90.0))  # (kp, kd, target in degrees) of hip and of knee
NUM_PD_EPISODES, GAMMA = 40, 0.99975
NUM_LANDINGS = 20
FOOT_X_CM, RATE_LIMIT, HIP_HEIGHT = 5, 0.5, 0.1  # limits of standing: cm, rad/s, m above the foot
LAST_STEPS = PHYSICS_RATE_HZ // 10  # that must keep them


def settings(scale: str) -> list[Setting]:
    """Return both variants of TDPO and PD gains by CMA-ES, at the paper's scale also TRPO and PPO1 as tuned there."""
    env, found = "leg-stochastic", []

    def add(label: str, alg: str, preset: str, num_timesteps: float, num_seeds: int) -> None:
        values = {"env": env, "alg": alg, "preset": preset, "num_timesteps": int(num_timesteps)}
        found.append(Setting(env, label, values, num_seeds))

    add("TDPO, advanced", "tdpo", choose(scale, "tuned", "paper"), choose(scale, 3.5e8, 5e9), choose(scale, 2, 25))
    add("TDPO, basic", "tdpo", "basic", 2e8, 1)
    add("CMA-ES, PD gains", "cma", "tuned", choose(scale, 2.1e7, 5e9), choose(scale, 3, 25))
    if scale == "paper":
        add("TRPO", "trpo", "paper", 5e9, 25)
        add("PPO1", "ppo1", "paper", 5e9, 25)
    return found


def stands(states: np.ndarray) -> bool:
    """Return True if the leg stood still over the axis, hip above foot, for the last 0.1 s."""
    last = states[-LAST_STEPS:]
    foot_x, foot_z = foot_position(last)
    rates = np.hypot(last[:, RATE + 1], last[:, RATE + 2])
    is_above = last[:, POSITION] - foot_z > HIP_HEIGHT
    return bool(np.all(100 * np.abs(foot_x) < FOOT_X_CM) and np.all(rates < RATE_LIMIT) and np.all(is_above))


def land(run: Path) -> list[np.ndarray]:
    """Return the states of drops from random starts with sensor noise, controlled by the last parameters."""
    from tdpo_baselines.evaluate import evaluate, load

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


def extra(finished: list[Finished], out: Path) -> None:
    """Write how every seed stands, in the paper's units, and draw its landings."""
    rows = []
    for f in finished:
        for seed, folder in f.folders.items():
            drops, payoff = land(folder), 1000 * f.scores[seed]["payoff"]
            rows.append([f.setting.label, str(seed), f"{payoff:.1f}", str(sum(map(stands, drops)))])
            name = f.setting.label.replace(", ", "-").replace(" ", "-").lower()
            draw_landings(drops, out / f"leg-stochastic-landings-{name}-{seed}.png")
    rows.append(["PD by hand", "", f"{1000 * run_pd():.1f}", ""])
    header = ["method", "seed", "payoff (x 1000)", f"stand, of {NUM_LANDINGS} starts"]
    write_table(out / "leg-stochastic-landings.md", header, rows)


RESULT = Result(
    "leg_stochastic",
    "The stochastic leg",
    "Figure 4",
    settings,
    first_seed=8,
    is_log=True,
    extra=extra,
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
