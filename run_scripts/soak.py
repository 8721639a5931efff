"""Soak: runs of all algorithms under random faults at random moments, resumed on other numbers of ranks until they end.

    python -m run_scripts.soak --minutes 120   # writes docs/reliability-soak.md
    python -m run_scripts.soak --kills 100     # only kills, until there were a hundred

Every run that has ended must equal an undisturbed one, to the byte, and leave no process and no file behind. A session
that does not end is a failure, and so is one that does not go on from the newest checkpoint. In the last quarter of
the time every algorithm trains undisturbed for long, and its memory is read. Needs root, for a small disk.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from run_scripts import faults
from run_scripts.faults import ROOT, Run

REPLAY = "steps_per_round=20 updates_per_round=6 rounds_per_iteration=3 random_timesteps=300 batch_size=40"
SETTINGS = {  # by algorithm, so that a run takes some seconds
    "tdpo": "num_iterations=1000 num_trajectories=6 num_branches=3",
    "trpo": "num_iterations=600 num_trajectories=5 steps_per_trajectory=300",
    "ppo1": "num_iterations=600 num_trajectories=5 steps_per_trajectory=110 minibatch_size=100 num_epochs=2",
    "ddpg": f"num_iterations=400 num_trajectories=5 {REPLAY} buffer_size=5000 parameter_noise_std=0.2",
    "td3": f"num_iterations=400 num_trajectories=5 {REPLAY} buffer_size=5000 noise=ou noise_bandwidth=0.3",
    "ars": "num_iterations=900 num_trajectories=6 num_top=3",
    "cma": "num_iterations=900 num_trajectories=6",
}
LONG = "num_iterations=1000000000 num_timesteps=1000000000000000"
MAX_RANKS = 3
SECONDS_TO_END = 1800.0  # on a busy machine
SECONDS_TO_VANISH = 20.0  # for processes, after the end of mpirun
SHARE_OF_MEMORY = 0.25  # of the time
OURS = (
    r"(config\.json|progress\.csv|\.lock|rank_\d+\.log|best|checkpoints|(best|checkpoints)/iteration-\d+(/state\..*)?)"
)


def arguments_of(algorithm: str, extra: str = "") -> list[str]:
    """Return the options of a run."""
    words = f"env=pendulum-nlr hidden_sizes=8,8 checkpoint_every=10 {SETTINGS[algorithm]} {extra}".split()
    return ["--alg", algorithm, *(f"--{word}" for word in words)]


def kill_all(run: Run, rng: random.Random) -> None:
    run.kill()


def kill_rank(run: Run, rng: random.Random) -> None:
    os.kill(run.rank_process(rng.randrange(run.num_ranks)), signal.SIGKILL)


def ask_rank(number: int, run: Run, rng: random.Random) -> None:
    os.kill(run.rank_process(rng.randrange(run.num_ranks)), number)


def ask_all(run: Run, rng: random.Random) -> None:
    """Ask through mpirun, as a scheduler does."""
    run.process.send_signal(signal.SIGUSR1)


def suspend(run: Run, rng: random.Random) -> None:
    """Stop all processes for some seconds, as closing a laptop does."""
    processes = run.processes()
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        time.sleep(rng.uniform(1, 10) if number == signal.SIGSTOP else 0)


def fill_disk(run: Run, rng: random.Random) -> None:
    with contextlib.suppress(OSError), open(run.folder.parent / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))


def remove_scratch(run: Run, rng: random.Random) -> None:
    """Remove the temporary files of mpirun and of the ranks."""
    shutil.rmtree(run.folder.parent.parent / "scratch", ignore_errors=True)


def remove_run(run: Run, rng: random.Random) -> None:
    while run.folder.exists():
        shutil.rmtree(run.folder, ignore_errors=True)


def cut_checkpoint(run: Run, rng: random.Random) -> None:
    """Kill all and cut the newest checkpoint in half."""
    run.kill()
    if found := checkpoints(run.folder)[1:]:  # a single one is all a run has
        newest = found[-1] / "state.data-00000-of-00001"
        os.truncate(newest, newest.stat().st_size // 2)


FAULTS: dict[str, Callable[[Run, random.Random], None]] = {
    "all killed": kill_all,
    "one rank killed": kill_rank,
    "SIGTERM to one rank": partial(ask_rank, signal.SIGTERM),
    "SIGUSR1 to one rank": partial(ask_rank, signal.SIGUSR1),
    "SIGUSR1 to mpirun": ask_all,
    "all suspended for 1 to 10 s": suspend,
    "disk full": fill_disk,
    "scratch removed": remove_scratch,
    "run folder removed": remove_run,
    "all killed, newest checkpoint cut": cut_checkpoint,
}
KILLS = ("all killed", "one rank killed", "all killed, newest checkpoint cut")
WEIGHTS = {name: 10 if name in KILLS[:2] else 3 if "SIG" in name else 2 for name in FAULTS}


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a run, the oldest first."""
    return sorted((folder / "checkpoints").glob("iteration-*"))


class Failure(Exception):
    """Something that no fault may lead to."""


def wait_until(is_reached: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is reached or time is over; return whether it is reached."""
    end = time.monotonic() + seconds
    while not is_reached():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def num_bytes(path: Path) -> int:
    """Return the size of a file, 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def resident_megabytes(run: Run) -> float:
    """Return the resident memory of the run's ranks."""
    total = 0
    for process in run.processes():
        with contextlib.suppress(OSError):
            total += int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1])
    return total / 1024


@dataclass
class Soak:
    """Runs in a folder with a small disk of its own, and what became of them."""

    work: Path
    rng: random.Random
    weights: dict[str, int] = field(default_factory=lambda: WEIGHTS)  # of the faults
    expected: dict[str, str] = field(default_factory=dict)  # undisturbed logs, by algorithm
    size: dict[str, int] = field(default_factory=dict)  # of these logs, in bytes
    counts: Counter = field(default_factory=Counter)  # (fault, algorithm), and ("ended", algorithm)
    seconds: dict[str, float] = field(default_factory=dict)  # the longest from a fault to the end
    num_sessions: int = 0
    newest: Run | None = None
    failures: list[str] = field(default_factory=list)
    memory: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def num_kills(self) -> int:
        return sum(number for (fault, _), number in self.counts.items() if fault in KILLS)

    @property
    def folder(self) -> Path:
        return self.work / "disk" / "run"

    def start(self, algorithm: str, num_ranks: int, extra: str = "") -> Run:
        scratch = self.work / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        variables = {"TMPDIR": str(scratch), "OMPI_MCA_btl_sm_backing_directory": str(scratch)}
        self.num_sessions += 1
        self.newest = Run(self.folder, arguments=arguments_of(algorithm, extra), num_ranks=num_ranks, **variables)
        return self.newest

    def train_undisturbed(self, algorithm: str) -> None:
        """Train once on one rank, and keep the log."""
        run = self.start(algorithm, 1)
        code, output = run.end(SECONDS_TO_END)
        assert code == 0, output
        self.expected[algorithm] = faults.deterministic_part(run.folder)
        self.size[algorithm] = num_bytes(run.folder / "progress.csv")
        print(f"{time.strftime('%H:%M:%S')} {algorithm}: undisturbed, {self.size[algorithm]} bytes", flush=True)
        shutil.rmtree(run.folder)

    def train(self, algorithm: str) -> None:
        """Train with a fault in every session until the run has ended; raise Failure if that is not as undisturbed."""
        code, num_ranks = -1, 0
        while code != 0:
            num_ranks = self.rng.choice([n for n in range(1, MAX_RANKS + 1) if n != num_ranks])
            (fault,) = self.rng.choices(list(self.weights), self.weights.values())
            code = self.disturb(algorithm, num_ranks, fault)
        if faults.deterministic_part(self.folder) != self.expected[algorithm]:
            raise Failure(f"{algorithm}: the log differs from that of an undisturbed run")
        found = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]
        if odd := [path for path in found if not re.fullmatch(OURS, path)]:
            raise Failure(f"{algorithm}: left behind {odd}")
        self.counts["ended", algorithm] += 1
        shutil.rmtree(self.folder)

    def disturb(self, algorithm: str, num_ranks: int, fault: str) -> int:
        """Run a session with a fault at a random moment to its end; return its exit code."""
        newest = checkpoints(self.folder)[-1:]
        run = self.start(algorithm, num_ranks)
        self.wait_for_a_random_moment(run, algorithm)
        began = time.monotonic()
        try:
            if run.process.poll() is not None:
                raise ProcessLookupError
            FAULTS[fault](run, self.rng)
        except ProcessLookupError:  # the rank is not there yet, or has ended
            fault = "none"
        code, output = run.end(SECONDS_TO_END)
        seconds = time.monotonic() - began
        self.counts[fault, algorithm] += 1
        self.seconds[fault] = max(seconds, self.seconds.get(fault, 0.0))
        what = f"{algorithm} on {num_ranks} rank(s), {fault}: exit code {code} after {seconds:.1f} s"
        print(f"{time.strftime('%H:%M:%S')} {what}, {len(checkpoints(self.folder))} checkpoints", flush=True)
        (self.folder.parent / "filler").unlink(missing_ok=True)
        try:
            self.check(run, code, output, newest, is_killed=fault in KILLS)
        except Failure as error:
            raise Failure(f"{what}: {error}\n{output[-3000:]}") from error
        return code

    def wait_for_a_random_moment(self, run: Run, algorithm: str) -> None:
        """Wait some seconds from the start, or for some more rows of the log."""
        seconds, progress = self.rng.uniform(0, 10), run.folder / "progress.csv"
        enough = num_bytes(progress) + self.size[algorithm] * self.rng.uniform(0, 0.5)
        if self.rng.random() < 0.7:
            wait_until(lambda: run.process.poll() is not None or num_bytes(progress) > enough, SECONDS_TO_END)
            seconds /= 20
        wait_until(lambda: run.process.poll() is not None, seconds)

    def check(self, run: Run, code: int, output: str, newest: list[Path], *, is_killed: bool) -> None:
        """Raise Failure for what a session did wrong: hang, begin anew, or leave something behind."""
        if code == -1:
            raise Failure("it hung")
        resumed = re.search(r"resumed at iteration (\d+)", output)
        if resumed and newest and f"iteration-{int(resumed[1]):09d}" != newest[0].name and "torn" not in output:
            raise Failure(f"the newest checkpoint was {newest[0].name}")
        if "Traceback" in output:
            raise Failure("traceback")
        if not wait_until(lambda: not run.processes(), SECONDS_TO_VANISH):
            raise Failure(f"left processes {run.processes()}")
        if not is_killed and (left := list((self.work / "scratch").rglob("*"))):
            raise Failure(f"left files {left}")

    def watch_memory(self, algorithm: str, seconds: float) -> None:
        """Train undisturbed for long; note the resident memory after a third of the time and at the end."""
        run = self.start(algorithm, 1, LONG)
        time.sleep(seconds / 3)
        early = resident_megabytes(run)
        time.sleep(seconds * 2 / 3)
        self.memory[algorithm] = early, resident_megabytes(run)
        print(f"{algorithm}: {early:.0f} MB, then {self.memory[algorithm][1]:.0f} MB", flush=True)
        run.process.send_signal(signal.SIGUSR1)
        code, output = run.end(SECONDS_TO_END)
        if code != 85:
            raise Failure(f"{algorithm}: exit code {code} after SIGUSR1\n{output}")
        shutil.rmtree(run.folder)

    def note(self, function: Callable[..., None], *arguments) -> None:
        """Call a function; note a failure, and keep the run folder."""
        try:
            function(*arguments)
        except Failure as error:
            self.failures.append(str(error))
            kept = self.work.with_name(f"{self.work.name}-failure{len(self.failures)}")
            print(f"FAILURE: {error}\nsee {kept}", flush=True)
            if self.folder.exists():
                shutil.copytree(self.folder, kept)
                shutil.rmtree(self.folder)

    def run(self, seconds: float) -> None:
        """Disturb runs of all algorithms in turn; then watch their memory."""
        end = time.monotonic() + seconds
        for algorithm in SETTINGS:
            self.train_undisturbed(algorithm)
        while time.monotonic() < end - SHARE_OF_MEMORY * seconds:
            for algorithm in SETTINGS:
                self.note(self.train, algorithm)
        for number, algorithm in enumerate(SETTINGS):
            self.note(self.watch_memory, algorithm, (end - time.monotonic()) / (len(SETTINGS) - number))

    def run_kills(self, num: int) -> None:
        """Kill runs of all algorithms in turn, until there were enough kills."""
        self.weights = {name: WEIGHTS[name] for name in KILLS}
        for algorithm in SETTINGS:
            self.train_undisturbed(algorithm)
        while self.num_kills < num:
            for algorithm in SETTINGS:
                self.note(self.train, algorithm)


def table(soak: Soak, seconds: float) -> str:
    """Return the outcome as a page."""
    names = list(SETTINGS)
    lines = [f"| fault | {' | '.join(names)} | longest until the end, s |", "|---" * (len(names) + 2) + "|"]
    for fault in soak.weights:
        numbers = [soak.counts[fault, name] for name in names]
        lines.append(f"| {fault} | {' | '.join(map(str, numbers))} | {soak.seconds.get(fault, 0):.0f} |")
    ended = [soak.counts["ended", name] for name in names]
    lines.append(f"| runs that ended, same as undisturbed | {' | '.join(map(str, ended))} | |")
    if soak.memory:
        memory = [f"{low:.0f}, {high:.0f}" for low, high in (soak.memory.get(name, (0, 0)) for name in names)]
        lines.append(f"| MB after a third of a long run, and at its end | {' | '.join(memory)} | |")
    failures = "; ".join(text.splitlines()[0] for text in soak.failures)
    verdict = f"Failures: {failures}" if failures else "No failure."
    lines += ["", f"{seconds / 60:.0f} minutes, {soak.num_sessions} sessions, {soak.num_kills} kills. {verdict}"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120.0, help="default: %(default)s")
    parser.add_argument("--kills", type=int, metavar="N", help="only kill, until there were N kills")
    parser.add_argument("--seed", type=int, default=0, help="of the faults and their moments (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/reliability-soak.md", help="default: %(default)s")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended early"))
    began, work = time.monotonic(), Path(tempfile.mkdtemp(prefix="soak-"))
    (work / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(work / "disk")], check=True)
    soak = Soak(work, random.Random(arguments.seed))
    try:
        soak.run_kills(arguments.kills) if arguments.kills else soak.run(60 * arguments.minutes)
    finally:
        if soak.newest:
            soak.newest.kill()
        arguments.out.write_text(table(soak, time.monotonic() - began))
        subprocess.run(["umount", "--lazy", str(work / "disk")])
        shutil.rmtree(work)
    return int(bool(soak.failures))


if __name__ == "__main__":
    sys.exit(main())
