import os
import signal
import subprocess
import sys

import pytest
from programs import ROOT

from tdpo_baselines.harness.stop_request import EXIT_STOPPED, StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signal_is_remembered_and_nothing_else_happens(number):
    with StopRequest() as stop:
        assert stop.number == 0
        signal.raise_signal(number)
        assert stop.number == number


def test_second_ctrl_c_ends_at_once():
    with StopRequest() as stop, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGUSR1)
        assert stop.number == signal.SIGUSR1
        signal.raise_signal(signal.SIGINT)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)]
    with StopRequest():
        pass
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signal_during_the_start_ends_the_process_at_once(number):
    code = (
        "import signal, time; from tdpo_baselines.harness.stop_request import StopRequest\n"
        f"with StopRequest(is_starting=True): signal.raise_signal({int(number)}); time.sleep(1000)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert process.returncode == EXIT_STOPPED
    assert process.stdout == f"stopped before the training began ({number.name}); continue with --resume\n"


def test_other_ranks_let_rank_0_speak_and_leave_when_mpirun_ends_them():
    code = (
        "import os, signal, threading, time; from tdpo_baselines.harness.stop_request import StopRequest\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
        "with StopRequest(is_starting=True): signal.raise_signal(signal.SIGUSR1)\n"
        "print('left by itself')"
    )
    rank = {**os.environ, "OMPI_COMM_WORLD_RANK": "1"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=rank)
    assert process.returncode == EXIT_STOPPED and process.stdout == ""
