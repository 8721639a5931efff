"""Training over several hosts."""

import subprocess
import sys

import hosts
import mpis
import pytest
from programs import ROOT, deterministic_part

pytestmark = pytest.mark.slow

RUN = (
    "--env",
    "pendulum-nlr",
    "--set",
    "num_trajectories=6",
    "num_branches=2",
    "hidden_sizes=8,8",
    "--num_iterations=60",
)
NUM_RANKS = 6


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Return three hosts."""
    missing = hosts.why_not()
    if missing:
        pytest.skip(missing)
    three = hosts.Hosts(tmp_path_factory.mktemp("hosts") / "hosts", 3)
    try:
        three.start()
        yield three
    finally:
        three.stop()


@pytest.fixture(params=["Open MPI 5", "MPICH 5", "MPICH 4"])
def three_hosts(request, several):
    """Return three_hosts(code, *arguments), which runs Python code on six ranks, two on each of three hosts."""
    mpi = mpis.find(request.param)

    def start(code: str, *arguments: str) -> str:
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
        command = several.mpirun(mpi.mpirun, NUM_RANKS, sys.executable, "-c", code, *arguments)
        variables = {**several.environment, **mpi.environment}
        process = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert process.returncode == 0, process.stderr
        return process.stdout

    return start


@pytest.fixture(scope="module")
def run_of_one(tmp_path_factory, program):
    folder = tmp_path_factory.mktemp("one") / "run"
    assert program("run", *RUN, "--log_dir", str(folder)).returncode == 0
    return folder


def test_three_hosts_give_the_run_of_one(tmp_path, run_of_one, three_hosts):
    code = (
        "import os, socket; from mpi4py import MPI; os.write(1, f'on {socket.gethostname()}\\n'.encode())\n"
        "from tdpo_baselines import run; sys.exit(run.main())"
    )
    printed = three_hosts(code, *RUN, "--log_dir", str(tmp_path / "three"))
    assert {f"on tdpohost{i}" for i in (1, 2, 3)} <= set(printed.splitlines()), printed
    assert deterministic_part(tmp_path / "three") == deterministic_part(run_of_one)


def test_one_rank_of_each_host_goes_first(tmp_path, three_hosts):
    code = (
        "import os, socket; from pathlib import Path; from tdpo_baselines.common.parallel.comm import connect\n"
        "mine, comm = Path(sys.argv[1]) / socket.gethostname(), connect()\n"
        "def was_there():\n    was = mine.exists(); mine.touch(); return was\n"
        "os.write(1, f'{mine.name} {comm.warm_up(was_there)}\\n'.encode())"
    )
    printed = three_hosts(code, str(tmp_path)).splitlines()
    assert sorted(printed) == sorted(f"tdpohost{i} {was_there}" for i in (1, 2, 3) for was_there in (False, True))
