"""Facts about this process that mpirun or srun put into the environment before MPI is started.

The first words of a job come from here, so it imports little: with many ranks on few cores, imports take long.
"""

import os
import sys

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_LOCAL_SIZE_VARIABLES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")  # the latter: MPICH and Intel MPI


def _number(*names: str) -> int | None:
    """Return the first of these variables that is a number."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), None)


def rank() -> int | None:
    """Return this process's rank, None without a launcher."""
    return _number(*_RANK_VARIABLES)


def num_local_ranks() -> int | None:
    """Return the number of ranks on this host, None if the launcher does not tell."""
    return _number(*_LOCAL_SIZE_VARIABLES)


def num_expected() -> int | None:
    """Return the number of ranks that mpirun, or srun in this step, started; None without a launcher.

    An mpirun inside of a step of SLURM counts, not the step.
    """
    num = _number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    is_step = "SLURM_STEP_ID" in os.environ and "SLURM_PROCID" in os.environ
    return num or ((_number("SLURM_STEP_NUM_TASKS") or 1) if is_step else None)


def announce() -> None:
    """Let rank 0 of several say what is starting, and how many ranks would be faster on this host."""
    num = num_expected()
    if rank() or num is None or num == 1 or "--quiet" in sys.argv:
        return
    print(f"{num} ranks are starting{_asked_for()}", end="", flush=True)
    here, cores = num_local_ranks() or 1, num_cores()
    if here > cores:
        print(f"; {here} of them share {cores} core(s) of this host, and {cores} would be faster", end="")
    print(flush=True)


def _asked_for() -> str:
    """Return algorithm and environment as far as the command line has them; files that may have them come later."""
    words = " ".join(sys.argv[1:]).replace("=", " ").replace("--algo ", "--alg ").split()
    said = dict(zip(words, words[1:]))
    is_new = not {"--config", "--resume"} & set(words)
    names = (said.get("--alg", "tdpo" if is_new else ""), said.get("--env", ""))
    return f" {names[0]} on {names[1]}" if all(names) else ""


def num_cores() -> int:
    """Return the number of cores that the ranks of this host may use. A rank itself may be bound to one of them."""
    launcher = os.getppid()
    return len(os.sched_getaffinity(0) | os.sched_getaffinity(launcher))
