"""Start ranks on this host, with any MPI: Open MPI 4 and 5, MPICH, Intel MPI."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 0.2
VARIABLES = {  # each MPI reads its own
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # more ranks than cores: Open MPI 4
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
    "OMPI_MCA_hwloc_base_binding_policy": "none",  # two runs side by side must not share the first cores
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "I_MPI_PIN": "0",
}


def command(num_ranks: int) -> list[str]:
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


def start(num_ranks: int, module: str, arguments: Sequence[str], **options) -> subprocess.Popen:
    """Start a module of the package on several ranks, which find modules where this process does and nowhere else."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [*command(num_ranks), sys.executable, "-P", "-m", f"tdpo_baselines.{module}", *arguments],
        env={**VARIABLES, **os.environ, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is passed on as a request to save, which mpirun itself would not do
        **options,
    )


def run(num_ranks: int, module: str, arguments: Sequence[str]) -> int:
    """Run a module of the package on several ranks; return its exit code.

    Ctrl-C, SIGTERM and SIGUSR1 ask the ranks to save and stop; a second Ctrl-C ends them at once.
    """
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, lambda number, frame: asked.append(number))
    process, num_passed_on = start(num_ranks, module, arguments, stdin=subprocess.DEVNULL), 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(SECONDS_BETWEEN_LOOKS)
            return code if code >= 0 else 128 - code
        for wish in asked[num_passed_on:]:
            process.send_signal(signal.SIGINT if num_passed_on and wish == signal.SIGINT else signal.SIGUSR1)
            num_passed_on += 1
