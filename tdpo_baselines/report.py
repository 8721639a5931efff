"""Write a report: `python -m tdpo_baselines.report PATH... --out report.html`, one file that opens anywhere.

It holds the configuration, learning curves to zoom, the evaluation, and a replay of the episode with the median return.
A PATH is a run folder, or a single policy as for `evaluate`, which has no curves.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .common.parallel.tensorflow_setup import prepare_environment
from .evaluate import as_values, finite
from .evaluating.trained import PRETRAINED, Evaluation, evaluate, load
from .plot import read_progress
from .storage.run_folder import RunFolder
from .viewing.episode import Episode, median_episode
from .viewing.mujoco_frames import set_opengl_aside
from .viewing.page import make_page

MAX_POINTS = 2000  # of a curve, and of a replay


def collect(path: str, *, num_episodes: int, seed: int, use_best: bool) -> dict[str, Any]:
    """Return what the page shows of a run or a policy; `problem` says why a run was not evaluated."""
    folder = RunFolder(path)
    trained = None if folder.has_run() else load(path, use_best=use_best)
    config = trained.config if trained else folder.read_config()
    run: dict[str, Any] = {
        "name": str(path),
        "label": f"{config.algorithm} on {config.environment}, seed {config.seed}",
        "options": {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
        | config.values()
        | {f"made with {name}": value for name, value in config.made_with.items()},
        "curves": {} if trained else {name: thin(values) for name, values in read_progress(path).items()},
        "problem": "",
        "verdict": "",
        "evaluation": None,
        "replay": None,
    }
    try:
        trained = trained or load(path, use_best=use_best)
        evaluation = evaluate(trained, num_episodes=num_episodes, seed=seed)
        run["evaluation"] = as_values(trained, evaluation)
        run["verdict"] = str(evaluation.verdict or "")
        run["replay"] = make_replay(evaluation) if evaluation.environment.scene else None
    except ValueError as error:
        run["problem"] = f"not evaluated: {error}"
    return run


def thin(values: np.ndarray) -> list[float | None]:
    """Return at most MAX_POINTS of the values, the last one included."""
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_POINTS)).round().astype(int))
    return round_all(values[chosen])


def round_all(values: Iterable[float]) -> list[float | None]:
    """Return the numbers with 6 digits; None for those that are not finite."""
    return [finite(float(f"{value:.6g}")) for value in values]


def make_replay(evaluation: Evaluation) -> dict[str, Any]:
    """Return the episode with the median return as numbers for the page's drawing."""
    index = median_episode(evaluation)
    episode = Episode(evaluation, index)
    moments = episode.at(np.linspace(0, episode.duration, min(episode.num_steps, MAX_POINTS) + 1))
    scene, returns = moments.scene, evaluation.results["return"]
    return {
        "text": f"Episode {index + 1} of {len(returns)}, return {returns[index]:.6g}",
        "seconds": round_all(moments.seconds),
        "chain": np.nan_to_num(np.round(scene.chain, 4)).tolist(),
        "marks": {name: line.tolist() for name, line in scene.marks.items()},
        "view": round_all(scene.view),
        "signals": {name: round_all(values) for name, values in moments.signals.items()},
    }


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.report", description=__doc__, allow_abbrev=False)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="run folders and policies")
    parser.add_argument("--pretrained", nargs="+", default=[], metavar="NAME", help="policies of the package")
    parser.add_argument("--out", default="report.html", metavar="FILE", help="file to write (default: report.html)")
    parser.add_argument("--episodes", type=int, default=20, metavar="N", help="number of episodes (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the starts (default: 0)")
    parser.add_argument(
        "--best", action="store_true", help="evaluate the best parameters of the training, not the last"
    )
    parsed = parser.parse_args(arguments)
    parsed.paths += [PRETRAINED + name for name in parsed.pretrained]
    if not parsed.paths:
        parser.error("PATH is missing: pass the folder of a run, or --pretrained NAME")
    if parsed.episodes < 1 or parsed.seed < 0:
        parser.error("--episodes must be at least 1 and --seed at least 0")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()
    set_opengl_aside()
    parsed = parse(arguments)
    try:
        keywords = {"num_episodes": parsed.episodes, "seed": parsed.seed, "use_best": parsed.best}
        runs = [collect(path, **keywords) for path in parsed.paths]
        page = make_page(f"Report of {', '.join(run['name'] for run in runs)}", runs)
        Path(parsed.out).write_text(page, encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for run in runs:
        if run["problem"]:
            print(f"warning: {run['name']} was {run['problem']}", file=sys.stderr)
    print(f"{len(runs)} run(s) -> {parsed.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
