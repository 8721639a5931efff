"""Train the runs of a sweep side by side on this machine, in processes that are used again and again.

Each process imports its libraries once, and trains one run after the other with the functions of `tdpo_baselines.run`.
`journal.csv` in the sweep's folder has a line for every beginning and end of a run.
"""

import contextlib
import gc
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common import files
from ..harness.stop_request import EXIT_STOPPED, StopRequest
from ..run import EXIT_FAILED, parse_and_train
from ..storage.logger import COUNTERS, ProgressReader

if TYPE_CHECKING:
    from .definition import SweepRun

MAX_JOURNAL_BYTES = 2**26
BEGINS = "begins"
PRUNED = "pruned"
GOOD_ENDS = ("0", str(EXIT_STOPPED))
Prunes = Callable[[Any, list[dict]], int]  # budget of a run, its rows so far -> where to end it; 0: nowhere
NUM_ATTEMPTS = 2
SECONDS_BETWEEN_LOOKS = 1.0


class Journal:
    """The file to which all processes append what they do."""

    def __init__(self, path: Path):
        self.path = path

    def write(self, name: str, event: str | int) -> None:
        """Append a line."""
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S')},{os.getpid()},{name},{event}\n"
        with files.open_to_append(self.path) as file:  # one write of a short line, which does not mix with others
            file.write(line)

    def last_events(self, skipped: int = 0) -> dict[str, tuple[int, str]]:
        """Return the process and the last event of every run in the lines after the first `skipped`."""
        found = {}
        for line in self._lines()[skipped:]:
            if match := re.fullmatch(r"[^,]+,(\d{1,10}),(.+),(\w+)", line):  # a crash may have torn one
                found[match[2]] = int(match[1]), match[3]
        return found

    def _lines(self) -> list[str]:
        if not os.path.lexists(self.path):
            return []
        return [line.removesuffix("\n") for line in files.read_lines(self.path, max_bytes=MAX_JOURNAL_BYTES)]

    def under_way(self, skipped: int = 0) -> dict[str, int]:
        """Return the runs that have begun and not ended, and their processes."""
        return {name: process for name, (process, event) in self.last_events(skipped).items() if event == BEGINS}

    def failed(self) -> set[str]:
        """Return the runs that ended with an error."""
        return {name for name, (_, event) in self.last_events().items() if not is_good(event)}

    def pruned(self) -> dict[str, int]:
        """Return the runs that were pruned, and where."""
        events = {name: event for name, (_, event) in self.last_events().items()}
        return {name: int(event.removeprefix(PRUNED)) for name, event in events.items() if is_pruned(event)}

    def __len__(self) -> int:
        return len(self._lines())


def is_pruned(event: str) -> bool:
    """Return whether an event is the end of a run that was pruned."""
    return re.fullmatch(rf"{PRUNED}\d{{1,9}}", event) is not None


def is_good(event: str) -> bool:
    """Return whether an event is no failure."""
    return event in (BEGINS, *GOOD_ENDS) or is_pruned(event)


def train_all(
    runs: list["SweepRun"],
    journal: Journal,
    *,
    num_jobs: int,
    report: Callable[["SweepRun", int], Any],
    prunes: Prunes | None = None,
) -> bool:
    """Train the runs, a failed one twice; call `report(run, exit_code)` after each. Return whether it was stopped."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    failures: Counter = Counter()
    todo = list(runs)
    with StopRequest() as stop:
        while todo and not stop.number:
            num_lines, is_done = len(journal), set()
            try:
                for run, code in run_parallel(todo, journal, num_jobs, stop, prunes):
                    failures[run.name] += code not in (0, EXIT_STOPPED)
                    is_done |= {run.name} if code == 0 else set()
                    stop.number = stop.number or (signal.SIGUSR1 if code == EXIT_STOPPED else 0)
                    report(run, code)
            except TerminatedWorkerError:  # killed from outside, such as by a lack of memory; it takes the others along
                if len(journal) == num_lines:
                    raise  # no run could even begin
                for run, code in after_crash(todo, journal, num_lines, is_done):
                    failures[run.name] += code
                    is_done |= {run.name} if code == 0 else set()
                    report(run, code)
            todo = [run for run in todo if run.name not in is_done and failures[run.name] < NUM_ATTEMPTS]
        return bool(stop.number)


def after_crash(
    runs: list["SweepRun"], journal: Journal, num_lines: int, is_done: set[str]
) -> list[tuple["SweepRun", int]]:
    """Return the runs whose ends were lost with the processes, and their exit codes; note those that were under way."""
    events = {name: event for name, (_, event) in journal.last_events(num_lines).items()}
    finished = [run for run in runs if events.get(run.name) == "0" and run.name not in is_done]
    under_way = [run for run in runs if events.get(run.name) == BEGINS]
    for run in under_way:
        journal.write(run.name, EXIT_FAILED)
    return [*((run, 0) for run in finished), *((run, EXIT_FAILED) for run in under_way)]


def run_parallel(
    runs: list["SweepRun"], journal: Journal, num_jobs: int, stop: StopRequest, prunes: Prunes | None
) -> Iterator:
    """Yield every run with its exit code as it ends. A stop request is passed on, and no further run begins."""
    from joblib import Parallel, delayed

    num_lines, by_name = len(journal), {run.name: run for run in runs}
    pool = Parallel(
        n_jobs=num_jobs, backend="loky", batch_size=1, pre_dispatch=num_jobs, return_as="generator_unordered"
    )
    calls = (
        delayed(train)(run.name, run.arguments, journal, os.getpid(), prunes and partial(prunes, run.resolved.budget))
        for run in runs
        if not stop.number
    )
    is_over = threading.Event()
    threading.Thread(target=_pass_stop_on, args=(stop, journal, num_lines, is_over), daemon=True).start()
    try:
        for name, code in pool(calls):
            yield by_name[name], code
    finally:
        is_over.set()


def _pass_stop_on(stop: StopRequest, journal: Journal, num_lines: int, is_over: threading.Event) -> None:
    """Ask the processes to save and stop once this one is asked to."""
    while not stop.number:
        if is_over.wait(SECONDS_BETWEEN_LOOKS / 10):
            return
    for process in journal.under_way(num_lines).values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGUSR1)


def train(
    name: str, arguments: list[str], journal: Journal, parent: int, prunes: Callable[[list[dict]], int] | None = None
) -> tuple[str, int]:
    """Train or continue a run, with its output in output.log of its folder; return its name and exit code.

    A run that is pruned counts as done, with exit code 0.
    """
    folder = Path(next(word for word in arguments if word.startswith("--log_dir=")).partition("=")[2])
    folder.mkdir(parents=True, exist_ok=True)
    journal.write(name, BEGINS)
    is_over = threading.Event()
    with StopRequest() as stop, output_to(folder / "output.log"):
        threading.Thread(target=_stop_without_parent, args=(parent, is_over), daemon=True).start()
        if prunes:
            threading.Thread(target=_stop_if_pruned, args=(prunes, folder, is_over), daemon=True).start()
        try:
            code = parse_and_train([*arguments, "--resume"], stop)
        except SystemExit:  # a traceback has been printed
            code = EXIT_FAILED
        finally:
            is_over.set()
    gc.collect()  # of compiled graphs, before the next run
    where = prunes(_progress_of(folder).read()) if prunes and code in (0, EXIT_STOPPED) else 0  # whoever stopped it
    journal.write(name, f"{PRUNED}{where}" if where else code)
    return name, 0 if where else code


def _progress_of(folder: Path) -> ProgressReader:
    return ProgressReader(folder / "progress.csv", (*COUNTERS, "return_mean"))


def _stop_if_pruned(prunes: Callable, folder: Path, is_over: threading.Event) -> None:
    """Ask this process to save and stop once its run is pruned."""
    reader, rows = _progress_of(folder), []
    while not is_over.wait(SECONDS_BETWEEN_LOOKS):
        new = reader.read()
        rows += new
        if new and prunes(rows):
            os.kill(os.getpid(), signal.SIGUSR1)
            return


def _stop_without_parent(parent: int, is_over: threading.Event) -> None:
    """Ask this process to save and stop if the one that hands out the runs has died."""
    while not is_over.wait(SECONDS_BETWEEN_LOOKS):
        if parent not in (os.getppid(), os.getpid()):  # joblib uses no other process for a single job
            os.kill(os.getpid(), signal.SIGUSR1)
            return


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Append all output of this process, of libraries too, to a file."""
    saved = os.dup(1), os.dup(2)
    file = files.open_to_append(path)
    try:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield
    finally:
        for number, copy in enumerate(saved, start=1):
            os.dup2(copy, number)
            os.close(copy)
        file.close()
