"""Submit training to SLURM or PBS:

    python -m hpc.submit --scheduler slurm --env leg --seeds 0-24 --ranks 8 --time 12:00:00

Everything is checked before anything is submitted. A job is an array with a task per run. A run stops with a checkpoint
before its time is over, is queued again, and continues. Site values are in hpc/env.sh.
"""

import argparse
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
SCHEDULERS = {"slurm": ("sbatch", "#SBATCH --partition={}", "#SBATCH --account={}"),
              "pbs": ("qsub", "#PBS -q {}", "#PBS -A {}")}  # fmt: skip
MAX_SEEDS = 10_000  # schedulers allow fewer tasks
NO_FAILURES = ("0", "2", "85")  # exit codes; 2 also comes from a second job for a run that is under way
SECONDS_TO_SAVE = 300  # before the end the scheduler warns; without a warning the run stops half-way through these


MAX_SHOWN = 10  # lines of tasks, folders


class Planned(NamedTuple):
    """A run that is to be submitted."""

    run: Any  # resolved
    folder: Any  # RunFolder
    num_bytes: float  # that its settings need per rank, beside the program itself


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m hpc.submit",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--scheduler", choices=SCHEDULERS, required=True, help="the site's batch system")
    add("--env", required=True, help="environment, as for tdpo_baselines.run")
    add("--alg", default="tdpo", help="algorithm (default: tdpo)")
    add("--seeds", default="0", help="seeds of the runs, such as 0-24 or 1,5,7 (default: 0)")
    add("--sweep", type=Path, metavar="FILE", help="each line is more arguments of a run, such as --set gamma=0.9; "
        "every line runs with every seed")  # fmt: skip
    add("--ranks", type=int, default=1, help="MPI ranks of a run (default: 1)")
    add("--time", default="12:00:00", help="time limit of a job, HH:MM:SS (default: 12:00:00); "
        "a run takes as many jobs as it needs")  # fmt: skip
    add("--runs", type=Path, default=Path("runs"), help="folder of the run folders (default: runs)")
    add("--jobs", type=Path, default=Path("jobs"), help="folder of the jobs' scripts and logs (default: jobs)")
    add("--name", help="name of the job (default: ALG-ENV)")
    add("--dry-run", action="store_true", help="show the script and the tasks; write and submit nothing")
    add("run_arguments", nargs="*", metavar="ARGUMENT", help="after --: more arguments of every run")
    return parser.parse_args(arguments)


def seeds(text: str) -> list[int]:
    """Parse seeds such as "0-2,7"."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if not match:
            raise ValueError(f"--seeds must be like 0-24 or 1,5,7, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"--seeds {part}: the last is before the first")
        if len(found) + last - first >= MAX_SEEDS:
            raise ValueError(f"--seeds {text}: more than {MAX_SEEDS} seeds; submit fewer at a time")
        found += range(first, last + 1)
    if len(set(found)) < len(found):
        raise ValueError(f"--seeds {text}: a seed is named twice")
    return found


def seconds(text: str) -> int:
    """Parse the limit of a job, HH:MM:SS."""
    match = re.fullmatch(r"(\d+):([0-5]\d):([0-5]\d)", text)
    if not match:
        raise ValueError(f"--time must be HH:MM:SS, got {text!r}")
    total = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    if total <= 2 * SECONDS_TO_SAVE:
        raise ValueError(f"--time must be more than {2 * SECONDS_TO_SAVE // 60} minutes, got {text}")
    return total


def clock(total: int) -> str:
    """Return seconds as HH:MM:SS."""
    return f"{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"


def max_walltime(time: str) -> str:
    """Return the time after which a run in a job of `time` stops by itself."""
    return clock(seconds(time) - SECONDS_TO_SAVE // 2)


def sweep_lines(path: Path | None) -> list[list[str]]:
    """Read the arguments in each line of a sweep's file."""
    if path is None:
        return [[]]
    lines = [shlex.split(line, comments=True) for line in path.read_text().splitlines()]
    found = [line for line in lines if line]
    if not found:
        raise ValueError(f"{path} has no line of arguments")
    return found


def tasks(arguments: argparse.Namespace) -> list[list[str]]:
    """Return the arguments of every run."""
    walltime = max_walltime(arguments.time)
    runs, found = arguments.runs.resolve(), []
    for number, line in enumerate(sweep_lines(arguments.sweep)):
        for seed in seeds(arguments.seeds):
            part = f"{number:03d}-" if arguments.sweep else ""
            folder = runs / f"{arguments.name}-{part}{seed}".replace(":", "-").replace("/", "-")
            own = ["--alg", arguments.alg, "--env", arguments.env, "--seed", str(seed), *line, *arguments.run_arguments]
            found.append([*own, "--log_dir", str(folder), "--max_walltime", walltime])
    return found


def plan(arguments: argparse.Namespace, all_tasks: list[list[str]]) -> list[Planned]:
    """Resolve every run; raise ValueError for invalid input now, before the jobs wait in the queue."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*", arguments.name):
        raise ValueError(f"--name must be a letter, then letters, digits, '.', '-' or '_', got {arguments.name!r}")
    if arguments.ranks < 1:
        raise ValueError(f"--ranks must be at least 1, got {arguments.ranks}")
    return [plan_one(task, arguments.ranks) for task in all_tasks]


def plan_one(task: list[str], num_ranks: int) -> Planned:
    """Resolve the run with these arguments; raise ValueError if it cannot run."""
    from tdpo_baselines.common.parallel.checks import noting_memory
    from tdpo_baselines.harness import stages
    from tdpo_baselines.harness.resolve import resolve
    from tdpo_baselines.run import parse as parse_run
    from tdpo_baselines.run import spell
    from tdpo_baselines.storage.run_folder import RunFolder

    names = [spell(word).partition("=")[0] for word in task]
    own = ("--alg", "--env", "--seed", "--log_dir", "--max_walltime")
    twice = next((name for name in own if names.count(name) > 1), "")
    if twice:
        raise ValueError(f"hpc.submit sets {twice} of the runs; do not pass it after -- or in a sweep")
    if any(word.split() != [word] for word in task):
        raise ValueError(f"arguments of runs must not have spaces: {next(w for w in task if w.split() != [w])!r}")
    parsed = parse_run(task)
    run = resolve(parsed)
    with noting_memory() as needs:  # this host will not run it
        stages.check(run.config.algorithm, run.stages, num_ranks)
    return Planned(run, RunFolder(parsed.log_dir), sum(needs.values()))


def summarise(arguments: argparse.Namespace, planned: list[Planned]) -> list[str]:
    """Return lines about what the runs will cost, and which of them continue what lies in their folders."""
    from tdpo_baselines.options.budget import format_count

    steps = sorted({run.budget.num_timesteps for run, _, _ in planned})
    budget = " to ".join(map(format_count, steps[:: max(len(steps) - 1, 1)]))
    rate, megabytes = steps[-1] / seconds(arguments.time), max(num_bytes for _, _, num_bytes in planned) / 1e6
    begun = [str(folder.path) for _, folder, _ in planned if folder.has_run()]
    lines = [
        f"{len(planned)} run(s) of {arguments.ranks} rank(s), {budget} timesteps each",
        f"time: to end in one job of {arguments.time}, a run must make {rate:,.0f} timesteps per second",
        "    (its log tells the expected time after some seconds)",
        f"memory: a rank needs {math.ceil(megabytes):,} MB for its settings, and 0.1 to 0.7 GB for the program",
        f"resume: a job continues what is in the folder of its run; {len(begun)} of the folders hold a run already",
    ]
    return [*lines, *(f"  {path}" for path in shorten(begun))]


def shorten(lines: list[str]) -> list[str]:
    """Return the first lines, and how many there are more."""
    more = len(lines) - MAX_SHOWN
    return [*lines[:MAX_SHOWN], f"... and {more} more"] if more > 0 else lines


def site_values() -> dict[str, str]:
    """Return the partition and account that hpc/env.sh sets."""
    names = ("TDPO_PARTITION", "TDPO_ACCOUNT")
    command = f"source {shlex.quote(str(CHECKOUT / 'hpc/env.sh'))} && printf '%s\\n' " + " ".join(
        f'"${n}"' for n in names
    )
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    return dict(zip(names, shown.split("\n")))


def render(arguments: argparse.Namespace, folder: Path, summary: list[str], num_tasks: int) -> str:
    """Return the batch script."""
    _, partition, account = SCHEDULERS[arguments.scheduler]
    site = site_values()
    lines = [partition.format(site["TDPO_PARTITION"])] * bool(site["TDPO_PARTITION"])
    lines += [account.format(site["TDPO_ACCOUNT"])] * bool(site["TDPO_ACCOUNT"])
    exported = {name: value for name, value in sorted(os.environ.items()) if name.startswith("TDPO_")}
    if not (CHECKOUT / ".venv/bin/python").exists():  # no checkout, but a package that is installed
        exported.setdefault("TDPO_PYTHON", sys.executable)
    lines += [
        f"export {name}={shlex.quote(value)}" for name, value in exported.items()
    ]  # PBS gives a job no environment
    values = {
        "NAME": arguments.name[:15] if arguments.scheduler == "pbs" else arguments.name,
        "ARRAY": f"0-{num_tasks - 1}",
        "RANKS": str(arguments.ranks),
        "TIME": arguments.time,
        "WARNING": str(SECONDS_TO_SAVE),
        "FOLDER": str(folder),
        "CHECKOUT": str(CHECKOUT),
        "SITE": "\n".join(lines),
        "SUMMARY": "\n".join(f"# {line}" for line in summary),
    }
    text = (CHECKOUT / "hpc" / f"{arguments.scheduler}.sh").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    is_single = arguments.scheduler == "pbs" and num_tasks == 1  # PBS has no arrays of one
    return without_array(text) if is_single else text


def without_array(script: str) -> str:
    """Return a PBS script for a single task."""
    script = re.sub(r"^#PBS -J .*\n", "", script, flags=re.MULTILINE)
    return re.sub(r"PBS_ARRAY_INDEX:\?[^}]*", "PBS_ARRAY_INDEX:-0", script)


def require_plain(path: Path, remedy: str) -> None:
    """Raise ValueError if a path has characters that a shell or a scheduler would interpret."""
    odd = re.search(r"[^\w./+,=:~-]", str(path))
    if odd:
        raise ValueError(f"{path} has {odd[0]!r} in its name, which batch scripts cannot handle; {remedy}")


def new_folder(jobs: Path, name: str) -> Path:
    """Return jobs/NAME-1, or the next number that is free."""
    number = 1
    while (jobs / f"{name}-{number}").exists():
        number += 1
    folder = (jobs / f"{name}-{number}").resolve()
    require_plain(folder, "pass another --jobs")
    return folder


def submit(parsed: argparse.Namespace, all_tasks: list[list[str]]) -> int:
    """Check the runs, write the job and submit it; return the scheduler's exit code."""
    command = SCHEDULERS[parsed.scheduler][0]
    require_plain(CHECKOUT, "move the checkout")
    planned = plan(parsed, all_tasks)
    if not parsed.dry_run and shutil.which(command) is None:
        raise ValueError(f"{command} is not installed here; submit from a login node, or pass --dry-run")
    folder, summary = new_folder(parsed.jobs, parsed.name), summarise(parsed, planned)
    script = render(parsed, folder, summary, len(all_tasks))
    lines = [" ".join(task) for task in all_tasks]
    if parsed.dry_run:
        print(script, "tasks.txt:", *shorten(lines), "", *summary, "nothing is written or submitted", sep="\n")
        return 0
    write_job(folder, script, lines)
    print(*summary, f"script, tasks and logs are in {folder}", sep="\n", flush=True)
    return subprocess.run([command, str(folder / "job.sh")], cwd=folder).returncode


def write_job(folder: Path, script: str, lines: list[str]) -> None:
    """Write the files of a job: the script, that of a single task, and the arguments of the runs."""
    folder.mkdir(parents=True)
    (folder / "tasks.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "job.sh").write_text(script)
    (folder / "again.sh").write_text(without_array(script))


def is_log(path: Path) -> bool:
    """Return whether a file of a job's folder is the log of a task."""
    return path.is_file() and path.name not in ("tasks.txt", "job.sh", "again.sh")


def failures(jobs: Path) -> Counter:
    """Count how often the run of each folder has ended with an error, by the logs of all jobs in a folder."""
    found: Counter = Counter()
    for tasks in jobs.glob("*/tasks.txt"):
        folders = re.findall(r"--log_dir=(\S+)", tasks.read_text())
        logs = "".join(log.read_text(errors="replace") for log in sorted(tasks.parent.iterdir()) if is_log(log))
        ends = re.findall(r"^\S+ \S+ task (\d+): exit code (\d+)$", logs, flags=re.MULTILINE)
        found.update(folders[int(index)] for index, code in ends if code not in NO_FAILURES)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parsed = parse(arguments)
    parsed.name = parsed.name or f"{parsed.alg}-{parsed.env}".replace(":", "-").replace("/", "-")
    try:
        return submit(parsed, tasks(parsed))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
