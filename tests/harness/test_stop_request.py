import signal

import pytest

from tdpo_baselines.harness.stop_request import StopRequest


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
