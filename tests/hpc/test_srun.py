"""Ranks that srun starts in a private Slurm, and mpiexec inside of one of its steps."""

import os
import subprocess
import sys

import mpis
import pytest
import slurm
from programs import ROOT, deterministic_part
from small_run import SMALL

from tdpo_baselines import run

pytestmark = pytest.mark.slow
LENGTH = ("--num_iterations", "20")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if not slurm.is_installed():
        pytest.skip("no Slurm here: make system-deps, as root")
    cluster = slurm.Slurm(tmp_path_factory.mktemp("slurm") / "slurm")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def serial_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "run"
    assert run.main([*SMALL, *LENGTH, "--quiet", "--log_dir", str(folder)]) == 0
    return folder


def srun(cluster, mpi, *words, folder):
    """Run a small training under srun; `words` are its options and what else comes before the program."""
    variables = {**mpi.variables, "MPI4PY_LIBMPI": mpi.libmpi, "PYTHONPATH": str(ROOT)}  # not for srun itself
    program = [sys.executable, "-m", "tdpo_baselines.run", *SMALL, *LENGTH, "--log_dir", str(folder)]
    options = [word for word in words if word.startswith("--")]
    settings = [f"{name}={value}" for name, value in variables.items() if value]
    command = ["srun", *options, "env", *settings, *words[len(options) :], *program]
    return subprocess.run(command, capture_output=True, text=True, env=cluster.environment, timeout=300)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Open MPI 5", ("--ntasks=2", "--mpi=pmix")),
        ("MPICH 4", ("--ntasks=2", "--mpi=pmi2")),
        ("MPICH 5", ("--ntasks=2", "--mpi=pmi2")),
        ("MPICH 5", ("--ntasks=1", "MPIEXEC", "-launcher", "fork", "-n", "2")),
    ],
)
def test_ranks_of_slurm_give_the_run_of_one(name, words, tmp_path, cluster, serial_run):
    mpi = mpis.find(name)
    words = [mpi.mpirun if word == "MPIEXEC" else word for word in words]
    process = srun(cluster, mpi, *words, folder=tmp_path / "run")
    if "can not load PMIx library" in process.stderr:
        pytest.skip("Slurm finds no PMIx library here")
    assert process.returncode == 0 and "2 rank(s)" in process.stdout, process.stdout + process.stderr
    assert deterministic_part(tmp_path / "run") == deterministic_part(serial_run)


def test_tasks_that_do_not_know_each_other_are_refused(tmp_path, cluster):
    process = srun(cluster, mpis.own(), "--ntasks=2", "--mpi=none", folder=tmp_path / "run")
    assert process.returncode == 2 and not os.path.exists(tmp_path / "run")
    assert "error: started as one of 2 tasks without a common MPI" in process.stderr


def test_single_task_trains_alone(tmp_path, cluster, serial_run):
    process = srun(cluster, mpis.own(), "--ntasks=1", "--mpi=none", folder=tmp_path / "run")
    assert process.returncode == 0, process.stderr
    assert deterministic_part(tmp_path / "run") == deterministic_part(serial_run)
