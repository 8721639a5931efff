"""A search on disk: rounds of proposals, the runs that evaluate them, and the winner.

study.json says what is searched and how; rounds/NNN/proposals.json holds a round, written before its runs begin.
Scores are read from the run folders, so nothing is lost at whatever moment the search is interrupted.
"""

import contextlib
import importlib.util
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common import files
from ..harness import stages
from ..harness.stop_request import EXIT_STOPPED
from ..options.config import to_text
from ..storage.logger import COUNTERS, ProgressReader
from ..sweeping.definition import Definition, SweepRun, make_run, make_runs, read
from ..sweeping.pool import Journal, Prunes
from ..sweeping.results import mean, read_result, write_csv
from ..sweeping.sweep import Sweep
from .libraries import propose
from .pruning import NUM_PARTS, Pruner, part_returns
from .space import Dimension, make_space

VARIANTS = {"A": (30, 1, 3), "B": (10, 3, 3), "C": (30, 1, 100)}  # the paper's: batch, seeds of each, out of how many
FIRST_FRESH_SEED = 1000
UNFINISHED = "not finished"
# Trains or submits what is unfinished of a sweep; returns whether that is to be waited for.
Train = Callable[[Sweep, Prunes | None], bool]


class Evaluation(NamedTuple):
    """Values of the searched parameters, and what came of them."""

    round: int  # -1: from a sweep
    values: dict[str, Any]
    seeds: tuple[int, ...]
    score: float = math.nan  # mean `last_return` over the seeds; nan: failed or not finished
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is proposed."""

    definition: Definition
    library: str
    variant: str = "B"
    batch: int | None = None
    seed: int = 0
    prune: str | None = None

    @property
    def num_per_round(self) -> int:
        """Proposals of a round."""
        return self.batch or VARIANTS[self.variant][0]


class Study:
    """A search in a folder."""

    def __init__(self, plan: Plan, out: Path, prior: list[Evaluation]):
        self.plan, self.out, self.prior = plan, out, prior
        self.space = make_space(plan.definition)
        if plan.definition.scale:
            raise ValueError("a search has one environment; leave scale out")
        for dimension in self.space:  # both ends of each must be valid by themselves
            for end in (0.0, 1.0):
                value = dimension.from_unit(end)
                make_run(f"{dimension.name}={value}", self._complete({dimension.name: value}), 0, out)
        self._require_same_study()

    def _complete(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return all parameters of a run: the fixed ones and those of an evaluation."""
        return {**self.plan.definition.fixed, **values}

    def _require_same_study(self) -> None:
        """Write study.json, or raise ValueError if the folder holds another study."""
        path, mine = self.out / "study.json", json.loads(json.dumps({**asdict(self.plan), "prior": self.prior}))
        if path.exists():
            here = files.read_json(path, follow_links=False)
            different = [name for name in mine if here.get(name) != mine[name]]
            if different:
                raise ValueError(f"{self.out} holds another study (other {', '.join(different)}); pass another --out")
            return
        self.out.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(mine, indent=2))

    def rounds(self) -> list[list[Evaluation]]:
        """Return the proposals of all rounds, without scores."""
        paths = sorted((self.out / "rounds").glob("*/proposals.json"))
        return [
            [Evaluation(number, one["values"], tuple(one["seeds"])) for one in self._read_proposals(path)]
            for number, path in enumerate(paths)
        ]

    def _read_proposals(self, path: Path) -> list[dict]:
        """Return the values and seeds of a round; raise ValueError unless they are those of this search."""
        found, names = files.read_json(path, follow_links=False).get("evaluations"), {d.name for d in self.space}
        evaluations: list = found if isinstance(found, list) else [None]
        for one in evaluations:
            values, seeds = (one.get("values"), one.get("seeds")) if isinstance(one, dict) else (None, None)
            if not (isinstance(values, dict) and values.keys() == names and isinstance(seeds, list) and seeds):
                raise ValueError(f"{path} does not hold values and seeds of this search; pass another --out")
        return evaluations

    def runs(self, evaluation: Evaluation) -> list[SweepRun]:
        """Return the runs of an evaluation; raise ValueError if its values do not fit together or into memory."""
        label = ",".join(f"{key.replace(',', '+')}={to_text(value)}" for key, value in evaluation.values.items())
        runs = [make_run(label, self._complete(evaluation.values), seed, self.out) for seed in evaluation.seeds]
        stages.check(runs[0].resolved.config.algorithm, runs[0].resolved.stages, 1)
        return runs

    def with_score(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with the score of its runs."""
        try:
            runs = self.runs(evaluation)
        except ValueError as error:
            return evaluation._replace(note=str(error))
        pruned = self._pruned(evaluation.round)
        parts = [pruned[run.name] for run in runs if run.name in pruned]
        if parts:
            return evaluation._replace(note=f"pruned at {min(parts)}/{NUM_PARTS}")
        results = [read_result(run) for run in runs]
        if any(result.status != "finished" for result in results):
            return evaluation._replace(note=UNFINISHED)
        return evaluation._replace(score=mean(result.last_return for result in results))

    def evaluations(self) -> list[Evaluation]:
        """Return all evaluations with their scores, those of the sweep first."""
        return [*self.prior, *(self.with_score(one) for group in self.rounds() for one in group)]

    def begin_round(self, num: int) -> None:
        """Let the library propose `num` evaluations and write them down."""
        number, known = len(self.rounds()), self.evaluations()
        scores = np.array([one.score for one in known])
        worst = np.nanmin(scores) if np.isfinite(scores).any() else 0.0
        points = [[dimension.to_unit(one.values[dimension.name]) for dimension in self.space] for one in known]
        proposed = propose(
            self.plan.library,
            np.array(points).reshape(-1, len(self.space)),
            np.where(np.isfinite(scores), scores, worst),  # a failure is as bad as the worst
            num=num,
            seed=int(np.random.SeedSequence([self.plan.seed, number]).generate_state(1)[0]),
        )
        _, num_seeds, num_choices = VARIANTS[self.plan.variant]
        random = np.random.default_rng([self.plan.seed, number])
        evaluations = [
            {
                "values": {d.name: d.from_unit(x) for d, x in zip(self.space, point)},
                "seeds": sorted(random.choice(num_choices, num_seeds, replace=False).tolist()),
            }
            for point in proposed
        ]
        folder = self._round_folder(number)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "proposals.json", json.dumps({"evaluations": evaluations}, indent=2))

    def _round_folder(self, number: int) -> Path:
        return self.out / "rounds" / f"{number:03d}"

    def _pruned(self, number: int) -> dict[str, int]:
        """Return the runs of a round that were pruned, and after which part."""
        return Journal(self._round_folder(number) / "journal.csv").pruned() if self.plan.prune else {}

    def _round_runs(self, evaluations: list[Evaluation]) -> list[SweepRun]:
        """Return all runs of a round, each once."""
        runs: dict[str, SweepRun] = {}
        for evaluation in evaluations:
            with contextlib.suppress(ValueError):  # `with_score` notes it
                runs |= {run.name: run for run in self.runs(evaluation)}
        return list(runs.values())

    def _pruner(self, earlier_rounds: list[list[Evaluation]]) -> Prunes | None:
        """Return what ends a run before its time, by the runs of earlier rounds."""
        if not self.plan.prune:
            return None
        earlier = []
        for number, group in enumerate(earlier_rounds):
            pruned = self._pruned(number)
            for run in self._round_runs(group):
                rows = ProgressReader(run.folder.progress_path, (*COUNTERS, "return_mean")).read()
                returns = part_returns(run.resolved.budget, rows)
                earlier += [returns[: pruned.get(run.name, NUM_PARTS)]] * bool(returns)
        return Pruner(self.plan.prune, earlier)

    def train_round(self, train: Train) -> bool:
        """Train what is missing of the last round; return whether it is to be waited for."""
        *earlier, last = self.rounds()
        return train(Sweep(self._round_runs(last), self._round_folder(len(earlier))), self._pruner(earlier))

    def search(self, num_evaluations: int, train: Train) -> int:
        """Search until there are so many evaluations; return the exit code."""
        while True:
            rounds = self.rounds()
            num_done = sum(map(len, rounds))
            is_unfinished = rounds and any(self.with_score(one).note == UNFINISHED for one in rounds[-1])
            if is_unfinished and self.train_round(train):
                return EXIT_STOPPED
            self.write_history()
            if num_done >= num_evaluations:
                return 0
            num = min(self.plan.num_per_round, num_evaluations - num_done)
            print(
                f"round {len(rounds)}: evaluations {num_done + 1} to {num_done + num} of {num_evaluations}", flush=True
            )
            self.begin_round(num)

    def winner(self) -> Evaluation:
        """Return the evaluation with the best score; raise ValueError if all have failed."""
        scored = [one for one in self.evaluations() if math.isfinite(one.score)]
        if not scored:
            raise ValueError(f"no evaluation in {self.out} has succeeded; see history.csv and output.log of its runs")
        return max(scored, key=lambda one: one.score)

    def write_history(self) -> None:
        """Write history.csv: every evaluation in order, with the best score so far."""
        best, rows = -math.inf, []
        for number, one in enumerate(self.evaluations()):
            best = max(best, one.score) if math.isfinite(one.score) else best
            head = {"evaluation": number, "round": one.round, "seeds": to_text(list(one.seeds)), "score": one.score}
            rows.append({**head, "best_score": best, "note": one.note, **one.values})
        write_csv(self.out / "history.csv", rows)
        if self.plan.library == "optuna":
            write_journal(self.out / "optuna.journal", self.space, self.evaluations())

    def confirm(self, winner: Evaluation, num_seeds: int, train: Train) -> tuple[list[float], int]:
        """Train the winner on fresh seeds; return their scores and the exit code."""
        fresh = winner._replace(seeds=tuple(range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + num_seeds)))
        sweep = Sweep(self.runs(fresh), self.out / "fresh")
        is_stopped = bool(sweep.unfinished()) and train(sweep, None)
        scores = [result.last_return for result in sweep.results if result.status == "finished"]
        return scores, EXIT_STOPPED if is_stopped else int(len(scores) < num_seeds)

    def write_winner(self, winner: Evaluation, fresh_scores: list[float]) -> None:
        """Write best.json with all options of the winner, for --config, and summary.json with its scores."""
        run = self.runs(winner)[0].resolved
        options = {**run.config.values(), "num_timesteps": run.budget.num_timesteps}
        write_text(self.out / "best.json", json.dumps(options, indent=2))
        summary = {"values": winner.values, "seeds": winner.seeds, "score": winner.score}
        summary |= {"fresh_scores": fresh_scores, "fresh_mean": mean(fresh_scores)}
        summary["importances"] = importances(self.space, self.evaluations())
        write_text(self.out / "summary.json", json.dumps(summary, indent=2))


def write_text(path: Path, text: str) -> None:
    """Replace a file."""
    files.replace(path, [text, "\n"]).close()


def write_journal(path: Path, space: list[Dimension], evaluations: list[Evaluation]) -> None:
    """Write the evaluations as Optuna's journal storage, for optuna-dashboard and Optuna's own analyses."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    backend = JournalFileBackend(str(partial), lock_obj=JournalFileOpenLock(str(partial)))
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(study_name=path.parent.resolve().name, storage=storage, direction="maximize")
    add_trials(study, space, evaluations)
    os.replace(partial, path)


def importances(space: list[Dimension], evaluations: list[Evaluation]) -> dict[str, float]:
    """Return the importance of every parameter as Optuna measures it; empty without Optuna or scores."""
    scores = {one.score for one in evaluations if math.isfinite(one.score)}
    if len(scores) < 2 or importlib.util.find_spec("optuna") is None:
        return {}
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    add_trials(study, space, evaluations)
    return optuna.importance.get_param_importances(study)


def add_trials(study, space: list[Dimension], evaluations: list[Evaluation]) -> None:
    """Add evaluations to an Optuna study."""
    import optuna

    known = optuna.distributions
    distributions: dict = {
        one.name: known.CategoricalDistribution(one.choices)
        if one.choices
        else known.IntDistribution(int(one.low), int(one.high))
        if one.is_whole
        else known.FloatDistribution(one.low, one.high)
        for one in space
    }
    for one in evaluations:
        is_scored = math.isfinite(one.score)
        study.add_trial(
            optuna.trial.create_trial(
                params=one.values,
                distributions=distributions,
                value=one.score if is_scored else None,
                state=optuna.trial.TrialState.COMPLETE if is_scored else optuna.trial.TrialState.FAIL,
                user_attrs={"round": one.round, "seeds": list(one.seeds), "note": one.note},
            )
        )


def read_sweep(folder: Path, definition: Definition) -> list[Evaluation]:
    """Return the finished settings of a sweep that lie in the search space and agree in everything else."""
    space = make_space(definition)
    base = make_run("centre", dict(definition.fixed), 0, folder).resolved
    searched = {name for dimension in space for name in dimension.name.split(",")}
    groups: dict[str, list[SweepRun]] = {}
    for run in make_runs(read(folder / "sweep.json"), folder):
        groups.setdefault(run.label, []).append(run)
    found = []
    for runs in groups.values():
        resolved, results = runs[0].resolved, [read_result(run) for run in runs]
        values = read_values(space, runs[0])
        others = {option.partition(":")[0] for option in base.config.differences(resolved.config)} - searched - {"seed"}
        is_same = not others and resolved.budget == base.budget
        if is_same and values and all(result.status == "finished" for result in results):
            score = mean(result.last_return for result in results)
            found += [Evaluation(-1, values, tuple(run.seed for run in runs), score)] * math.isfinite(score)
    if not found:
        raise ValueError(f"{folder} has no finished setting of this search space; leave --sweep out, or check --set")
    return found


def read_values(space: list[Dimension], run: SweepRun) -> dict[str, Any] | None:
    """Return a run's values of the searched parameters, None if one is outside of the space."""
    known = {**run.resolved.config.values(), **run.values}
    values = {dimension.name: known[dimension.name.split(",")[0]] for dimension in space}
    return values if all(dimension.contains(values[dimension.name]) for dimension in space) else None
