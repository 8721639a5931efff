"""TensorFlow with one thread, without GPU, silent. Programs call these functions; importing does nothing."""

import os
from functools import cache

ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}
QUIET_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def prepare_environment() -> None:
    """Set environment variables before NumPy or TensorFlow is imported: a threaded sum depends on the threads."""
    os.environ.update(ONE_THREAD)
    for name, value in QUIET_CPU.items():
        os.environ.setdefault(name, value)


@cache
def load_tensorflow():
    """Import TensorFlow once, without its start-up output, which ignores the log level, and limit its threads."""
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
