"""Facts about this process that mpirun or srun put into the environment before MPI is started."""

import os

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank() -> int | None:
    """Return this process's rank, None without a launcher."""
    return next((int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ), None)


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
