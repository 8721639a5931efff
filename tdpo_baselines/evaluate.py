"""Evaluate: `python -m tdpo_baselines.evaluate DIR` rolls out a trained policy without exploration.

For algorithms that act with noise, it also shows the return with that noise, from the same starts.
"""

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
    """A checkpoint with the config of its run."""

    config: RunConfig
    state: dict[str, Any]  # the whole checkpoint; one of `best` holds little more than the policy

    @property
    def theta(self) -> np.ndarray:
        """The parameters [P] of the deterministic policy."""
        return self.state["policy"]["theta"]

    @property
    def iteration(self) -> int:
        """The number of updates before it was saved."""
        return int(self.state["progress"]["iteration"])


def load(path: str | Path, *, use_best: bool = False) -> Trained:
    """Load a run folder's newest or best checkpoint, or a single checkpoint's folder."""
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
    return Trained(RunConfig.from_checkpoint(state), state)


@dataclass
class Evaluation:
    """Per-episode results [E] by name, and the rollouts from `start_states` [E, S] that gave them."""

    results: dict[str, np.ndarray]
    start_states: np.ndarray
    rollouts: Any
    environment: Any

    def summary(self) -> dict[str, dict[str, float]]:
        """Return mean, standard deviation, minimum and maximum of each result."""
        names = ("mean", "std", "min", "max")
        return {key: {s: float(getattr(values, s)()) for s in names} for key, values in self.results.items()}


def evaluate(
    trained: Trained, *, num_episodes: int, seed: int, start_values: dict[str, float], trusted: str = ""
) -> Evaluation:
    """Run episodes from random starts, in which `start_values` replace some quantities.

    A run may come from someone else, so the module of its environment is imported only if it is `trusted`.
    """
    config = trained.config
    algorithm, environment = registry.algorithm(config.algorithm), make_environment(config, trusted)
    options = algorithm.Config.from_values(config.options).fit(environment)
    roller = registry.make_roller(environment, options)
    if trained.theta.shape != (roller.num_parameters,):
        raise ValueError(
            f"the checkpoint has {trained.theta.size} parameters, its config asks for {roller.num_parameters}"
        )
    states = make_starts(environment, roller, num_episodes, seed, start_values)
    rollouts = roller.rollouts(trained.theta, states)
    scale = options.gamma ** np.arange(environment.horizon)
    results = {
        "return": rollouts.rewards.sum(axis=1),
        "discounted_return": rollouts.discounted_returns,
        "payoff": rollouts.discounted_returns / scale.sum(),
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


def make_environment(config: RunConfig, trusted: str) -> Any:
    """Make the environment of a run; raise ValueError if that would import a module that is not trusted."""
    name = config.environment
    module = registry.module_of(name)
    if module and name != trusted:
        raise ValueError(
            f"the run's environment is {name}, which would import and so execute the module {module}; "
            f"if you trust it, pass --env {name}"
        )
    return registry.make_environment(name, registry.resolve_options(name, config.env_options))


def make_starts(environment, roller, num_episodes: int, seed: int, start_values: dict[str, float]) -> np.ndarray:
    """Draw the start states [E, S]; raise ValueError if the episodes would not fit into memory."""
    floats_per_step = environment.observation_size + environment.action_size + 1
    floats = num_episodes * (2 * environment.horizon * floats_per_step + 2 * environment.state_size)
    require_memory("--episodes", 8 * floats)
    states = roller.start_states(generator(seed, "evaluation").random((num_episodes, environment.start_size)))
    for state in states if start_values else ():
        environment.place(state, start_values)
    return states


def draw(evaluation: Evaluation):
    """Return the environment's own figure of the episode with the median return, or a plain one."""
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
    """Return the results as a table."""
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
    """Return the results of every episode as JSON."""
    config = trained.config
    head = {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
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
    add("path", metavar="DIR", help="folder of a run or of one checkpoint")
    add("--env", default="", metavar="NAME", help="the run's environment, to allow importing its module (module:Id)")
    add("--episodes", type=int, default=20, metavar="N", help="number of episodes (default: 20)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the starts (default: 0)")
    add("--best", action="store_true", help="evaluate the parameters with the best training payoff, not the last ones")
    add("--reset", metavar="NAME=VALUE,...", type=parse_start_values, default={}, help="start from these values "
        "(leg: theta_hip, theta_knee in rad, height in m; pendulum: angle, rate)")  # fmt: skip
    add("--json", action="store_true", help="print JSON, with every episode, instead of a table")
    add("--plot", metavar="FILE.png", help="draw the episode with the median return")
    parsed = parser.parse_args(arguments)
    if parsed.episodes < 1 or parsed.seed < 0:
        parser.error("--episodes must be at least 1 and --seed at least 0")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
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
            print(f"-> {parsed.plot}", file=sys.stderr if parsed.json else sys.stdout)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
