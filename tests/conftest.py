"""Fixtures that run the programs as a user does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from programs import ROOT, command, mpi_environment

from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment

prepare_environment()
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=3000, deadline=None, print_blob=True)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def mpirun():
    """Return the path of mpirun: the MPIRUN variable, the virtual environment's, or the site's."""
    beside_python = Path(sys.executable).parent / "mpirun"
    found = os.environ.get("MPIRUN") or (str(beside_python) if beside_python.exists() else shutil.which("mpirun"))
    if found is None:
        pytest.skip("no mpirun: install the mpi extra or a site MPI")
    return found


@pytest.fixture(scope="session")
def program(mpirun):
    """Return program("run", "--env", ..., ranks=2), which runs a module of the package to its end."""

    def start(module: str, *arguments: str, ranks: int = 1, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            command(mpirun, module, *arguments, ranks=ranks),
            capture_output=True, text=True, env=mpi_environment(), cwd=ROOT, timeout=300, **options,
        )  # fmt: skip

    return start


@pytest.fixture(scope="session")
def background_program(mpirun):
    """Return the same for a process that is left running in a process group of its own."""

    def start(module: str, *arguments: str, ranks: int = 1) -> subprocess.Popen:
        return subprocess.Popen(
            command(mpirun, module, *arguments, ranks=ranks),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=mpi_environment(), cwd=ROOT, start_new_session=True,
        )  # fmt: skip

    return start
