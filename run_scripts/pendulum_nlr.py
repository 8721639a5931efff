"""The pendulum with non-local reward: trains and reports everything in docs/results/pendulum-nlr.md.

python run_scripts/pendulum_nlr.py train --runs runs/pendulum-nlr --jobs 2     # hours; stop and start at will
python run_scripts/pendulum_nlr.py report --runs runs/pendulum-nlr --out docs/results
"""

import subprocess
import sys
from pathlib import Path

from experiments import Experiment, draw_curves, main, summaries_of

OFFSET_ERROR, BAND_SHARE, AMPLITUDE_RATIO = 0.01, 0.9, 1.1  # what counts as solved
EPISODES = ("--episodes", "100")


RETUNED = (2, 5, 9)  # after seeds 0 to 2 had shown how unreliable their settings were: other seeds are reported
TIMESTEPS = {v: 1e8 if v in (5, 9) else 6e7 for v in range(2, 10)}
EXPERIMENTS = {
    "main": Experiment("Main variant, shipped settings", "pendulum-nlr", range(10), 1e8),
    **{
        f"variant-{v}": Experiment(
            f"Variant {v}, shipped settings", f"pendulum-nlr-{v}", range(3, 6) if v in RETUNED else range(3), steps
        )
        for v, steps in TIMESTEPS.items()
    },
    "full-starts": Experiment(
        "Main variant, starts on the whole circle", "pendulum-nlr", range(3), 2e8, ("--set", "env.start_scale=1")
    ),
    "paper": Experiment("Main variant, the paper's settings", "pendulum-nlr", range(3), 1e8, ("--preset", "paper")),
}


def is_solved(s: dict) -> bool:
    return (
        s["offset_error"] <= OFFSET_ERROR and s["band_share"] >= BAND_SHARE and s["amplitude_ratio"] <= AMPLITUDE_RATIO
    )


def table(name: str, summaries: dict[int, dict]) -> str:
    experiment = EXPERIMENTS[name]
    solved = sum(is_solved(s) for s in summaries.values())
    lines = [
        f"### {experiment.title}: {solved} of {len(summaries)} solved",
        experiment.shown_command(),
        "",
        "| seed | return | offset error (rad) | amplitude / limit | in-band share | steps (M) | minutes | solved |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for seed, s in summaries.items():
        lines.append(
            f"| {seed} | {s['return']:.1f} | {s['offset_error']:.4f} | {s['amplitude_ratio']:.3f} | "
            f"{s['band_share']:.3f} | {s['steps'] / 1e6:.0f} | {s['seconds'] / 60:.1f} | "
            f"{'yes' if is_solved(s) else 'no'} |"
        )
    return "\n".join([*lines, ""])


def report(runs: Path, out: Path) -> None:
    """Tables of all finished runs in tables.md, learning curves, and pictures of the best and the worst main seed."""
    tables = []
    for name, experiment in EXPERIMENTS.items():
        summaries = summaries_of(experiment, runs / name, *EPISODES)
        if summaries:
            tables.append(table(name, summaries))
        if name == "main" and summaries:
            by_return = sorted(summaries, key=lambda seed: summaries[seed]["return"])
            for word, seed in {"best": by_return[-1], "worst": by_return[0]}.items():
                picture = str(out / f"pendulum-nlr-{word}.png")
                draw = ["tdpo_baselines.evaluate", str(runs / name / str(seed)), "--plot", picture]
                subprocess.run([sys.executable, "-m", *draw, *EPISODES], check=True)
    (out / "pendulum-nlr-tables.md").write_text("\n".join(tables))
    for word, names in {"main": ["main"], "paper": ["main", "paper"]}.items():
        picture, shown = out / f"pendulum-nlr-{word}-curves.png", {name: EXPERIMENTS[name] for name in names}
        draw_curves(shown, runs, picture, column="return_mean", label="- mean return per update")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/pendulum-nlr", report))
