"""A rank that `tdpo_baselines.train` starts if the environment is a callable, which comes through standard input."""

import os
import sys

from . import run
from .common.parallel.tensorflow_setup import prepare_environment
from .harness.stop_request import StopRequest


def main(arguments: list[str] | None = None) -> int:
    """Receive the environment on all ranks, then train as `run` does; return the exit code."""
    prepare_environment()  # before anything imports NumPy
    with StopRequest(is_starting=True) as stop:
        from .common.parallel.comm import connect
        from .options import callables

        try:
            comm = connect()
            callables.unpickle(comm.broadcast(callables.read(sys.stdin.buffer) if comm.rank == 0 else None))
        except ValueError as error:  # the same on every rank
            return run.refuse(error)
        return run.parse_and_train(sys.argv[1:] if arguments is None else arguments, stop, comm)


if __name__ == "__main__":
    exit_code = main()
    if exit_code == run.EXIT_INVALID_INPUT:
        os._exit(exit_code)  # a regular end of MPI would wait for ranks that do not know of the error
    sys.exit(exit_code)
