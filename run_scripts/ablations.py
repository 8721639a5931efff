"""Measure what every part of TDPO's default variant is worth: train the same runs with one part taken out at a time.

The parts are constants and methods of tdpo_baselines.tdpo, not options. They are replaced in this process, so runs are
trained one at a time and cannot be submitted to a cluster.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from run_scripts.results import (
    NUM_SMOKE_EPISODES,
    Finished,
    Result,
    Setting,
    choose,
    main,
    make_sweep,
    number,
    score,
    select,
    write_table,
)
from tdpo_baselines.common.learners.settings import action_range
from tdpo_baselines.common.networks import mlp

NUM_SEEDS = (3, 10)
ALONG_THE_WAY = {"dead-time": 1e6, "cart-pole": 1e6, "birotor": 1e6, "pendulum-20hz": 4e6}
AT_THE_END = {"double-well": 1e6, "pendulum-nlr": 1e7}
PERTURBATION, BRANCH, RADIUS = 0.02, 1 / 30, 0.02  # fixed ones: the middle of what a search draws, and of its steps


def network_without_linear_part(config: Any, environment: Any) -> mlp.Style:
    """Return a plain network with outputs in half ranges of the action."""
    centre, scale = (tuple(part.tolist()) for part in action_range(environment))
    return mlp.Style(centre=centre, scale=scale, has_linear_part=False)


def take_step(learner: Any, starts: Any, iteration: int) -> Any:
    """Take the last step at a fixed radius, whatever it gains."""
    from tdpo_baselines.tdpo.line_search import LineSearch

    learner.theta = learner.theta + RADIUS * (learner.trial_theta - learner.theta)
    return LineSearch(RADIUS)


SHARED = {
    "as shipped": {},
    "no linear part": {"config.Config.network_style": network_without_linear_part},
    "perturbations of one step": {"search.HELD_FRACTION": 0.0, "judged.HELD_FRACTION": 0.0},
    "no memory": {"search.MEMORY": 0.0, "judged.MEMORY": 0.0},
}
CHANGES_ALONG_THE_WAY: dict[str, Mapping[str, Any]] = {
    **SHARED,
    "fixed perturbation": {"search.PERTURBATIONS": (PERTURBATION, PERTURBATION)},
    "fixed branch length": {"search.BRANCHES": (BRANCH, BRANCH), "search.BRANCH_STEPS": 1},
    "one radius, or no step": {"search.RADII": (RADIUS, RADIUS), "search.NUM_RADII": 1},
    "fixed radius, no search": {"search.SearchLearner._search_line": take_step},
}
CHANGES_AT_THE_END: dict[str, Mapping[str, Any]] = {
    **SHARED,
    "fixed radius": {"judged.GROW": 1.0, "judged.SHRINK": 1.0, "judged.SHRINK_BACK": 1.0},
    "no tolerance": {"judged.TOLERANT_UPDATES": 1e-6},
    "no rivals": {"rivals.COLLAPSED": 0.0},
}


@dataclass(frozen=True)
class Ablation(Setting):
    """A setting of TDPO with parts replaced."""

    changes: Mapping[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """Return the command that trains it."""
        return f"python -m run_scripts.ablations --only '{self.name}'"


def settings(scale: str) -> list[Setting]:
    """Return TDPO with each change, on tasks that pay along the way and on one that pays at the end."""
    return [
        Ablation(task, label, {"alg": "tdpo", "env": task, "preset": "none", "num_timesteps": int(steps)},
                 choose(scale, *NUM_SEEDS), changes)
        for tasks, all_changes in ((ALONG_THE_WAY, CHANGES_ALONG_THE_WAY), (AT_THE_END, CHANGES_AT_THE_END))
        for task, steps in tasks.items()
        for label, changes in all_changes.items()
    ]  # fmt: skip


@contextlib.contextmanager
def replaced(changes: Mapping[str, Any]) -> Iterator[None]:
    """Replace values of tdpo_baselines.tdpo by their dotted names, for a while."""
    from importlib import import_module

    with contextlib.ExitStack() as stack:
        for name, value in changes.items():
            module, *classes, attribute = name.split(".")
            owner = import_module(f"tdpo_baselines.tdpo.{module}")
            for name_of_class in classes:
                owner = getattr(owner, name_of_class)
            stack.callback(setattr, owner, attribute, getattr(owner, attribute))
            setattr(owner, attribute, value)
        yield


def prepare(parsed: argparse.Namespace) -> int:
    """Train and evaluate every ablation that --only names with its parts replaced; return the exit code."""
    from tdpo_baselines.sweeping.sweep import train

    if parsed.submit or parsed.jobs > 1:
        raise ValueError("ablations replace parts of TDPO in this process: leave --submit and --jobs out")
    for ablation in select(RESULT.at_scale(parsed.scale, parsed.seeds), parsed.only):
        with replaced(ablation.changes):
            sweep = make_sweep(RESULT, [ablation], parsed.runs)
            code = train(sweep, 1)
            if code:
                return code
            for run in sweep.runs:
                score(run.folder.path, NUM_SMOKE_EPISODES if parsed.scale == "smoke" else RESULT.num_episodes)
    return 0


def extra(finished: list[Finished], out: Path) -> None:
    """Draw every seed, and write a table for each kind of task: a row for each change, a column for each task."""
    draw(finished).savefig(out / "ablations.png", dpi=110)
    found = {(f.setting.panel, f.setting.label): f.returns() for f in finished}
    for name, tasks, changes in (
        ("along-the-way", ALONG_THE_WAY, CHANGES_ALONG_THE_WAY),
        ("at-the-end", AT_THE_END, CHANGES_AT_THE_END),
    ):
        rows = [[label, *(cell(found.get((task, label), [])) for task in tasks)] for label in changes]
        write_table(out / f"ablations-{name}.md", ["TDPO", *tasks], rows)


def draw(finished: list[Finished]):
    """Return a figure of the returns of all seeds, a panel for each task and a line for each change."""
    from matplotlib.figure import Figure

    from tdpo_baselines.plot import algorithm_colour

    tasks = list(dict.fromkeys(f.setting.panel for f in finished))
    num_columns = min(3, len(tasks))
    num_rows = -(-len(tasks) // num_columns)
    figure = Figure(figsize=(1.5 + 4 * num_columns, 0.5 + 2.8 * num_rows), layout="constrained")
    for task, axes in zip(tasks, figure.subplots(num_rows, num_columns, squeeze=False).flat):
        here = [f for f in finished if f.setting.panel == task][::-1]
        for place, f in enumerate(here):
            axes.plot(f.returns(), [place] * len(f.returns()), "o", color=algorithm_colour("tdpo"), alpha=0.5)
            axes.plot(np.median(f.returns()), place, "|", color="k", markersize=14)
        axes.set(title=task, yticks=range(len(here)), yticklabels=[f.setting.label for f in here])
        if (best := max(max(f.returns()) for f in here)) < 0:
            axes.set_xscale("symlog", linthresh=-best / 2)
            axes.set_xlim(right=best / 2)
        axes.grid(alpha=0.3)
    figure.supxlabel("return without exploration: every seed, and the median", fontsize="medium")
    return figure


def cell(returns: list[float]) -> str:
    """Return the median and every seed's return."""
    if not returns:
        return ""
    return f"**{number(float(np.median(returns)))}** ({', '.join(map(number, returns))})"


RESULT = Result(
    "ablations", "What every part of TDPO is worth", "", settings, first_seed=300, extra=extra, prepare=prepare
)

if __name__ == "__main__":
    sys.exit(main(RESULT))
