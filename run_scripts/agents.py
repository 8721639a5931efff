"""Trained agents of the package: train, evaluate and write them, each with its card.

python run_scripts/agents.py pendulum-nlr cart-pole --runs runs/agents     # stop and start at will

An agent is tdpo_baselines/agents/NAME.npz, in the layout of `export --format npz`; NAME.json has the command, the seed,
the steps and the scores.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tdpo_baselines.evaluate import Trained, evaluate, load
from tdpo_baselines.evaluating.trained import AGENTS
from tdpo_baselines.export import export
from tdpo_baselines.options.budget import format_count
from tdpo_baselines.plot import read_progress
from tdpo_baselines.storage.run_folder import RunFolder

NUM_EPISODES, EVALUATION_SEED = 100, 1  # no seed that anything was chosen by


@dataclass(frozen=True)
class Agent:
    """How an agent is trained. Its name is that of its environment."""

    num_timesteps: float
    seed: int = 0
    arguments: tuple[str, ...] = ()
    use_best: bool = False  # those of best/ instead of the last ones

    def command(self, name: str) -> list[str]:
        """Return the arguments of `tdpo_baselines.run`."""
        budget = ["--num_timesteps", format_count(int(self.num_timesteps)), "--seed", str(self.seed)]
        return ["--env", name, *budget, *self.arguments]


SOLVED_NLR = [f"pendulum-nlr-{number}" for number in (3, 4, 6, 7, 9)]
SMALL = ("birotor", "cart-pole", "chain", "dead-time", "delayed-spring", "double-well", "step-response", "two-mass")
RECIPES = {
    "leg": Agent(1.5e7, seed=27),
    "leg-stochastic": Agent(2e7, arguments=("--alg", "cma")),
    "leg-100hz": Agent(1e6, arguments=("--alg", "cma")),
    "pendulum-nlr": Agent(1e7),
    **dict.fromkeys(SOLVED_NLR, Agent(1e7)),
    "pendulum-nlr-2": Agent(6e7),
    "pendulum-nlr-5": Agent(1e8, use_best=True),
    "pendulum-nlr-8": Agent(3e7),
    "pendulum-20hz": Agent(5e6),
    "pendulum-100hz": Agent(2e7),
    "pendulum-500hz": Agent(1e8),
    **dict.fromkeys(SMALL, Agent(1e6)),
}


def train(name: str, agent: Agent, run: Path) -> None:
    """Train an agent, or continue to; stop the script if that fails."""
    command = [sys.executable, "-m", "tdpo_baselines.run", *agent.command(name)]
    code = subprocess.run([*command, "--log_dir", str(run), "--resume", "--quiet"]).returncode
    if code:
        raise SystemExit(code)


def make_card(name: str, agent: Agent, trained: Trained, run: Path) -> dict:
    """Return where an agent comes from and what it achieves."""
    evaluation = evaluate(trained, num_episodes=NUM_EPISODES, seed=EVALUATION_SEED)
    summary = evaluation.summary()
    return {
        "environment": name,
        "algorithm": trained.config.algorithm,
        "seed": agent.seed,
        "command": "python -m tdpo_baselines.run " + " ".join(agent.command(name)),
        "parameters": "best" if agent.use_best else "last",
        "num_timesteps": int(read_progress(run)["total_timesteps"][-1]),
        "iteration": trained.iteration,
        "num_parameters": trained.theta.size,
        "parameters_sha256": trained.sha256,
        "evaluation": {
            "num_episodes": len(evaluation.results["return"]),
            "seed": EVALUATION_SEED,
            "return": summary["return"],
            "payoff": summary["payoff"]["mean"],
            "verdict": None if evaluation.verdict is None else str(evaluation.verdict),
        },
        "made_with": RunFolder(run).read_config().made_with,
    }


def write(name: str, trained: Trained, card: dict, out: Path) -> None:
    """Write an agent and its card."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".agent-") as folder:
        export(trained, Path(folder) / "npz", format="npz")
        (Path(folder) / "npz" / "policy.npz").replace(out / f"{name}.npz")
    (out / f"{name}.json").write_text(json.dumps(card, indent=2) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=RECIPES, metavar="NAME", help=f"one of {', '.join(RECIPES)}")
    parser.add_argument("--runs", type=Path, default=Path("runs/agents"), help="folder of the runs (%(default)s)")
    parser.add_argument("--out", type=Path, default=AGENTS, help="folder of the agents (default: the package's)")
    parsed = parser.parse_args(arguments)
    for name in parsed.names:
        agent, run = RECIPES[name], parsed.runs / name
        train(name, agent, run)
        trained = load(run, use_best=agent.use_best)
        card = make_card(name, agent, trained, run)
        write(name, trained, card, parsed.out)
        print(f"{name}: return {card['evaluation']['return']['mean']:.5g} -> {parsed.out / name}.npz", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
