"""The pendulum with non-local reward: runs, tables and pictures of docs/results/pendulum-nlr.md.

python run_scripts/pendulum_nlr.py train --runs runs/pendulum-nlr --jobs 2     # minutes; stop and start at will
python run_scripts/pendulum_nlr.py report --runs runs/pendulum-nlr --out docs/results
"""

import sys
from pathlib import Path

from experiments import Experiment, Experiments, draw_costs, evaluate, main, make_table, summarise_seeds

from envs.pendulum.nlr import is_solved

EPISODES = ("--episodes", "100")

EXPERIMENTS = {
    "main": Experiment("Main variant, no options", "pendulum-nlr", range(10), 1e7),
    **{
        f"variant-{v}": Experiment(
            f"Variant {v}, no options",
            f"pendulum-nlr-{v}",
            range(3),
            1e7,
            ("--preset", "none") if v in (2, 5, 8) else (),
        )
        for v in range(2, 10)
    },
    "full-starts": Experiment(
        "Main variant, starts on the whole circle", "pendulum-nlr", range(3), 2e7, ("--set", "env.start_scale=1")
    ),
    "paper": Experiment("Main variant, the paper's settings", "pendulum-nlr", range(3), 1e7, ("--preset", "paper")),
}
HEADER = "seed | return | offset error (rad) | amplitude / limit | in-band share | steps (M) | minutes | solved"


def table(experiment: Experiment, summaries: dict[int, dict]) -> str:
    """Return a title, the command and a row for each seed."""
    num_solved = sum(is_solved(s) for s in summaries.values())
    title = f"### {experiment.title}: {num_solved} of {len(summaries)} solved"
    rows = [
        f"{seed} | {s['return']:.1f} | {s['offset_error']:.4f} | {s['amplitude_ratio']:.3f} | {s['band_share']:.3f} | "
        f"{s['steps'] / 1e6:.0f} | {s['seconds'] / 60:.1f} | {'yes' if is_solved(s) else 'no'}"
        for seed, s in summaries.items()
    ]
    return f"{title}\n{experiment.shown_command()}\n\n{make_table(HEADER, rows)}"


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write tables of all finished runs, learning curves, and pictures of the best and the worst main seed."""
    found = {name: summarise_seeds(experiment, runs / name, *EPISODES) for name, experiment in experiments.items()}
    tables = [table(experiments[name], summaries) for name, summaries in found.items() if summaries]
    (out / "pendulum-nlr-tables.md").write_text("\n".join(tables))
    by_return = sorted(found["main"], key=lambda seed: found["main"][seed]["return"])
    for word, seed in zip(("worst", "best"), by_return[:1] + by_return[-1:]):
        evaluate(runs / "main" / str(seed), "--plot", str(out / f"pendulum-nlr-{word}.png"), *EPISODES)
    for word, names in {"main": ["main"], "paper": ["main", "paper"]}.items():
        picture, shown = out / f"pendulum-nlr-{word}-curves.png", {name: experiments[name] for name in names}
        draw_costs(shown, runs, picture, column="return_mean", label="- mean return per update")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/pendulum-nlr", report))
