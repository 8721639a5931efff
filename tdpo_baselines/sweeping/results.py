"""The results of a sweep, read from the folders of its runs, as rows for CSV files and as a table.

`last_return` is the mean of `return_mean` over the last tenth of a run's timesteps. `best_return` is the largest
`return_mean`, the metric of the paper; as the largest of many noisy numbers it is optimistic.
"""

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..common import files
from ..storage import checkpoint
from ..storage.logger import COUNTERS, ProgressReader
from .definition import SweepRun

LAST = 0.1  # fraction of the timesteps over which `last_return` is taken


class Result(NamedTuple):
    """How far a run is and what it has reached."""

    status: str  # finished, failed, started, new
    iteration: int = 0
    total_timesteps: int = 0
    wall_time: float = math.nan
    last_return: float = math.nan
    best_return: float = math.nan


def read_result(run: SweepRun) -> Result:
    """Read the result of a run, which may be unfinished."""
    rows = ProgressReader(run.folder.progress_path, (*COUNTERS, "return_mean")).read()
    if not rows:
        return Result("started" if run.folder.config_path.exists() else "new")
    last = rows[-1]
    is_done = run.resolved.budget.fraction_done(SimpleNamespace(**last)) >= 1
    is_saved = checkpoint.has_iteration(run.folder.checkpoints, last["iteration"])
    returns = [row["return_mean"] for row in rows if math.isfinite(row["return_mean"])]
    lately = [row["return_mean"] for row in rows if row["total_timesteps"] > (1 - LAST) * last["total_timesteps"]]
    return Result(
        status="finished" if is_done and is_saved else "started",
        iteration=last["iteration"],
        total_timesteps=last["total_timesteps"],
        wall_time=last["wall_time"],
        last_return=mean(lately),
        best_return=max(returns, default=math.nan),
    )


def mean(values: Iterable[float]) -> float:
    """Return the mean of the finite values, nan if there are none."""
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Replace a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    files.replace(path, [text.getvalue()]).close()


def run_rows(runs: list[SweepRun], results: list[Result]) -> list[dict[str, Any]]:
    """Return the rows of runs.csv: every run with its parameters and its result."""
    return [
        {"run": run.name, "setting": run.label, "seed": run.seed, **result._asdict(), **run.values}
        for run, result in zip(runs, results)
    ]


def setting_rows(runs: list[SweepRun], results: list[Result]) -> list[dict[str, Any]]:
    """Return the rows of settings.csv: mean and deviation over the finished seeds of every setting."""
    groups: dict[str, list[Result]] = {}
    for run, result in zip(runs, results):
        groups.setdefault(run.label, []).append(result)
    rows = []
    for label, group in groups.items():
        finished = [result for result in group if result.status == "finished"]
        last = [result.last_return for result in finished if math.isfinite(result.last_return)]
        rows.append({
            "setting": label,
            "runs": len(group),
            "finished": len(finished),
            "failed": sum(result.status == "failed" for result in group),
            "last_return": mean(last),
            "std": stdev(last) if len(last) > 1 else math.nan,
            "worst": min(last, default=math.nan),
            "best_return": mean(result.best_return for result in finished),
        })  # fmt: skip
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the settings as a table, the best one marked."""
    width = min(max(len("setting"), *(len(row["setting"]) for row in rows)), 60)
    returns = [row["last_return"] for row in rows if math.isfinite(row["last_return"])]
    lines = [f"  {'setting':{width}} finished failed {'last_return':>12} {'std':>10} {'worst':>12} {'best_return':>12}"]
    for row in rows:
        mark = "*" if returns and row["last_return"] == max(returns) else " "
        numbers = (row["last_return"], row["std"], row["worst"], row["best_return"])
        texts = [f"{number:{n}.5g}".replace("nan", "  -") for number, n in zip(numbers, (12, 10, 12, 12))]
        done = f"{row['finished']}/{row['runs']}"
        lines.append(f"{mark} {row['setting'][:width]:{width}} {done:>8} {row['failed'] or '':>6} {' '.join(texts)}")
    return "\n".join(lines)
