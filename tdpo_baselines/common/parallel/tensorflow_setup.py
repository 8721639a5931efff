"""TensorFlow with one thread, without GPU, silent. Programs call these functions; importing does nothing."""

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT_BYTES = 2**26
QUIET_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def prepare_environment() -> None:
    """Set environment variables before NumPy or TensorFlow is imported.

    A sum depends on the number of threads and on the width of the processor's vectors. OpenBLAS would choose wider
    ones on newer processors, and the hosts of a run may differ; it uses AVX2 wherever there is AVX2.
    """
    os.environ.update(ONE_THREAD)
    if "avx2" in processor_features():
        os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
    for name, value in QUIET_CPU.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # else every rank prints an escape code
    keep_freed_memory()
    atexit.register(gc.freeze)  # else the interpreter looks for garbage in all modules before it ends


@contextmanager
def paused_collection() -> Iterator[None]:
    """Do not look for garbage: loading modules leaves little of it, and the search takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def keep_freed_memory() -> None:
    """Let the C library keep what NumPy frees: otherwise each temporary array gets new pages from the system."""
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):  # glibc
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES // 2)


def processor_features() -> list[str]:
    """Return the features of the processor that Linux lists; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split() for line in lines if line.startswith("flags")), [])


@cache
@paused_collection()
def load_tensorflow():
    """Import TensorFlow once, without its start-up output, which ignores the log level, and limit its threads.

    It does without Keras, which would load matplotlib too: a quarter of the time and a fifth of the memory.
    """
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    modules: dict[str, Any] = sys.modules  # None stands for a module that cannot be imported
    keras = modules.setdefault("keras", None)
    try:
        import tensorflow
    finally:
        if keras is None:
            del modules["keras"]
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)
    tensorflow.config.threading.set_intra_op_parallelism_threads(1)
    tensorflow.config.threading.set_inter_op_parallelism_threads(1)
    return tensorflow
