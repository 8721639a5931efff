"""The simple leg: TDPO beside its rivals, and beside PD controllers."""

import sys
from pathlib import Path

import numpy as np

from envs.leg.report import LANDING_GAMMA, has_landed
from run_scripts.results import Finished, Result, Setting, choose, draw_extremes, main, write_table

STEPS = (1.5e7, 5e8)
NUM_SEEDS = (3, 25)

# Controllers u = kp (target - angle) - kd rate: (kp, kd, target in degrees) of hip and of knee.
PD = {
    "PD by hand": ((8.0, 0.3, -45.0), (8.0, 0.3, -90.0)),
    "PD by random search": ((6.02, 0.256, -46.54), (6.24, 0.369, -81.43)),
}
MEASURES = {
    "payoff": ".3f", "final_hip_deg": ".1f", "final_knee_deg": ".1f", "final_foot_x_cm": ".2f", "last_in_air_s": ".2f",
    "torque_roughness": ".1e",
}  # fmt: skip
HEADER = ("seed", "payoff", "hip (deg)", "knee (deg)", "foot x (cm)", "last in the air (s)", "torque roughness (N m)")


def settings(scale: str) -> list[Setting]:
    """Return TDPO and CMA-ES without options, and TRPO and PPO1 with the tuned and the paper's settings."""
    base = {"env": "leg", "num_timesteps": int(choose(scale, *STEPS))}
    found = [Setting("leg", "TDPO", {**base, "alg": "tdpo"}, choose(scale, 10, 25))]
    for alg, label in {"trpo": "TRPO", "ppo1": "PPO1"}.items():
        found += [
            Setting("leg", f"{label}, {kind}", {**base, "alg": alg, "preset": preset}, choose(scale, *NUM_SEEDS))
            for kind, preset in {"tuned": "tuned", "the paper's settings": "paper"}.items()
        ]
    found.append(Setting("leg", "CMA-ES, PD gains", {**base, "alg": "cma"}, choose(scale, 5, 25)))
    if scale == "paper":
        for alg, label in {"td3": "TD3", "ddpg": "DDPG"}.items():
            found.append(Setting("leg", label, {**base, "alg": alg, "preset": "paper"}, choose(scale, *NUM_SEEDS)))
    return found


def run_pd(gains) -> dict:
    """Return payoff and measures of a PD controller on the simple leg."""
    import gymnasium

    env = gymnasium.make("envs:tdpo/Leg-v0")
    observation, _ = env.reset(seed=0)
    (kp, kd, target), payoff, discount, truncated = np.transpose(gains), 0.0, 1.0, False
    while not truncated:
        action = kp * (np.radians(target) - observation[:2]) - kd * observation[2:]
        observation, reward, _, truncated, info = env.step(action)
        payoff += discount * reward
        discount *= LANDING_GAMMA
    return {**info, "payoff": payoff * (1 - LANDING_GAMMA) / (1 - discount)}


def extra(finished: list[Finished], out: Path) -> None:
    """Write how every seed and the PD controllers land, and draw the best and the worst seed of TDPO."""
    landings = {f"{f.setting.label}, {seed}": score for f in finished for seed, score in f.scores.items()}
    landings |= {name: run_pd(gains) for name, gains in PD.items()}
    rows = [
        [name, *(f"{s[key]:{form}}" for key, form in MEASURES.items()), "yes" if has_landed(s) else "no"]
        for name, s in landings.items()
    ]
    write_table(out / "leg-landings.md", [*HEADER, "lands"], rows)
    draw_extremes(finished[0], out, "leg")


RESULT = Result(
    "leg", "The robot leg at 4 kHz", "Figure 2", settings, first_seed=20, num_episodes=1, is_log=True, extra=extra
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
