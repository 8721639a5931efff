"""Programs, run as a user does."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from tdpo_baselines.common.parallel.mpirun import VARIABLES

ROOT = Path(__file__).parent.parent.parent


def command(mpirun: str, module: str, *arguments: str, ranks: int) -> list[str]:
    """Return the command that runs a module of the package."""
    python = [sys.executable, "-m", f"tdpo_baselines.{module}", *arguments]
    return python if ranks == 1 else [mpirun, "-np", str(ranks), *python]


@cache
def scratch() -> tempfile.TemporaryDirectory:
    """Return a folder for mpirun, which refuses to start where one of the same process number was killed."""
    return tempfile.TemporaryDirectory(prefix="mpirun-", ignore_cleanup_errors=True)


def mpi_environment() -> dict[str, str]:
    """Return variables with which mpirun accepts root and more ranks than cores."""
    return {**os.environ, **VARIABLES, "TMPDIR": scratch().name}


def deterministic_part(run: Path) -> tuple[str, ...]:
    """Return the lines of progress.csv without its time columns."""
    rows = [line.split(",") for line in (run / "progress.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in ("wall_time", "steps_per_second")]
    return tuple(",".join(row[i] for i in kept) for row in rows)


def rank_process(word: str, rank: int) -> int:
    """Return the process id of a rank whose command line has `word` in it."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = (entry / "cmdline").read_text(), (entry / "environ").read_text()
        except OSError:
            continue
        if word in words and f"\0OMPI_COMM_WORLD_RANK={rank}\0" in variables:
            return int(entry.name)
    raise ProcessLookupError(f"no process of rank {rank}")


def wait_for_rows(process: subprocess.Popen, run: Path) -> None:
    """Wait until a run has logged an update, so that all its ranks have begun to train, or until it ends."""
    progress = run / "progress.csv"
    while process.poll() is None and not (progress.exists() and progress.stat().st_size):
        time.sleep(0.01)


def kill_after_rows(process: subprocess.Popen, run: Path, num_rows: int) -> None:
    """Kill a run in the background and its ranks once its log has more than `num_rows` rows."""
    progress = run / "progress.csv"
    while process.poll() is None and not (progress.exists() and progress.read_text().count("\n") > num_rows):
        time.sleep(0.002)
    kill_all(str(run))
    process.communicate()


def kill_all(word: str) -> None:
    """Kill every process with `word` in its command line: mpirun's ranks do not die with it."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in entry.read_text() and int(entry.parent.name) != os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            pass  # it ended by itself
