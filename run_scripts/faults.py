"""What a run survives: faults are inflicted on a real run, which is then resumed and compared with an undisturbed one.

    python run_scripts/faults.py            # writes docs/reliability-table.md; needs a few minutes
    python run_scripts/faults.py --kills 30 # besides, SIGKILL to everything at random moments

Everything happens in a temporary folder. A fault that needs root (a full disk) is skipped without it.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUM_ITERATIONS = 3000
RUN = (
    *("--env", "pendulum-nlr", "--set", "num_trajectories=6", "num_branches=3", "hidden_sizes=16,16"),
    *("--num_iterations", str(NUM_ITERATIONS), "--checkpoint_every", "20"),
)
PLANTED = """
import sys, numpy as np, tdpo_baselines.tdpo.tdpo as tdpo
from tdpo_baselines import run
from tdpo_baselines.common.parallel import launcher
iterate, best_step = tdpo.Learner.iterate, tdpo.best_step
def disturbed(self, iteration, total):
    if iteration == 130 and launcher.rank() == 1:
        {code}
    return iterate(self, iteration, total)
tdpo.Learner.iterate = disturbed
sys.exit(run.main())
"""
EXCEPTION = "raise KeyError('planted')"
BIT_FLIP = "self.theta = self.theta.copy(); self.theta.view(np.uint8)[5] ^= 4"
NAN = """
        rollouts = self._roller.rollouts
        def broken(*a, **k):
            out = rollouts(*a, **k); out.returns[0] = out.rewards[0, :1] = np.nan
            return out
        self._roller.rollouts = broken
"""


def find_mpirun() -> str:
    beside = Path(sys.executable).parent / "mpirun"
    return os.environ.get("MPIRUN") or (str(beside) if beside.exists() else shutil.which("mpirun") or "mpirun")


ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Run:
    """A training run on two ranks, in the background."""

    def __init__(self, folder: Path, planted: str = ""):
        self.folder = folder
        program = ["-c", PLANTED.format(code=planted)] if planted else ["-m", "tdpo_baselines.run"]
        command = [find_mpirun(), "-np", "2", sys.executable, *program, *RUN, "--log_dir", str(folder), "--resume"]
        self._output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, cwd=ROOT, stdout=self._output, stderr=subprocess.STDOUT, start_new_session=True
        )

    def wait_for_iteration(self, number: int) -> None:
        progress = self.folder / "progress.csv"
        while self.process.poll() is None and not (progress.exists() and progress.read_text().count("\n") > number):
            time.sleep(0.01)

    def rank_process(self, rank: int) -> int:
        """Process id of a rank."""
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in words and f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in variables:
                return int(entry.name)
        raise RuntimeError(f"no process of rank {rank}")

    def kill_everything(self) -> None:
        for rank in (0, 1):
            with contextlib.suppress(RuntimeError, ProcessLookupError):  # not begun, or ended
                os.kill(self.rank_process(rank), signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def end(self, seconds: float = 180) -> tuple[int, str]:
        """Exit code and what was printed; a run that hangs is killed and reported so."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill_everything()
            code = -1
        self._output.seek(0)
        return code, self._output.read()


@dataclass
class Outcome:
    message: str  # what the run said
    seconds: float  # from the fault to the end of the job
    code: int


def the_line(output: str, *words: str) -> str:
    """The first line with one of the words."""
    lines = [line.strip() for line in output.splitlines() if any(word in line for word in words)]
    return lines[0] if lines else "(nothing: " + output[-200:] + ")"


def after(fault: Callable[[Run], None], folder: Path, *words: str, planted: str = "") -> Outcome:
    run = Run(folder, planted)
    run.wait_for_iteration(120)
    began = time.monotonic()
    fault(run)
    code, output = run.end()
    return Outcome(the_line(output, *words), time.monotonic() - began, code)


def rank_killed(folder: Path) -> Outcome:
    return after(lambda run: os.kill(run.rank_process(1), signal.SIGKILL), folder, "rank 1")


def rank_stopped(folder: Path) -> Outcome:
    def stop(run: Run) -> None:
        process = run.rank_process(1)
        os.kill(process, signal.SIGSTOP)
        time.sleep(65)
        os.kill(process, signal.SIGCONT)

    return after(stop, folder, "finished")


def planted(code: str, *words: str) -> Callable[[Path], Outcome]:
    return lambda folder: after(lambda run: None, folder, *words, planted=code)


def disk_full(folder: Path) -> Outcome:
    """On a small file system of its own, filled up while the run goes on."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)], check=True)
    filler = folder / "filler"

    def fill(run: Run) -> None:
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))

    outcome = after(fill, folder, "No space left", "cannot write")
    filler.unlink(missing_ok=True)
    return outcome


def folder_removed(folder: Path) -> Outcome:
    def remove(run: Run) -> None:
        while folder.exists():
            shutil.rmtree(folder, ignore_errors=True)

    return after(remove, folder, "disappeared", "No such file")


def checkpoint_cut(folder: Path) -> Outcome:
    run = Run(folder)
    run.wait_for_iteration(120)
    run.kill_everything()
    newest = max((folder / "checkpoints").glob("iteration-*")) / "state.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    began = time.monotonic()
    code, output = Run(folder).end()
    return Outcome(the_line(output, "torn or corrupt"), time.monotonic() - began, code)


FAULTS = {
    "rank 1 killed (SIGKILL)": rank_killed,
    "rank 1 stopped for 65 s (SIGSTOP)": rank_stopped,
    "exception on rank 1": planted(EXCEPTION, "[rank 1] KeyError"),
    "a bit of rank 1's parameters flipped": planted(BIT_FLIP, "differs from rank 0's"),
    "NaN reward on rank 1": planted(NAN, "error:"),
    "disk full": disk_full,
    "run folder removed": folder_removed,
    "killed, newest checkpoint cut in half": checkpoint_cut,
}


def deterministic_part(folder: Path) -> str:
    rows = [line.split(",") for line in (folder / "progress.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name not in ("wall_time", "steps_per_second")]
    return "\n".join(",".join(row[i] for i in kept) for row in rows)


def is_same_after_resuming(folder: Path, expected: str) -> bool:
    code, output = Run(folder).end()
    if code != 0:
        print(output[-2000:])
    return code == 0 and deterministic_part(folder) == expected


def is_same_after_kills(folder: Path, num_kills: int, expected: str) -> bool:
    """Kill and resume until living runs were killed that often; one that ends is compared and begun anew."""
    rng, num_met, num_ends, is_same = random.Random(), 0, 0, True
    while num_met < num_kills:
        run = Run(folder)
        time.sleep(rng.uniform(0, 12))
        if run.process.poll() is None:
            num_met += 1
            run.kill_everything()
        else:
            num_ends += 1
            is_same &= is_same_after_resuming(folder, expected)
            shutil.rmtree(folder)
    print(f"{num_met} kills; {num_ends} runs came to their end in spite of them", flush=True)
    return is_same and is_same_after_resuming(folder, expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="also kill all N times at random moments")
    parser.add_argument("--only", nargs="+", choices=FAULTS, help="some of the faults")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/reliability-table.md")
    arguments = parser.parse_args()
    lines = [
        "| fault | what the run said | seconds until it ended | exit code | after `--resume` |",
        "|---|---|---|---|---|",
    ]
    has_failed = False
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        ENVIRONMENT["TMPDIR"] = name  # what a killed mpirun leaves behind stops a later one of the same process number
        code, output = Run(work / "undisturbed").end()
        assert code == 0, output
        expected = deterministic_part(work / "undisturbed")
        for number, (title, fault) in enumerate(FAULTS.items()):
            folder = work / f"fault{number}"
            if (arguments.only and title not in arguments.only) or (fault is disk_full and os.geteuid() != 0):
                continue
            outcome = fault(folder)
            is_same = is_same_after_resuming(folder, expected)
            has_failed |= not is_same
            if fault is disk_full:
                subprocess.run(["umount", str(folder)])
            said = outcome.message.replace(name, "").replace("|", "/")
            same = "same as undisturbed" if is_same else "**different**"
            lines.append(f"| {title} | `{said}` | {outcome.seconds:.0f} | {outcome.code} | {same} |")
            print(lines[-1], flush=True)
        if arguments.kills:
            is_same = is_same_after_kills(work / "killed", arguments.kills, expected)
            has_failed |= not is_same
            same = "same as undisturbed" if is_same else "**different**"
            lines.append(f"| all killed {arguments.kills} times at random moments | | | | {same} |")
            print(lines[-1])
    arguments.out.write_text("\n".join(lines) + "\n")
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
