"""Facts about this process that mpirun or srun put into the environment before MPI is started."""

import os
import shutil
import sys
from pathlib import Path

ANY_RANKS = {  # with which Open MPI accepts root, and more ranks than cores
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # version 4
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
}
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank() -> int | None:
    """Return this process's rank, None without a launcher."""
    return next((int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ), None)


def mpirun_command(num_ranks: int) -> list[str]:
    """Return the words before a command that start it on several ranks; raise ValueError if there is no mpirun.

    The variable MPIRUN names it; else it is the one beside Python or on the path.
    """
    if isinstance(num_ranks, bool) or not isinstance(num_ranks, int) or num_ranks < 1:
        raise ValueError(f"ranks must be a whole number of at least 1, got {num_ranks!r}")
    if num_ranks == 1:
        return []
    beside_python = Path(sys.executable).parent / "mpirun"
    beside = str(beside_python) if beside_python.exists() else None
    mpirun = os.environ.get("MPIRUN") or beside or shutil.which("mpirun")
    if mpirun is None:
        raise ValueError('ranks > 1 needs mpirun: pip install "tdpo_baselines[mpi]", or load the MPI of your machine')
    return [mpirun, "-np", str(num_ranks)]


def num_local_ranks() -> int | None:
    """Return the number of ranks on this host, None if the launcher does not tell."""
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    return None if local is None else int(local)


def num_expected() -> int | None:
    """Return the number of ranks that mpirun, or srun in this step, started; None without a launcher."""
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])
    is_step = "SLURM_STEP_ID" in os.environ and "SLURM_PROCID" in os.environ
    return int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) if is_step else None
