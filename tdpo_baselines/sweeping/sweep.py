"""A sweep on disk: its runs, their results so far, its tables, and the ways to train what is missing."""

import argparse
import time
from pathlib import Path
from typing import TextIO

from ..common import files
from ..harness import stages
from ..harness.stop_request import EXIT_STOPPED
from ..storage.logger import format_time
from .definition import SweepRun
from .pool import NUM_ATTEMPTS, PRUNED, Journal, Prunes, train_all
from .results import Result, read_result, run_rows, setting_rows, table, write_csv


def lock(out: Path) -> TextIO:
    """Lock a folder as long as the returned file is open; raise ValueError if another process has locked it."""
    out.mkdir(parents=True, exist_ok=True)
    return files.lock(out, "--out")


class Sweep:
    """The runs of a sweep, their results as far as they are known, and the folder with its tables."""

    def __init__(self, runs: list[SweepRun], out: Path):
        self.runs, self.out = runs, out
        self.journal = Journal(out / "journal.csv")
        self.results = [self._result(run) for run in runs]
        self._began, self._num_trained = time.monotonic(), 0
        out.mkdir(parents=True, exist_ok=True)

    def _result(self, run: SweepRun) -> Result:
        """Read the result of a run; the journal tells whether an unfinished one has failed."""
        result = read_result(run)
        if run.name in self.journal.pruned():
            return result._replace(status=PRUNED)
        has_failed = result.status != "finished" and run.name in self.journal.failed()
        return result._replace(status="failed") if has_failed else result

    def unfinished(self) -> list[SweepRun]:
        """Return the runs that are still to be trained or continued."""
        return [run for run, result in zip(self.runs, self.results) if result.status not in ("finished", PRUNED)]

    def report(self, run: SweepRun, exit_code: int) -> None:
        """Take note of a run that has ended, print a line about it, and write the tables."""
        result = self.results[self.runs.index(run)] = self._result(run)
        self._num_trained += 1
        num_left = len(self.unfinished())
        left = format_time((time.monotonic() - self._began) / self._num_trained * num_left)
        why = f" (exit code {exit_code}; see {run.folder.path}/output.log)" if result.status == "failed" else ""
        done = f"{len(self.runs) - num_left}/{len(self.runs)}"
        number = f"{result.last_return:.5g}".replace("nan", "-")
        print(f"{done:>9} {left:>9} {result.status:9} {number:>11} {run.seed:5}  {run.label}{why}", flush=True)
        self.write()

    def write(self) -> None:
        """Write the tables."""
        write_csv(self.out / "runs.csv", run_rows(self.runs, self.results))
        write_csv(self.out / "settings.csv", setting_rows(self.runs, self.results))

    def summary(self) -> str:
        """Return the table of all settings and the runs that have failed."""
        self.write()
        failed = [run for run, result in zip(self.runs, self.results) if result.status == "failed"]
        lines = [table(setting_rows(self.runs, self.results)), f"-> {self.out}/settings.csv, runs.csv"]
        lines += [f"failed: {run.label}, seed {run.seed}; see {run.folder.path}/output.log" for run in failed]
        return "\n".join(lines)

    def has_failed(self) -> bool:
        """Return whether a run has failed."""
        return any(result.status == "failed" for result in self.results)


def train(sweep: Sweep, num_jobs: int) -> int:
    """Train the unfinished runs on this machine and print the table; return the exit code."""
    with lock(sweep.out):
        is_stopped = train_unfinished(sweep, num_jobs)
    print(sweep.summary(), flush=True)
    if is_stopped:
        print("stopped; the same command continues", flush=True)
        return EXIT_STOPPED
    return int(sweep.has_failed())


def train_unfinished(sweep: Sweep, num_jobs: int, prunes: Prunes | None = None) -> bool:
    """Train the unfinished runs, with a line about each; return whether this was stopped."""
    runs = sweep.unfinished()
    for run in runs:
        stages.check(run.resolved.config.algorithm, run.resolved.stages, 1)
    print(f"{len(sweep.runs)} runs, {len(sweep.runs) - len(runs)} finished; {num_jobs} at a time -> {sweep.out}")
    print(f"{'done':>9} {'time left':>9} {'status':9} {'last_return':>11} {'seed':>5}  setting", flush=True)
    return train_all(runs, sweep.journal, num_jobs=num_jobs, report=sweep.report, prunes=prunes)


def submit(sweep: Sweep, parsed: argparse.Namespace) -> int:
    """Submit the unfinished runs to a cluster; return the exit code."""
    runs = sweep.unfinished()
    if not runs:
        print("all runs are finished")
        return 0
    return submit_runs(sweep, runs, parsed)


def submit_runs(sweep: Sweep, runs: list[SweepRun], parsed: argparse.Namespace) -> int:
    """Submit some runs of a sweep to a cluster; return the exit code."""
    from hpc import submit as hpc

    job = argparse.Namespace(
        name=f"sweep-{sweep.out.name}", scheduler=parsed.submit, ranks=parsed.ranks, time=parsed.time,
        jobs=sweep.out / "jobs", dry_run=parsed.dry_run,
    )  # fmt: skip
    words = [f"--max_walltime={hpc.max_walltime(parsed.time)}"]
    return hpc.submit(job, [[*run.arguments, *words] for run in runs])


def submit_unfinished(sweep: Sweep, parsed: argparse.Namespace) -> bool:
    """Submit the unfinished runs but those that have failed twice; return whether there are any."""
    from hpc import submit as hpc

    failures = hpc.failures(sweep.out / "jobs")
    runs = [run for run in sweep.unfinished() if failures[str(run.folder.path)] < NUM_ATTEMPTS]
    code = submit_runs(sweep, runs, parsed) if runs else 0
    if code:
        raise ValueError(f"{parsed.submit} refused the job with exit code {code}; see its message above")
    return bool(runs)
