"""Searches of options by `tdpo_baselines.tune`, whose winners other scripts train on fresh seeds.

The winners are kept in run_scripts/tuned/SCALE/, for `tdpo_baselines.run --config`.
"""

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPACES = Path(__file__).parent / "sweeps"
TUNED = Path(__file__).parent / "tuned"


@dataclass(frozen=True)
class Search:
    """A search of an algorithm's options on a task."""

    alg: str
    env: str
    num_timesteps: float  # of an evaluation
    num_evaluations: int
    library: str = "optuna"

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.alg}-{self.env}-{self.library}"

    def winner(self, scale: str) -> Path:
        """Return the file with the options of the winner."""
        return TUNED / scale / f"{self.name}.json"

    def options(self, scale: str) -> dict[str, Any]:
        """Return the arguments of a run with the winner's options."""
        return {"alg": self.alg, "env": self.env, "config": self.winner(scale)}

    def arguments(self, scale: str) -> list[str]:
        """Return the arguments of `tdpo_baselines.tune`: rounds of ten settings, each with one of three seeds."""
        space = SPACES / f"{self.alg}_leg_100hz.json"
        limit = "num_iterations=2" if scale == "smoke" else f"num_timesteps={self.num_timesteps:.0f}"
        num_evaluations = 2 if scale == "smoke" else self.num_evaluations
        how = ["--variant", "A", "--batch", str(min(10, num_evaluations)), "--evaluations", str(num_evaluations)]
        what = ["--env", self.env, "--library", self.library, "--set", limit]
        return [str(space), *what, *how, "--fresh_seeds", "1"]


def run_searches(searches: list[Search], parsed: argparse.Namespace) -> int:
    """Run what is missing of the searches and keep the winners; return the largest exit code."""
    from tdpo_baselines import tune

    codes = [0]
    for search in searches:
        folder, kept = parsed.runs / "searches" / search.name, search.winner(parsed.scale)
        print(f"search {search.name}", flush=True)
        codes.append(tune.main([*search.arguments(parsed.scale), "--jobs", str(parsed.jobs), "--out", str(folder)]))
        if (folder / "best.json").exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            options = json.loads((folder / "best.json").read_text())
            options.pop("num_timesteps", None)  # of the search; a run has its own
            kept.write_text(json.dumps(options, indent=1) + "\n")
            shutil.copy(folder / "history.csv", kept.with_suffix(".csv"))
    return max(codes)
