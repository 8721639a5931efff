"""What mpirun or srun say of this process before MPI is started."""

import os

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank() -> int | None:
    """This process's rank as its launcher set it, None without a launcher."""
    return next((int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ), None)


def num_local_ranks() -> int | None:
    """Ranks on this host, if the launcher says."""
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE")
    return None if local is None else int(local)


def num_expected() -> int | None:
    """Ranks that the launcher started: mpirun's, or srun's of this step; None without one."""
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return int(os.environ["OMPI_COMM_WORLD_SIZE"])
    is_step = "SLURM_STEP_ID" in os.environ and "SLURM_PROCID" in os.environ
    return int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) if is_step else None
