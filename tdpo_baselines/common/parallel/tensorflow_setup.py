"""TensorFlow as every rank wants it: one thread, no GPU, silent. Called by programs, never on import."""

import os
from functools import cache

ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}
QUIET_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def prepare_environment() -> None:
    """Before NumPy or TensorFlow is imported: a threaded dot product depends on the number of threads."""
    os.environ.update(ONE_THREAD)
    for name, value in QUIET_CPU.items():
        os.environ.setdefault(name, value)


@cache
def load_tensorflow():
    """Import TensorFlow without its start-up chatter, which ignores the log level, and limit its threads; once."""
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    return tensorflow


def load_tensorflow_in_turn(comm, *, is_needed: bool = True) -> None:
    """TensorFlow on the ranks that need it; all ranks call this together.

    A host reads it once from its disk or file server, however many of its ranks load it at the same time. With
    several hosts one rank of each goes first, so that no more ask the file server at once than there are hosts.
    """
    if comm.num_hosts > 1:
        comm.first_on_each_host(load_tensorflow, is_needed=is_needed)
    elif is_needed:
        load_tensorflow()
    comm.wait_for_all()
