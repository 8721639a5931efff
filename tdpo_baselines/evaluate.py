"""Evaluate: `python -m tdpo_baselines.evaluate DIR` rolls out a trained policy without exploration.

For algorithms that act with noise the return with that noise, from the same starts, is shown beside it."""

import argparse
import json
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .common.parallel.checks import require_memory
from .common.parallel.seeding import generator
from .common.parallel.tensorflow_setup import prepare_environment
from .harness import checkpoint, registry
from .harness.config import parse_number
from .harness.run_folder import RunConfig, RunFolder


@dataclass
class Trained:
    """A policy as it was saved, with all that is needed to run it."""

    config: RunConfig
    theta: np.ndarray
    iteration: int
    state: dict[str, Any]  # all of the checkpoint; one of `best` holds little more than theta


def load(path: str | Path, *, use_best: bool = False) -> Trained:
    """From a run folder (its newest checkpoint, or its best) or from a single checkpoint's folder."""
    path = Path(path).expanduser()
    if checkpoint.is_checkpoint(path):
        if use_best:
            raise ValueError(
                f"--best chooses among a run's checkpoints, and {path} is a single one; pass the run's folder"
            )
        state = checkpoint.load(path)
    else:
        folder = RunFolder(path)
        folder.read_config()
        newest = checkpoint.load_newest(folder.best if use_best else folder.checkpoints)
        if newest is None:
            what = "best parameters yet: no episode has ended" if use_best else "checkpoint yet"
            raise ValueError(f"{path} has no {what}")
        state = newest
    return Trained(RunConfig.from_checkpoint(state), state["theta"], int(state["iteration"]), state)


@dataclass
class Evaluation:
    """Per-episode results [E] by name, and the rollouts from `start_states` [E, S] that they were read off."""

    results: dict[str, np.ndarray]
    start_states: np.ndarray
    rollouts: Any
    environment: Any

    def summary(self) -> dict[str, dict[str, float]]:
        names = ("mean", "std", "min", "max")
        return {key: {s: float(getattr(values, s)()) for s in names} for key, values in self.results.items()}


def evaluate(
    trained: Trained, *, num_episodes: int, seed: int, start_values: dict[str, float], trusted: str = ""
) -> Evaluation:
    """Episodes from drawn starts, of which `start_values` replace some quantities.

    An environment in a module of its own is imported only if it is `trusted`: the run may be someone else's.
    """
    config = trained.config
    module = registry.module_of(config.environment)
    if module and config.environment != trusted:
        raise ValueError(
            f"the run's environment is {config.environment}: the module {module} would be imported, which executes it; "
            f"if you trust it, pass --env {config.environment}"
        )
    algorithm = registry.algorithm(config.algorithm)
    options = algorithm.Config.from_values(config.options)
    environment = registry.make_environment(
        config.environment, registry.resolve_options(config.environment, config.env_options)
    )
    roller = registry.make_roller(environment, options)
    if trained.theta.shape != (roller.num_parameters,):
        raise ValueError(
            f"the checkpoint has {trained.theta.size} parameters, its config asks for {roller.num_parameters}"
        )
    floats_per_step = environment.observation_size + environment.action_size + 1
    require_memory(
        "--episodes", 8 * num_episodes * (2 * environment.horizon * floats_per_step + 2 * environment.state_size)
    )
    starts = generator(seed, "evaluation").random((num_episodes, environment.start_size))
    states = roller.start_states(starts)
    for state in states if start_values else ():
        environment.place(state, start_values)
    rollouts = roller.rollouts(trained.theta, states)
    scale = options.gamma ** np.arange(environment.horizon)
    results = {
        "return": rollouts.rewards.sum(axis=1),
        "discounted_return": rollouts.returns,
        "payoff": rollouts.returns / scale.sum(),
    }
    shape = (num_episodes, environment.horizon, environment.action_size)
    offsets = algorithm.exploration(options, environment, trained.state, generator(seed, "actions"), shape)
    if offsets is not None:
        exploring = roller.rollouts(trained.theta, states, offsets=offsets, num_recorded=environment.horizon)
        results["return_exploring"] = exploring.rewards.sum(axis=1)
    if environment.measure is not None:
        measured = [environment.measure(environment.params, state) for state in rollouts.final_states]
        results |= {name: np.array([m[name] for m in measured]) for name in measured[0]}
    return Evaluation(results, states, rollouts, environment)


def draw(evaluation: Evaluation):
    """The environment's own figure of the episode with the median return, or a plain one."""
    environment, rollouts = evaluation.environment, evaluation.rollouts
    returns = evaluation.results["return"]
    median = int(np.argsort(returns)[len(returns) // 2])
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
    config, num_episodes = trained.config, len(evaluation.results["return"])
    lines = [
        f"{config.algorithm} on {config.environment}, seed {config.seed}, iteration {trained.iteration}: "
        f"{num_episodes} episode(s) without exploration"
        + (", and again with it" if "return_exploring" in evaluation.results else ""),
        f"{'':18}{'mean':>12}{'std':>12}{'min':>12}{'max':>12}",
    ]
    for name, statistics in evaluation.summary().items():
        lines.append(f"{name:18}" + "".join(f"{value:12.5g}" for value in statistics.values()))
    return "\n".join(lines)


def as_json(trained: Trained, evaluation: Evaluation) -> str:
    config = trained.config
    head = {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
    episodes = {name: [finite(value) for value in values.tolist()] for name, values in evaluation.results.items()}
    summary = {name: {s: finite(v) for s, v in of.items()} for name, of in evaluation.summary().items()}
    return json.dumps({**head, "iteration": trained.iteration, "summary": summary, "episodes": episodes})


def finite(value: float) -> float | None:
    """JSON has no word for what is not finite."""
    return value if math.isfinite(value) else None


def parse_start_values(text: str) -> dict[str, float]:
    """ "theta_hip=-0.8,height=0.5" as names and numbers."""
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
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.evaluate", description=__doc__, allow_abbrev=False)
    parser.add_argument("path", metavar="DIR", help="a run's folder, or one checkpoint's")
    parser.add_argument(
        "--env", default="", metavar="NAME", help="the run's environment, where it is module:Id: import that module"
    )
    parser.add_argument("--episodes", type=int, default=20, metavar="N", help="default: 20")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the starts (default: 0)")
    parser.add_argument(
        "--best", action="store_true", help="the parameters with the best training payoff, not the last"
    )
    parser.add_argument(
        "--reset",
        metavar="NAME=VALUE,...",
        type=parse_start_values,
        default={},
        help="start from these values (leg: theta_hip, theta_knee in rad, height in m; pendulum: angle, rate)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with every episode, instead of a table")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the episode with the median return")
    parsed = parser.parse_args(arguments)
    if parsed.episodes < 1 or parsed.seed < 0:
        parser.error("--episodes must be at least 1 and --seed at least 0")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    prepare_environment()
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        trained = load(parsed.path, use_best=parsed.best)
        evaluation = evaluate(
            trained, num_episodes=parsed.episodes, seed=parsed.seed, start_values=parsed.reset, trusted=parsed.env
        )
        print(as_json(trained, evaluation) if parsed.json else table(trained, evaluation), flush=True)
        if parsed.plot:
            draw(evaluation).savefig(parsed.plot, dpi=120)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
