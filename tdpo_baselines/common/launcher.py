"""What mpirun or srun say of this process before MPI is started."""

import os

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def rank() -> int | None:
    """This process's rank as its launcher set it, None without a launcher."""
    return next((int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ), None)
