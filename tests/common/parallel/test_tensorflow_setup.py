import ctypes
import gc
import os
import subprocess
import sys

import pytest

from tdpo_baselines.common.parallel.tensorflow_setup import (
    load_tensorflow,
    paused_collection,
    prepare_environment,
    processor_features,
)


def test_environment_has_one_thread_and_keeps_what_the_user_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    prepare_environment()
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["CUDA_VISIBLE_DEVICES"] == "0"


def test_tensorflow_has_one_thread():
    threading = load_tensorflow().config.threading
    assert threading.get_intra_op_parallelism_threads() == threading.get_inter_op_parallelism_threads() == 1


@pytest.mark.slow
def test_tensorflow_is_loaded_without_keras_and_matplotlib_which_a_program_may_load_later():
    code = (
        "from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow, prepare_environment\n"
        "import sys; prepare_environment(); tf = load_tensorflow()\n"
        "assert not {'keras', 'matplotlib'} & set(sys.modules)\n"
        "import keras; assert tf.keras.layers.Dense is keras.layers.Dense"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_freed_memory_is_used_again_instead_of_new_pages_of_the_system():
    code = (
        "from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment; prepare_environment()\n"
        "import numpy as np, resource\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(3): np.ones(10**6)\n"
        "before = faults()\n"
        "for _ in range(10): np.ones(10**6)\n"
        "assert faults() - before < 1000, faults() - before"  # an array has 1,953 pages
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif("avx2" not in processor_features(), reason="the processor has no AVX2")
def test_matrix_products_use_the_same_kernels_whatever_the_processor(monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    code = (
        "from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment; prepare_environment()\n"
        "import numpy as np; a = np.random.default_rng(0).random((300, 300)); print((a @ a).tobytes().hex()[:2000])"
    )
    run = [subprocess.check_output([sys.executable, "-c", code])]
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert run == [subprocess.check_output([sys.executable, "-c", code])]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_garbage_is_collected_after_loading_as_before(is_enabled):
    try:
        if not is_enabled:
            gc.disable()
        with pytest.raises(KeyError), paused_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_programs_end_without_a_search_for_garbage():
    code = (
        "from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment\n"
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); prepare_environment()"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
