import subprocess
import sys

import pytest


@pytest.fixture
def scaling(benchmark):
    return benchmark("scaling")


def test_memory_is_read_while_a_process_runs(scaling, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)", f"{tmp_path}/run"])
    watch = scaling.MemoryWatch(str(tmp_path))
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
    finally:
        process.kill()
        process.wait()
    (memory,) = watch.stop()
    assert memory["Pss"] >= memory["own"] > 1


@pytest.mark.slow
def test_a_training_is_measured(scaling):
    row = scaling.measure(["--env", "pendulum-nlr"], 2, 2)
    assert len(row) == len(scaling.COLUMNS) and row[0] == 2 and min(row[1:3]) > 0 and min(row[5:8]) > 0
