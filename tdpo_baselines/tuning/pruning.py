"""End runs that do worse than earlier ones did at the same point, by Optuna's pruners.

A run is judged after every ninth of its budget by its mean return over that ninth, beside the runs of earlier rounds.
So a decision does not depend on which runs train at the same time, and an interrupted search makes it again.
"""

import copy
import math
from collections.abc import Sequence
from types import SimpleNamespace

from ..options.budget import Budget
from ..sweeping.results import mean

NUM_PARTS = 9  # of a budget; Hyperband looks after one and three of them


def part_returns(budget: Budget, rows: Sequence[dict]) -> list[float]:
    """Return the mean return of every part of the budget that is complete; nan if no episode ended in it."""
    parts = [math.ceil(NUM_PARTS * budget.fraction_done(SimpleNamespace(**row)) - 1e-9) for row in rows]
    done = math.floor(NUM_PARTS * budget.fraction_done(SimpleNamespace(**rows[-1])) + 1e-9) if rows else 0
    return [mean(row["return_mean"] for row, at in zip(rows, parts) if at == part) for part in range(1, done + 1)]


class Pruner:
    """An Optuna study that has seen the runs of earlier rounds."""

    def __init__(self, name: str, earlier: Sequence[list[float]]):
        """Show the runs' returns to Optuna; those with fewer parts than a budget has were pruned."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        pruners = optuna.pruners
        pruner = pruners.MedianPruner() if name == "median" else pruners.HyperbandPruner(1, NUM_PARTS)
        self._study = optuna.create_study(study_name=name, direction="maximize", pruner=pruner)
        for returns in earlier:
            trial = self._study.ask()
            self._report(trial, returns)
            if len(returns) == NUM_PARTS and math.isfinite(returns[-1]):
                self._study.tell(trial, returns[-1])
            else:
                self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)

    def __call__(self, budget: Budget, rows: Sequence[dict]) -> int:
        """Return the part of the budget after which a run is pruned, 0 if it goes on."""
        returns = part_returns(budget, rows)[: NUM_PARTS - 1]
        return next(iter(self._report(copy.deepcopy(self._study).ask(), returns)), 0) if returns else 0

    def _report(self, trial, returns: Sequence[float]) -> list[int]:
        """Report returns part by part; return the parts after which the pruner would end the run."""
        ends = []
        for part, value in enumerate(returns, start=1):
            if math.isfinite(value):
                trial.report(value, part)
                ends += [part] if trial.should_prune() else []  # Hyperband also keeps its records by this call
        return ends
