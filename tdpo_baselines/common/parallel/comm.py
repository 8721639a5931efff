"""All of MPI, behind one small object with a serial twin.

Work is counted in items (trajectories, groups of rows, streams); a rank takes a contiguous share of them. Results are
gathered in item order and summed in that order, because a floating-point allreduce would give sums that depend on
the number of ranks.
"""

import hashlib
import math
import os
import pickle
import sys
import time
import traceback
from functools import cache
from itertools import pairwise

import numpy as np

from . import launcher
from .checks import NotFinite

SECONDS_TO_AGREE = 20.0  # for all ranks to reach the same point of the same work


class Refused(Exception):
    """A user error raised on all ranks and printed once."""


class Comm:
    """One process alone: every collective is the identity."""

    rank = 0
    size = 1
    num_hosts = 1
    crowd: tuple[int, int] | None = None  # ranks and cores of a host with fewer cores than ranks

    def share(self, num_items: int) -> slice:
        """Return the contiguous items of this rank."""
        return slice(num_items * self.rank // self.size, num_items * (self.rank + 1) // self.size)

    def gather(self, mine: np.ndarray, num_items: int) -> np.ndarray:
        """Return all items [num_items, ...] on every rank, from each rank's share."""
        return mine

    def gather_on_root(self, mine: np.ndarray, num_items: int) -> np.ndarray | None:
        """Return all items [num_items, ...] on rank 0, None elsewhere."""
        return mine

    def sum(self, mine: np.ndarray, num_items: int) -> np.ndarray:
        """Return the sum over all items in item order: the same to the bit on any number of ranks."""
        return sum_in_order(mine)

    def broadcast(self, value):
        """Return rank 0's value on every rank."""
        return value

    def barrier(self) -> None:
        """Wait for all ranks, asleep: for long waits, in which a rank must leave its core to others."""

    def warm_up(self, function, *, is_needed: bool = True):
        """Call a function that compiles or reads files on the ranks that need it; return its result there, else None.

        One rank of each host goes first, so that the others find the host's caches filled. All ranks call this
        together; `function` must not communicate.
        """
        return function() if is_needed else None

    def on_root(self, function, expected: tuple[type[Exception], ...] = (ValueError, OSError, NotFinite)):
        """Call a function on rank 0 alone; return its result, or raise an `expected` error, on every rank."""
        answer = None
        if self.rank == 0:
            try:
                answer = function()
            except expected as error:
                answer = error if isinstance(error, NotFinite) else Refused(str(error))
        answer = self.broadcast(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def replicated(self, function):
        """Return on every rank the result of a function of replicated arguments; raise NotFinite on all ranks.

        Every rank computes it itself where each has a core of one host, so that none waits for another. Elsewhere
        the ranks would compete for cores or might round differently: rank 0 computes and broadcasts.
        """
        if self.num_hosts > 1 or self.crowd:
            return self.on_root(function, expected=(NotFinite,))
        try:
            return function()
        except NotFinite as error:
            self._require_agreement(error)
            raise

    def _require_agreement(self, error: NotFinite) -> None:
        """Raise RuntimeError if the other ranks did not find the same error."""

    def abort(self) -> None:
        """End the process, and with it the whole job."""
        sys.exit(1)

    def check_equal(self, arrays: dict[str, np.ndarray]) -> None:
        """Raise RuntimeError on every rank, naming the first rank whose array differs from rank 0's."""
        mine = b"".join(hashlib.sha256(np.asarray(array).tobytes()).digest() for array in arrays.values())
        digests = self.gather(np.frombuffer(mine, dtype=np.uint8).reshape(1, len(arrays), -1), self.size)
        different = np.argwhere((digests != digests[0]).any(axis=2))  # [each, (rank, array)]
        if len(different):
            rank, number = different[0]
            raise RuntimeError(
                f"{list(arrays)[number]} of rank {rank} differs from rank 0's: its memory or its software differs, or "
                "the algorithm decided from values it had not gathered; continue from the last checkpoint with --resume"
            )


class MPIComm(Comm):
    """The ranks started by mpirun."""

    def __init__(self):
        from mpi4py import MPI

        self._world = MPI.COMM_WORLD
        self.rank = self._world.rank
        self.size = self._world.size
        self._host = self._world.Split_type(MPI.COMM_TYPE_SHARED)  # the ranks of this host
        cores = set().union(*self._host.allgather(os.sched_getaffinity(0)))
        hosts = self._world.allgather((self._host.rank, self._host.size, len(cores)))
        self.num_hosts = sum(rank == 0 for rank, _, _ in hosts)
        self.crowd = next(((size, num_cores) for _, size, num_cores in hosts if size > num_cores), None)

    def _call(self, name: str, *buffers) -> None:
        """Call a collective of MPI by its name."""
        if self.crowd:
            wait_asleep(getattr(self._world, f"I{name}")(*buffers))
        else:
            getattr(self._world, name.capitalize())(*buffers)

    def _buffer(self, mine: np.ndarray, num_items: int) -> tuple[np.ndarray, list]:
        """Return an array for all items, and its description for MPI."""
        everyone = np.empty((num_items, *mine.shape[1:]), dtype=mine.dtype)
        return everyone, [everyone, counts_and_begins(num_items, math.prod(mine.shape[1:]), self.size)]

    def gather(self, mine, num_items):
        mine = np.ascontiguousarray(mine)
        everyone, parts = self._buffer(mine, num_items)
        self._call("allgatherv", mine, parts)
        return everyone

    def gather_on_root(self, mine, num_items):
        mine = np.ascontiguousarray(mine)
        everyone, parts = self._buffer(mine, num_items) if self.rank == 0 else (None, None)
        self._call("gatherv", mine, parts)
        return everyone

    def sum(self, mine, num_items):
        """Add on rank 0 and broadcast: sending all items to all ranks would take longer."""
        everyone = self.gather_on_root(mine, num_items)
        total = np.empty(mine.shape[1:], dtype=mine.dtype)
        if everyone is not None:
            total[...] = sum_in_order(everyone)
        self._call("bcast", total)
        return total[()]

    def broadcast(self, value):
        if not self.crowd:
            return self._world.bcast(value)
        pickled = np.frombuffer(bytearray(pickle.dumps(value if self.rank == 0 else None)), dtype=np.uint8)
        size = np.array([len(pickled)])
        self._call("bcast", size)
        pickled = pickled if self.rank == 0 else np.empty(size[0], dtype=np.uint8)
        self._call("bcast", pickled)
        return value if self.rank == 0 else pickle.loads(pickled.tobytes())

    def barrier(self):
        wait_asleep(self._world.Ibarrier())

    def warm_up(self, function, *, is_needed=True):
        needs = self._host.allgather(is_needed)
        is_first = is_needed and not any(needs[: self._host.rank])
        result = function() if is_first else None
        wait_asleep(self._host.Ibarrier())
        return function() if is_needed and not is_first else result

    def _require_agreement(self, error):
        request, began = self._host.Ibarrier(), time.monotonic()
        while not request.Test():
            if time.monotonic() - began > SECONDS_TO_AGREE:
                raise RuntimeError(
                    f"rank {self.rank} alone found: {error}; its memory or its software differs: continue from the "
                    "last checkpoint with --resume"
                )
            time.sleep(0.01)

    def abort(self):
        sys.stdout.flush()
        sys.stderr.flush()
        self._world.Abort(1)


@cache
def counts_and_begins(num_items: int, item_size: int, num_ranks: int) -> tuple[list[int], list[int]]:
    """Return how many elements each rank's share has, and where it begins."""
    bounds = [num_items * rank // num_ranks * item_size for rank in range(num_ranks + 1)]
    return [end - begin for begin, end in pairwise(bounds)], bounds[:-1]


def sum_in_order(items: np.ndarray) -> np.ndarray:
    """Return the sum over the first axis, one item after the other."""
    total = items[0].copy()
    for item in items[1:]:
        total += item
    return total


def wait_asleep(request) -> None:
    """Wait for a request, sleeping with back-off so that ranks that share cores do not spin."""
    began = time.monotonic()
    while not request.Test():
        time.sleep(min(max((time.monotonic() - began) / 8, 5e-5), 0.01))


def connect(*, is_alone: bool = False) -> Comm:
    """Return the MPI communicator under a launcher, the serial twin otherwise (MPI need not be installed).

    In a SLURM step of several tasks without a common MPI, a process trains alone only if `is_alone` says so, or a user
    sits before it.
    """
    rank, num_expected = launcher.rank(), launcher.num_expected()
    if rank is None:
        if num_expected is not None and num_expected > 1 and not (is_alone or os.isatty(0)):
            raise ValueError(
                f"started as one of {num_expected} tasks without a common MPI; use mpirun, or srun with the --mpi of "
                "this MPI (pmix for Open MPI, pmi2 for MPICH); --ranks 1 trains alone"
            )
        return Comm()
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")  # waiting ranks must not starve working ones
    try:
        comm = MPIComm()
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py found no MPI library
        raise ValueError(
            f"started as rank {rank} of several but mpi4py cannot be loaded ({error}); "
            'install it with pip install "tdpo_baselines[mpi]", or run without mpirun'
        ) from error
    if (num_expected is not None and comm.size != num_expected) or (comm.size == 1 and rank > 0):
        raise ValueError(
            f"the launcher started {num_expected or 'several'} ranks but MPI sees {comm.size}; "
            "use the mpirun of mpi4py's MPI, or srun with its --mpi (pmix for Open MPI, pmi2 for MPICH)"
        )
    return comm


def rank_traceback(comm: Comm) -> str:
    """Return the current exception's traceback with the rank before every line."""
    return "".join(f"[rank {comm.rank}] {line}\n" for line in traceback.format_exc().splitlines())
