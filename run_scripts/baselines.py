"""TRPO, PPO1, DDPG and TD3 beside published scores, and all five algorithms on the paper's own problems.

python run_scripts/baselines.py train --runs runs/baselines --jobs 2     # stop and start at will
python run_scripts/baselines.py report --runs runs/baselines --out docs/results
"""

import sys
from pathlib import Path

import numpy as np
from experiments import Experiment, main, summaries_of

from tdpo_baselines.plot import read_progress

EPISODES = ("--episodes", "50")
MORE_EPISODES = {
    "Pendulum-v1": ("--episodes", "200")
}  # short, and their returns vary from start to start more than others'
SCORES = {  # algorithm, task: steps, score to reach, what others report there (docs/results/baselines.md says who)
    ("td3", "Pendulum-v1"): (2e4, -180, "-152"),
    ("ddpg", "Pendulum-v1"): (2e4, -180, "-152"),
    ("ppo1", "Pendulum-v1"): (2e5, -200, "-172"),
    ("trpo", "Pendulum-v1"): (2e5, -200, "-175"),
    ("ppo1", "InvertedPendulum-v5"): (3e5, 950, "963 at 1 million"),
    ("trpo", "InvertedPendulum-v5"): (3e5, 950, "905 at 1 million"),
    ("ppo1", "HalfCheetah-v5"): (1e6, 1400, "1443, 1669"),
    ("trpo", "HalfCheetah-v5"): (1e6, 1300, "1290, 1803"),
    ("trpo", "Swimmer-v5"): (1e6, 90, "95, 359"),
    ("td3", "HalfCheetah-v5"): (3e5, None, "see text"),
}
SMALL_NETWORK = ("--set", "hidden_sizes=64,64", "batch_size=128")
SCORED = {
    f"{algorithm}-{task}": Experiment(
        f"{algorithm} on {task}",
        task,
        range(3),
        steps,
        ("--alg", algorithm, *(SMALL_NETWORK if (algorithm, task) == ("td3", "HalfCheetah-v5") else ())),
    )
    for (algorithm, task), (steps, _, _) in SCORES.items()
}

LONG = ("gamma=0.99975",)  # discounts grow with the control rate, as in the authors' benchmarks
COMPARED = {
    "pendulum-nlr": {
        "tdpo": (),
        "trpo": (),
        "ppo1": (),
        "td3": ("hidden_sizes=64,64", "batch_size=128", "updates_per_round=5"),
        "ddpg": ("hidden_sizes=64,64", "batch_size=128", "updates_per_round=5"),
    },
    "leg": {
        "tdpo": (),
        "trpo": (),
        "ppo1": (),
        "td3": (*LONG, "hidden_sizes=64,64", "batch_size=256", "steps_per_round=200", "updates_per_round=10"),
        "ddpg": (*LONG, "hidden_sizes=64,64", "batch_size=256", "steps_per_round=200", "updates_per_round=10"),
    },
}
COMPARED_TIMESTEPS = 3e6
COMPARISONS = {
    f"{task}-{algorithm}": Experiment(
        f"{algorithm} on {task}",
        task,
        range(3),
        COMPARED_TIMESTEPS,
        ("--alg", algorithm, *(("--set", *options) if options else ())),
    )
    for task, settings in COMPARED.items()
    for algorithm, options in settings.items()
}
EXPERIMENTS = {**SCORED, **COMPARISONS}


def score_table(runs: Path) -> str:
    lines = [
        "| algorithm | task | steps | deterministic, each seed | median | with exploration | goal | others | minutes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (algorithm, task), (steps, goal, others) in SCORES.items():
        name = f"{algorithm}-{task}"
        summaries = summaries_of(SCORED[name], runs / name, *MORE_EPISODES.get(task, EPISODES))
        if not summaries:
            continue
        returns, exploring = ([s[key] for s in summaries.values()] for key in ("return", "return_exploring"))
        minutes = np.mean([s["seconds"] for s in summaries.values()]) / 60
        each = ", ".join(f"{value:.0f}" for value in returns)
        lines.append(
            f"| {algorithm} | {task} | {steps:,.0f} | {each} | {np.median(returns):.0f} | {np.median(exploring):.0f} "
            f"| {'' if goal is None else goal} | {others} | {minutes:.1f} |"
        )
    return "\n".join(lines) + "\n"


def is_finished(name: str, runs: Path) -> bool:
    """Whether all seeds of a comparison are."""
    folders = [runs / name / str(seed) for seed in COMPARISONS[name].seeds]
    return all(
        (folder / "progress.csv").exists() and read_progress(folder)["total_timesteps"][-1] >= COMPARED_TIMESTEPS
        for folder in folders
    )


def comparison_table(runs: Path) -> str:
    lines = ["| task | algorithm | return, each seed | in-band share, each seed | minutes |", "|---|---|---|---|---|"]
    for task, settings in COMPARED.items():
        for algorithm in settings:
            name = f"{task}-{algorithm}"
            if is_finished(name, runs):
                summaries = summaries_of(COMPARISONS[name], runs / name, *EPISODES)
                each = ", ".join(f"{s['return']:,.0f}" for s in summaries.values())
                minutes = np.mean([s["seconds"] for s in summaries.values()]) / 60
                shares = ", ".join(f"{s['band_share']:.2f}" for s in summaries.values() if "band_share" in s)
                lines.append(f"| {task} | {algorithm} | {each} | {shares} | {minutes:.1f} |")
    return "\n".join(lines) + "\n"


def draw(runs: Path, task: str, picture: Path) -> None:
    """Return while training, smoothed, against timesteps; every seed. Payoffs would be of different discounts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    finished = [algorithm for algorithm in COMPARED[task] if is_finished(f"{task}-{algorithm}", runs)]
    for colour, algorithm in enumerate(finished):
        for number, folder in enumerate(sorted((runs / f"{task}-{algorithm}").glob("*"))):
            progress = read_progress(folder)
            returns = progress["return_mean"]
            width = max(1, len(returns) // 100)
            smooth = np.convolve(returns, np.full(width, 1 / width), mode="valid")
            steps = progress["total_timesteps"][width - 1 :] / 1e6
            label = algorithm.upper() if number == 0 else None
            axes.plot(steps, smooth, color=f"C{colour}", lw=1, label=label)
    axes.set(title=task, xlabel="timesteps (million), all counted", ylabel="return while training, with exploration")
    axes.set_yscale("symlog", linthresh=100)  # returns are negative and differ by orders of magnitude
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


def report(runs: Path, out: Path) -> None:
    (out / "baselines-scores.md").write_text(score_table(runs))
    (out / "baselines-comparison.md").write_text(comparison_table(runs))
    for task in COMPARED:
        draw(runs, task, out / f"baselines-{task}.png")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/baselines", report))
