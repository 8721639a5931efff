"""Start ranks on this host, with any MPI: Open MPI 4 and 5, MPICH, Intel MPI."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import launcher

SECONDS_BETWEEN_LOOKS = 0.2
EXIT_CODE_FILE = "TDPO_EXIT_CODE_FILE"  # variable of the ranks that `run` starts
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


def start(
    num_ranks: int, module: str, arguments: Sequence[str], *, variables: Mapping[str, str] | None = None, **options
) -> subprocess.Popen:
    """Start a module of the package on several ranks, which find modules where this process does and nowhere else."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return subprocess.Popen(
        [*command(num_ranks), sys.executable, "-P", "-m", f"tdpo_baselines.{module}", *arguments],
        env={**VARIABLES, **os.environ, "PYTHONPATH": path, **(variables or {})},
        start_new_session=True,  # Ctrl-C is passed on as a request to save, which mpirun itself would not do
        **options,
    )


def run(num_ranks: int, module: str, arguments: Sequence[str]) -> int:
    """Run a module of the package on several ranks; return its exit code.

    Ctrl-C, SIGTERM and SIGUSR1 ask the ranks to save and stop; a second Ctrl-C ends them at once.
    """
    with tempfile.TemporaryDirectory() as scratch:
        told = Path(scratch, "exit_code")
        code = _run(num_ranks, module, arguments, told)
        return int(told.read_text()) if code == 0 and told.exists() else code


def tell(exit_code: int) -> int:
    """Tell `run` the exit code of a clean stop, and return that of this rank: mpirun comments on any but 0."""
    path = os.environ.get(EXIT_CODE_FILE)
    if path is None or launcher.rank() is None:
        return exit_code
    if not launcher.rank():
        Path(path).write_text(str(exit_code))
    return 0


def _run(num_ranks: int, module: str, arguments: Sequence[str], told: Path) -> int:
    """Run a module, passing on signals; return the exit code of mpirun."""
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves SIGHUP
            signal.signal(number, lambda number, frame: asked.append(number))
    variables = {EXIT_CODE_FILE: str(told)}
    process = start(num_ranks, module, arguments, variables=variables, stdin=subprocess.DEVNULL)
    num_passed_on = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(SECONDS_BETWEEN_LOOKS)
            return code if code >= 0 else 128 - code
        for wish in asked[num_passed_on:]:
            process.send_signal(signal.SIGINT if num_passed_on and wish == signal.SIGINT else signal.SIGUSR1)
            num_passed_on += 1
