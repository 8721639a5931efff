import os

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow, prepare_environment


def test_environment_has_one_thread_and_keeps_what_the_user_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    prepare_environment()
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["CUDA_VISIBLE_DEVICES"] == "0"


def test_tensorflow_has_one_thread():
    threading = load_tensorflow().config.threading
    assert threading.get_intra_op_parallelism_threads() == threading.get_inter_op_parallelism_threads() == 1
