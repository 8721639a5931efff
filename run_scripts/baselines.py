"""TRPO, PPO1, DDPG and TD3 beside published scores, and all five algorithms on the paper's own problems.

python run_scripts/baselines.py train --runs runs/baselines --jobs 2     # stop and start at will
python run_scripts/baselines.py report --runs runs/baselines --out docs/results
"""

import sys
from pathlib import Path

import numpy as np
from experiments import Experiment, Experiments, main, make_axes, make_table, mean_minutes, summarise_seeds

from tdpo_baselines.plot import read_progress

EPISODES = ("--episodes", "50")
MORE_EPISODES = {"Pendulum-v1": ("--episodes", "200")}  # returns vary more from start to start than elsewhere
SCORES = {  # algorithm, task: steps, score to reach, published scores (docs/results/baselines.md has their sources)
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
COMPARISONS = {
    f"{task}-{algorithm}": Experiment(
        f"{algorithm} on {task}",
        task,
        range(3),
        3e6,
        ("--alg", algorithm, *(("--set", *options) if options else ())),
    )
    for task, settings in COMPARED.items()
    for algorithm, options in settings.items()
}
EXPERIMENTS = {**SCORED, **COMPARISONS}
SCORE_HEADER = (
    "algorithm | task | steps | deterministic, each seed | median | with exploration | goal | others | minutes"
)
COMPARISON_HEADER = "task | algorithm | return, each seed | in-band share, each seed | minutes"


def score_table(experiments: Experiments, runs: Path) -> str:
    """Return a row for each algorithm and task that was trained."""
    rows = []
    for (algorithm, task), (_, goal, others) in SCORES.items():
        experiment, folder = experiments[f"{algorithm}-{task}"], runs / f"{algorithm}-{task}"
        episodes = MORE_EPISODES.get(task, EPISODES)
        summaries = summarise_seeds(experiment, folder, *episodes)
        if not summaries:
            continue
        noisy = summarise_seeds(experiment, folder, *episodes, "--stochastic")
        returns, exploring = ([s["return"] for s in found.values()] for found in (summaries, noisy))
        each = ", ".join(f"{value:.0f}" for value in returns)
        rows.append(
            f"{algorithm} | {task} | {experiment.num_timesteps:,.0f} | {each} | {np.median(returns):.0f} | "
            f"{np.median(exploring):.0f} | {'' if goal is None else goal} | {others} | "
            f"{mean_minutes(summaries.values()):.1f}"
        )
    return make_table(SCORE_HEADER, rows)


def finished_algorithms(experiments: Experiments, runs: Path, task: str) -> list[str]:
    """Return the algorithms of a comparison of which all seeds are finished."""
    return [name for name in COMPARED[task] if experiments[f"{task}-{name}"].is_finished(runs / f"{task}-{name}")]


def comparison_table(experiments: Experiments, runs: Path) -> str:
    """Return a row for each task and algorithm that is finished."""
    rows = []
    for task in COMPARED:
        for algorithm in finished_algorithms(experiments, runs, task):
            name = f"{task}-{algorithm}"
            summaries = summarise_seeds(experiments[name], runs / name, *EPISODES)
            each = ", ".join(f"{s['return']:,.0f}" for s in summaries.values())
            shares = ", ".join(f"{s['band_share']:.2f}" for s in summaries.values() if "band_share" in s)
            rows.append(f"{task} | {algorithm} | {each} | {shares} | {mean_minutes(summaries.values()):.1f}")
    return make_table(COMPARISON_HEADER, rows)


def draw(experiments: Experiments, runs: Path, task: str, picture: Path) -> None:
    """Draw the smoothed return while training against timesteps, for every seed.

    Payoffs would not be comparable: the algorithms discount differently.
    """
    figure, axes = make_axes(figsize=(8, 5))
    for colour, algorithm in enumerate(finished_algorithms(experiments, runs, task)):
        name = f"{task}-{algorithm}"
        for number, seed in enumerate(experiments[name].seeds):
            progress = read_progress(runs / name / str(seed))
            returns = progress["return_mean"]
            width = max(1, len(returns) // 100)
            smooth = np.convolve(returns, np.full(width, 1 / width), mode="valid")
            steps = progress["total_timesteps"][width - 1 :] / 1e6
            label = algorithm.upper() if number == 0 else None
            axes.plot(steps, smooth, color=f"C{colour}", lw=1, label=label)
    axes.set(title=task, xlabel="timesteps (million), all counted", ylabel="return while training, with exploration")
    axes.set_yscale("symlog", linthresh=100)  # returns are negative and differ by orders of magnitude
    axes.legend()
    figure.savefig(picture, dpi=110)


def report(experiments: Experiments, runs: Path, out: Path) -> None:
    """Write both tables, and a picture of each comparison that was trained."""
    (out / "baselines-scores.md").write_text(score_table(experiments, runs))
    (out / "baselines-comparison.md").write_text(comparison_table(experiments, runs))
    for task in COMPARED:
        if finished_algorithms(experiments, runs, task):
            draw(experiments, runs, task, out / f"baselines-{task}.png")


if __name__ == "__main__":
    sys.exit(main(__doc__, EXPERIMENTS, "runs/baselines", report))
