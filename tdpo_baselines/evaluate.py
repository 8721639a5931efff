"""Evaluate: `python -m tdpo_baselines.evaluate DIR` rolls out a trained policy without exploration.

For algorithms that act with noise, it also shows the return with that noise, from the same starts.
"""

import argparse
import json
import math
import os
import sys

from .common.parallel.tensorflow_setup import prepare_environment
from .harness.config import parse_number
from .harness.trained import Evaluation, Trained, evaluate, load
from .viewing.episode import median_episode
from .viewing.film import check_file, make_film
from .viewing.mujoco_frames import set_opengl_aside


def draw(evaluation: Evaluation):
    """Return the environment's own figure of the episode with the median return, or a plain one."""
    environment, rollouts = evaluation.environment, evaluation.rollouts
    median = median_episode(evaluation)
    actions = rollouts.actions[median, : rollouts.lengths[median]]
    if environment.draw is not None:
        return environment.draw(environment.params, environment.replay(evaluation.start_states[median], actions))
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for panel, name in zip(panels, ("observations", "actions", "rewards")):
        panel.plot(getattr(rollouts, name)[median, : rollouts.lengths[median]])
        panel.set_ylabel(name)
    panels[-1].set_xlabel("step")
    return figure


def table(trained: Trained, evaluation: Evaluation) -> str:
    """Return the results as a table."""
    config, num_episodes = trained.config, len(evaluation.results["return"])
    lines = [
        f"{config.algorithm} on {config.environment}, seed {config.seed}, iteration {trained.iteration}"
        + ("" if trained.environment_name == config.environment else f", in {trained.environment_name}")
        + f": {num_episodes} episode(s) without exploration"
        + (", and again with it" if "return_exploring" in evaluation.results else ""),
        f"{'':18}{'mean':>12}{'std':>12}{'min':>12}{'max':>12}",
    ]
    for name, statistics in evaluation.summary().items():
        lines.append(f"{name:18}" + "".join(f"{value:12.5g}" for value in statistics.values()))
    return "\n".join(lines)


def as_json(trained: Trained, evaluation: Evaluation) -> str:
    """Return the results of every episode as JSON."""
    config = trained.config
    head = {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
    head["evaluated_in"] = trained.environment_name
    episodes = {name: [finite(value) for value in values.tolist()] for name, values in evaluation.results.items()}
    summary = {name: {s: finite(v) for s, v in of.items()} for name, of in evaluation.summary().items()}
    return json.dumps({**head, "iteration": trained.iteration, "summary": summary, "episodes": episodes})


def finite(value: float) -> float | None:
    """Return None for a number that is not finite, for which JSON has no word."""
    return value if math.isfinite(value) else None


def parse_start_values(text: str) -> dict[str, float]:
    """Parse names and numbers such as "theta_hip=-0.8,height=0.5"."""
    values: dict[str, float] = {}
    for part in text.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        if not (name and sign) or name in values:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE,... with each name once, got {text!r}")
        try:
            values[name] = parse_number(name, value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return values


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.evaluate", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("path", metavar="DIR", help="folder of a run, of its best or newest checkpoints, or of one checkpoint")
    add("--env", metavar="NAME", help="evaluate in another environment, with its default options; "
        "or allow importing the module of the run's own (module:Id)")  # fmt: skip
    add("--episodes", type=int, default=20, metavar="N", help="number of episodes (default: 20)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the starts (default: 0)")
    add("--best", action="store_true", help="evaluate the parameters with the best training payoff, not the last ones")
    add("--reset", metavar="NAME=VALUE,...", type=parse_start_values, default={}, help="start from these values "
        "(leg: theta_hip, theta_knee in rad, height in m; pendulum: angle, rate)")  # fmt: skip
    add("--json", action="store_true", help="print JSON, with every episode, instead of a table")
    add("--plot", metavar="FILE.png", help="draw the episode with the median return")
    add("--video", metavar="FILE", help="film that episode: .mp4, .gif, or .png for a sheet of frames")
    add("--slow", type=float, default=1.0, metavar="FACTOR", help="slow motion, such as 10 (default: 1)")
    parsed = parser.parse_args(arguments)
    if parsed.episodes < 1 or parsed.seed < 0:
        parser.error("--episodes must be at least 1 and --seed at least 0")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    prepare_environment()
    set_opengl_aside()
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        if parsed.video:
            check_file(parsed.video, parsed.slow)
        trained = load(parsed.path, use_best=parsed.best, env=parsed.env)
        evaluation = evaluate(trained, num_episodes=parsed.episodes, seed=parsed.seed, start_values=parsed.reset)
        print(as_json(trained, evaluation) if parsed.json else table(trained, evaluation), flush=True)
        if parsed.plot:
            draw(evaluation).savefig(parsed.plot, dpi=120)
            print(f"-> {parsed.plot}", file=sys.stderr if parsed.json else sys.stdout)
        if parsed.video:
            how = make_film(evaluation, parsed.video, parsed.slow)
            print(f"-> {parsed.video} ({how})", file=sys.stderr if parsed.json else sys.stdout)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
