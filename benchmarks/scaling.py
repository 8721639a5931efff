"""Start-up, time per update and memory of a training command on several numbers of ranks, as a table.

    python benchmarks/scaling.py --env pendulum-nlr --ranks 1 2 4 8

Runs the command as a user does, once for one update and once for many. With more ranks than cores, or beside other
programs, wall time says little: processor time is that of all ranks together. Memory is the proportional set size, in
which ranks share what they have in common, and what a rank has for itself.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

COLUMNS = {  # of the table: how a value is shown
    "ranks": "{:d}",
    "one update and its checkpoint, s": "{:.1f}",
    "its processor time, s": "{:.1f}",
    "processor time per update, ms": "{:.1f}",
    "wall time per update, ms": "{:.1f}",
    "rank 0's own, MB": "{:.0f}",
    "another's own, MB": "{:.0f}",
    "all, MB": "{:.0f}",
    "load": "{:.0f}",
}


class Cost(NamedTuple):
    """Hold what a command took."""

    wall: float  # seconds
    processor: float  # seconds of all its processes
    memory: list[dict[str, float]]  # of each rank, MB, when all together had the most


def train(options: list[str], num_ranks: int, num_updates: int) -> Cost:
    """Train in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tdpo_baselines.run", *options, "--ranks", str(num_ranks), "--quiet"]
        command += ["--num_timesteps", "1e18", "--num_iterations", str(num_updates), "--log_dir", f"{folder}/run"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        watch = MemoryWatch(folder)
        if process.wait():
            sys.exit(f"{' '.join(command)} failed")
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Cost(wall, processor, watch.stop())


class MemoryWatch:
    """Reads the memory of the ranks of a run, four times a second, until it is stopped."""

    def __init__(self, folder: str):
        self._folder, self._most = folder.encode(), [{"Pss": 0.0, "own": 0.0}]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(0.25):
            found = [read_memory(path) for path in Path("/proc").iterdir() if is_rank(path, self._folder)]
            ranks = [memory for memory in found if memory]
            if sum(memory["Pss"] for memory in ranks) > sum(memory["Pss"] for memory in self._most):
                self._most = ranks

    def stop(self) -> list[dict[str, float]]:
        """Return the memory of each rank when all together had the most."""
        self._is_over.set()
        self._thread.join()
        return self._most


def is_rank(path: Path, folder: bytes) -> bool:
    """Return whether a folder of /proc belongs to a Python process that trains in `folder`."""
    try:
        words = (path / "cmdline").read_bytes().split(b"\0") if path.name.isdigit() else []
    except OSError:  # it has ended
        return False
    return any(word.startswith(folder) for word in words) and b"python" in words[0]


def read_memory(path: Path) -> dict[str, float]:
    """Return a process's proportional set size and what it shares with nobody, in MB; nothing if it has ended."""
    try:
        lines = (path / "smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    sizes = {line.partition(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"Pss": sizes["Pss"], "own": sizes["Private_Clean"] + sizes["Private_Dirty"]}


def measure(options: list[str], num_ranks: int, num_updates: int) -> list[float]:
    """Return the values of a row of the table."""
    load = os.getloadavg()[0]
    first, many = (train(options, num_ranks, num) for num in (1, 1 + num_updates))
    own = sorted((memory["own"] for memory in many.memory), reverse=True)  # rank 0 has the most: it writes checkpoints
    processor, wall = (1e3 * (b - a) / num_updates for a, b in zip(first[:2], many[:2]))
    memory = own[0], own[len(own) // 2] if len(own) > 1 else 0.0, sum(memory["Pss"] for memory in many.memory)
    return [num_ranks, first.wall, first.processor, processor, wall, *memory, load]


def main() -> None:
    """Run the command line; what it does not know goes to the training command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--updates", type=int, default=500, help="enough to take longer than the start")
    arguments, options = parser.parse_known_args()
    print("| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", sep="\n", flush=True)
    train(options, 1, 1)  # fills the caches
    for num_ranks in arguments.ranks:
        row = measure(options, num_ranks, arguments.updates)
        print("| " + " | ".join(shape.format(value) for shape, value in zip(COLUMNS.values(), row)) + " |", flush=True)


if __name__ == "__main__":
    main()
