"""The MPIs of this machine: that of the virtual environment, and those that `make mpis` unpacks into .mpi/."""

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from programs import ROOT, mpi_environment

NAMES = ("Open MPI 5", "Open MPI 4", "MPICH 5", "MPICH 4", "Intel MPI")
FOLDER = Path(os.environ.get("TDPO_MPIS", ROOT / ".mpi"))
DEBIAN = FOLDER / "debian/usr"
LIBRARIES = DEBIAN / "lib" / f"{os.uname().machine}-linux-gnu"


class Mpi(NamedTuple):
    """An mpirun, and the variables with which it and mpi4py find their libraries."""

    mpirun: str
    variables: dict[str, str]
    libmpi: str = ""  # that mpi4py loads; by default it finds its own

    @property
    def environment_of_launcher(self) -> dict[str, str]:
        return {**mpi_environment(), "MPIRUN": self.mpirun, **self.variables}

    @property
    def environment(self) -> dict[str, str]:
        return self.environment_of_launcher | ({"MPI4PY_LIBMPI": self.libmpi} if self.libmpi else {})


def find(name: str) -> Mpi:
    """Return an MPI by its name, or skip the test."""
    mpi = {
        "Open MPI 5": own,
        "Open MPI 4": debian_open_mpi,
        "MPICH 5": lambda: wheel("mpich"),
        "MPICH 4": debian_mpich,
        "Intel MPI": lambda: wheel("impi"),
    }[name]()
    if not mpi.mpirun or not Path(mpi.mpirun).exists():
        pytest.skip(f"no {name} here: make mpis")
    return mpi


def own() -> Mpi:
    beside_python = Path(sys.executable).parent / "mpirun"
    return Mpi(str(beside_python) if beside_python.exists() else shutil.which("mpirun") or "", {})


def debian_open_mpi() -> Mpi:
    variables = {
        "OPAL_PREFIX": str(DEBIAN),
        "OPAL_PKGLIBDIR": str(LIBRARIES / "openmpi/lib/openmpi3"),
        "LD_LIBRARY_PATH": str(LIBRARIES),
        "OMPI_MCA_mca_base_component_show_load_errors": "0",  # of networks whose libraries are not unpacked
    }
    return Mpi(str(DEBIAN / "bin/orterun"), variables, str(LIBRARIES / "libmpi.so.40"))


def debian_mpich() -> Mpi:
    folder = FOLDER / "debian-mpich"  # where libmpi.so.12 is a link to Debian's libmpich.so.12
    # An mpi4py built with it binds its symbols when it is loaded; that of PyPI does not, and finds TensorFlow's hwloc.
    variables = {"LD_LIBRARY_PATH": f"{folder}:{LIBRARIES}", "LD_BIND_NOW": "1"}
    return Mpi(str(DEBIAN / "bin/mpiexec.hydra"), variables, str(folder / "libmpi.so.12"))


def wheel(name: str) -> Mpi:
    prefix = FOLDER / name
    fabric = prefix / "opt/mpi/libfabric/lib"
    variables = {"LD_LIBRARY_PATH": f"{prefix}/lib:{fabric}"}
    if name == "impi":
        variables |= {"I_MPI_ROOT": str(prefix), "FI_PROVIDER_PATH": str(fabric / "prov")}
    return Mpi(str(prefix / "bin/mpiexec"), variables, str(prefix / "lib/libmpi.so.12"))
