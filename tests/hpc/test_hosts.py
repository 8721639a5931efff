"""One training over several hosts."""

import subprocess
import sys

import hosts
import pytest
from programs import ROOT, deterministic_part, mpi_environment

pytestmark = pytest.mark.slow

RUN = ("--env", "pendulum-nlr", "--set", "num_trajectories=6", "num_branches=2", "hidden_sizes=8,8")


def test_three_hosts_give_the_run_of_one(tmp_path, program, mpirun):
    missing = hosts.why_not()
    if missing:
        pytest.skip(missing)
    arguments = (*RUN, "--num_iterations", "60", "--log_dir")
    assert program("run", *arguments, str(tmp_path / "one")).returncode == 0
    several = hosts.Hosts(tmp_path / "hosts", 3)
    try:
        several.start()
        code = (
            "import socket; from mpi4py import MPI; print('on', socket.gethostname(), flush=True)\n"
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tdpo_baselines import run; sys.exit(run.main())"
        )
        launch = [mpirun, "-np", "6", "--hostfile", str(several.hostfile)]
        launch += ["--prtemca", "plm_ssh_agent", f"ssh -F {several.ssh_config}", "--bind-to", "none"]
        command = [*launch, sys.executable, "-c", code, *arguments, str(tmp_path / "three")]
        process = subprocess.run(command, env=mpi_environment(), cwd=ROOT, capture_output=True, text=True, timeout=300)
    finally:
        several.stop()
    assert process.returncode == 0, process.stderr
    assert {f"on tdpohost{i}" for i in (1, 2, 3)} <= set(process.stdout.splitlines()), process.stdout
    assert deterministic_part(tmp_path / "three") == deterministic_part(tmp_path / "one")
