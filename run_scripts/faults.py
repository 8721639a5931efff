"""Fault injection: a run on two ranks is disturbed, resumed, and compared with an undisturbed one.

    python run_scripts/faults.py   # writes docs/reliability-table.md; takes a few minutes

Everything happens in a temporary folder. The full disk needs root and is skipped otherwise.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tdpo_baselines.common.parallel import mpirun

ROOT = Path(__file__).resolve().parent.parent
NUM_ITERATIONS = 500
RUN = (
    *("--env", "pendulum-nlr", "--set", "num_trajectories=6", "num_branches=3", "hidden_sizes=16,16"),
    *("--num_iterations", str(NUM_ITERATIONS), "--checkpoint_every", "20"),
)
PLANTED = """
import sys, numpy as np
from tdpo_baselines import run
from tdpo_baselines.common.parallel import launcher
from tdpo_baselines.tdpo.adaptive import AdaptiveLearner as Learner
iterate = Learner.iterate
def disturbed(self, iteration, total_timesteps):
    if iteration == 130 and launcher.rank() == {rank}:
        {code}
    return iterate(self, iteration, total_timesteps)
Learner.iterate = disturbed
sys.exit(run.main())
"""
EXCEPTION = "raise KeyError('planted')"
NO_MEMORY = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); np.ones(2**30)"
NO_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
BIT_FLIP = "self.observation_stats.sum.view(np.uint8)[5] ^= 4"
NAN = """
        rollouts = self.roller.rollouts
        def broken(*a, **k):
            out = rollouts(*a, **k); out.discounted_returns[0] = out.rewards[0, :1] = np.nan
            return out
        self.roller.rollouts = broken
"""


ENVIRONMENT = {**os.environ, **mpirun.VARIABLES, "PYTHONPATH": str(ROOT)}


class Run:
    """A training run in the background."""

    def __init__(
        self, folder: Path, planted: str = "", arguments: Sequence[str] = RUN, num_ranks: int = 2, **variables: str
    ):
        self.folder, self.num_ranks = folder, num_ranks
        program = ["-c", planted] if planted else ["-m", "tdpo_baselines.run"]
        words = [*mpirun.command(num_ranks), sys.executable, *program, *arguments, "--log_dir", str(folder), "--resume"]
        self._output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            words,
            env={**ENVIRONMENT, **variables},
            cwd=ROOT,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C ends the script, not the run
        )

    def wait_for_words(self) -> None:
        """Wait until the run has printed something."""
        while self.process.poll() is None and not os.fstat(self._output.fileno()).st_size:
            time.sleep(0.01)

    def wait_for_iteration(self, number: int) -> None:
        """Wait until the log has more rows than `number`, or the run has ended."""
        progress = self.folder / "progress.csv"
        while self.process.poll() is None and not (progress.exists() and progress.read_text().count("\n") > number):
            time.sleep(0.01)

    def processes(self, of: str = "") -> list[int]:
        """Return the ids of the run's processes, mpirun among them, whose environment has `of` in it."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                is_ours = f"{self.folder}\0".encode() in (entry / "cmdline").read_bytes()
                if is_ours and of.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    def rank_process(self, rank: int) -> int:
        """Return the process id of a rank."""
        if self.num_ranks == 1:
            return self.process.pid
        found = self.processes(f"OMPI_COMM_WORLD_RANK={rank}\0")
        if not found:
            raise ProcessLookupError(f"no process of rank {rank}")
        return found[0]

    def kill(self) -> None:
        """Kill all processes of the run."""
        while left := self.processes():
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)
        self.process.wait()

    def end(self, seconds: float = 600) -> tuple[int, str]:
        """Wait for the end; return exit code and output. Kill a run that hangs and return -1."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            code = -1
        self._output.seek(0)
        return code, self._output.read()


@dataclass
class Outcome:
    """The end of a disturbed run."""

    message: str
    seconds: float  # from the fault to the end of the job
    code: int
    remark: str = ""  # on what the seconds count


def find_line(output: str, *words: str) -> str:
    """Return the first line with one of the words."""
    lines = [line.strip() for line in output.splitlines() if any(word in line for word in words)]
    return lines[0] if lines else "(nothing: " + output[-200:] + ")"


def disturb(fault: Callable[[Run], None], folder: Path, *words: str, **options: str) -> Outcome:
    """Inflict a fault after 120 iterations; report the first line of output with one of the words."""
    run = Run(folder, **options)
    run.wait_for_iteration(120)
    began = time.monotonic()
    fault(run)
    code, output = run.end()
    return Outcome(find_line(output, *words), time.monotonic() - began, code)


def kill_rank(folder: Path) -> Outcome:
    return disturb(lambda run: os.kill(run.rank_process(1), signal.SIGKILL), folder, "rank 1")


def stop_rank(folder: Path) -> Outcome:
    def stop(run: Run) -> None:
        process = run.rank_process(1)
        os.kill(process, signal.SIGSTOP)
        time.sleep(65)
        os.kill(process, signal.SIGCONT)

    return disturb(stop, folder, "finished")


def stop_at_the_start(folder: Path) -> Outcome:
    """Ask the run to stop before it has begun to train."""
    run = Run(folder)
    run.wait_for_words()
    time.sleep(0.5)
    began = time.monotonic()
    run.process.send_signal(signal.SIGUSR1)
    code, output = run.end()
    return Outcome(find_line(output, "stopped"), time.monotonic() - began, code)


def plant(code: str, *words: str, rank: int = 1) -> Callable[[Path], Outcome]:
    """Return a fault that executes code on a rank before iteration 130."""
    return lambda folder: disturb(lambda run: None, folder, *words, planted=PLANTED.format(code=code, rank=rank))


def fill_disk(folder: Path) -> Outcome:
    """Fill up a small file system that holds nothing but the run."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)], check=True)
    filler = folder / "filler"

    def fill(run: Run) -> None:
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))

    outcome = disturb(fill, folder, "No space left", "cannot write")
    filler.unlink(missing_ok=True)
    return outcome


def remove_folder(folder: Path) -> Outcome:
    def remove(run: Run) -> None:
        while folder.exists():
            shutil.rmtree(folder, ignore_errors=True)

    return disturb(remove, folder, "disappeared", "No such file")


def remove_scratch(folder: Path) -> Outcome:
    """Remove the temporary files of mpirun and the cache of compiled code while the run uses them."""
    scratch = folder.with_suffix(".scratch")
    scratch.mkdir()
    variables = {"TMPDIR": str(scratch), "NUMBA_CACHE_DIR": str(scratch / "numba")}
    return disturb(lambda run: shutil.rmtree(scratch, ignore_errors=True), folder, "finished", **variables)


def cut_checkpoint(folder: Path) -> Outcome:
    """Kill the run, cut its newest checkpoint in half, and resume."""
    run = Run(folder)
    run.wait_for_iteration(120)
    run.kill()
    newest = max((folder / "checkpoints").glob("iteration-*")) / "state.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    began = time.monotonic()
    code, output = Run(folder).end()
    return Outcome(find_line(output, "torn or corrupt"), time.monotonic() - began, code, " (to the end of the run)")


FAULTS = {
    "rank 1 killed (SIGKILL)": kill_rank,
    "rank 1 stopped for 65 s (SIGSTOP)": stop_rank,
    "exception on rank 1": plant(EXCEPTION, "[rank 1] KeyError"),
    "`sys.exit` on rank 1": plant("sys.exit(3)", "[rank 1] SystemExit"),
    "out of memory on rank 1": plant(NO_MEMORY, "[rank 1] error"),
    "no more open files on rank 0": plant(NO_FILES, "error:", rank=0),
    "asked to stop while it starts (SIGUSR1)": stop_at_the_start,
    "scratch folders removed": remove_scratch,
    "a bit of rank 1's statistics of observations flipped": plant(BIT_FLIP, "differs from rank 0's"),
    "NaN reward on rank 1": plant(NAN, "error:"),
    "disk full": fill_disk,
    "run folder removed": remove_folder,
    "killed, newest checkpoint cut in half": cut_checkpoint,
}


def deterministic_part(folder: Path) -> str:
    """Return progress.csv without its time columns."""
    rows = [line.split(",") for line in (folder / "progress.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in ("wall_time", "steps_per_second")]
    return "\n".join(",".join(row[i] for i in kept) for row in rows)


def is_same_after_resuming(folder: Path, expected: str) -> bool:
    """Resume a run to its end; return True if its log is that of the undisturbed run."""
    code, output = Run(folder).end()
    if code != 0:
        print(output[-2000:])
    return code == 0 and deterministic_part(folder) == expected


HEADER = "| fault | message | seconds until the end | exit code | after `--resume` |\n|---|---|---|---|---|"


def inflict(title: str, folder: Path, expected: str) -> tuple[bool, str]:
    """Inflict a fault and resume; return whether the log is the expected one, and a row of the table."""
    fault = FAULTS[title]
    outcome = fault(folder)
    begins_anew = "started again: " if not folder.exists() else ""
    is_same = is_same_after_resuming(folder, expected)
    if fault is fill_disk:
        subprocess.run(["umount", str(folder)])
    verdict = "same as undisturbed" if is_same else "**different**"
    message = outcome.message.replace(str(folder.parent), "").replace("|", "/")
    seconds = f"{outcome.seconds:.0f}{outcome.remark}"
    return is_same, f"| {title} | `{message}` | {seconds} | {outcome.code} | {begins_anew}{verdict} |"


def inflict_all(titles: list[str], work: Path) -> tuple[bool, list[str]]:
    """Return whether every log is that of the undisturbed run, and the rows of the table."""
    ENVIRONMENT["TMPDIR"] = str(work)  # files of a killed mpirun stop a later one with the same process id
    code, output = Run(work / "undisturbed").end()
    assert code == 0, output
    expected = deterministic_part(work / "undisturbed")
    are_same, rows = [], []
    for number, title in enumerate(titles):
        is_same, row = inflict(title, work / f"fault{number}", expected)
        are_same.append(is_same)
        rows.append(row)
        print(row, flush=True)
    return all(are_same), rows


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS), help="faults (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/reliability-table.md", help="default: %(default)s")
    arguments = parser.parse_args()
    is_root = os.geteuid() == 0
    titles = [title for title in arguments.only if is_root or FAULTS[title] is not fill_disk]
    with tempfile.TemporaryDirectory() as folder:
        is_same, rows = inflict_all(titles, Path(folder))
    arguments.out.write_text("\n".join([HEADER, *rows]) + "\n")
    return int(not is_same)


if __name__ == "__main__":
    sys.exit(main())
