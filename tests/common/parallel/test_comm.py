import os
import subprocess
import sys

import numpy as np
import pytest
from programs import mpi_environment

from tdpo_baselines.common.parallel.comm import Comm, Refused, connect


class Rank(Comm):
    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [1, 2, 3, 5, 72])
@pytest.mark.parametrize("num_items", [72, 73, 100])
def test_shares_are_contiguous_complete_and_even(size, num_items):
    shares = [Rank(r, size).share(num_items) for r in range(size)]
    assert [i for share in shares for i in range(share.start, share.stop)] == list(range(num_items))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) - min(lengths) <= 1


def test_sum_runs_in_item_order():
    items = np.array([[1e16], [1.0], [-1e16], [1.0]])
    assert Comm().sum(items, 4) == ((1e16 + 1.0) - 1e16) + 1.0


def test_root_errors_reach_every_rank():
    def fail():
        raise ValueError("change this")

    with pytest.raises(Refused, match="change this"):
        Comm().on_root(fail)


PROBE = """
import numpy as np
from tdpo_baselines.common.parallel.comm import connect
comm = connect()
share = comm.share(7)
mine = np.arange(7.0)[share, None] * [1.0, 10.0]
everyone = comm.gather(mine, 7)
assert np.array_equal(everyone, np.arange(7.0)[:, None] * [1.0, 10.0]), everyone
assert np.array_equal(comm.sum(mine, 7), [21.0, 210.0])
assert comm.broadcast(comm.rank) == 0
assert comm.warm_up(lambda: comm.rank) == comm.rank
one = np.ones((1, 2))[comm.share(1)]
assert np.array_equal(comm.gather(one, 1), [[1.0, 1.0]])
theta = np.zeros(5)
comm.check_equal({"count": np.array(3), "theta": theta})
if comm.rank == 2:
    theta[3] = 1e-300
try:
    comm.check_equal({"count": np.array(3), "theta": theta})
    print("equal")
except RuntimeError as error:
    print(error)
"""


def three_ranks(mpirun, code, *arguments):
    command = [mpirun, "-np", "3", sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=mpi_environment(), timeout=120)


def test_collectives_on_three_real_ranks_and_the_odd_one_is_named(mpirun):
    process = three_ranks(mpirun, PROBE)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("theta of rank 2 differs from rank 0's") == 3


ONE_FIRST = """
import sys
from pathlib import Path
from tdpo_baselines.common.parallel.comm import connect
comm, folder = connect(), Path(sys.argv[1])
def see_and_leave():
    seen = sorted(path.name for path in folder.iterdir())
    (folder / str(comm.rank)).touch()
    return seen
print(comm.rank, comm.warm_up(see_and_leave, is_needed=comm.rank > 0), flush=True)
"""


def test_one_rank_of_a_host_warms_up_before_the_others(mpirun, tmp_path):
    process = three_ranks(mpirun, ONE_FIRST, str(tmp_path))
    assert sorted(process.stdout.splitlines()) == ["0 None", "1 []", "2 ['1']"], process.stderr


REPLICATED = """
from tdpo_baselines.common.parallel import comm as communication
from tdpo_baselines.common.parallel.checks import NotFinite
communication.SECONDS_TO_AGREE = 1.0
comm = communication.connect()
def fail(rank):
    if rank in (comm.rank, None):
        raise NotFinite("payoff is nan")
for crowd in (None, (3, 2)):
    comm.crowd, calls = crowd, []
    assert comm.replicated(lambda: calls.append(0) or 7) == 7
    assert len(calls) == (comm.rank == 0 or crowd is None)
    try:
        comm.replicated(lambda: fail(None))
    except NotFinite as error:
        print(error, flush=True)
comm.crowd = None
try:
    comm.replicated(lambda: fail(1))
except RuntimeError as error:
    print(error, flush=True)
    comm.abort()
comm.gather(comm.rank * communication.np.ones(1), 3)  # never complete: one rank is missing
"""


def test_error_of_all_ranks_is_raised_on_all_and_error_of_one_rank_ends_the_job(mpirun):
    process = three_ranks(mpirun, REPLICATED)
    assert process.returncode != 0
    assert process.stdout.count("payoff is nan") == 2 * 3 + 1, process.stderr
    assert "rank 1 alone found: payoff is nan" in process.stdout


def test_a_failure_while_the_other_ranks_wait_ends_the_job(mpirun):
    code = (
        "import sys; from tdpo_baselines.common.parallel.comm import connect, rank_traceback\n"
        "comm = connect()\n"
        "try:\n    comm.warm_up(lambda: 1 / 0)\n"
        "except ZeroDivisionError:\n    sys.stderr.write(rank_traceback(comm)); comm.abort()\n"
    )
    process = three_ranks(mpirun, code)
    assert process.returncode != 0
    assert "[rank 0] ZeroDivisionError" in process.stderr and "[rank 1]" not in process.stderr


def test_serial_twin_needs_no_mpi_library():
    code = "import sys; sys.modules['mpi4py'] = None; " + PROBE
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert process.stdout == "equal\n", process.stderr


def test_missing_mpi4py_under_mpirun_says_what_to_install():
    code = (
        "import sys; sys.modules['mpi4py'] = None; from tdpo_baselines.common.parallel.comm import connect; connect()"
    )
    environment = {**os.environ, "OMPI_COMM_WORLD_RANK": "0"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "pip install" in process.stderr and "started as rank 0 of several" in process.stderr


def test_task_of_a_slurm_step_without_a_common_mpi_trains_alone_only_if_it_is_asked_to(monkeypatch):
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="started as one of 4 tasks without a common MPI; .* --ranks 1 trains alone"):
        connect()
    assert connect(is_alone=True).size == 1
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert connect().size == 1
