"""Signals that ask a run to stop, caught from the start: a scheduler may warn a job that is still loading."""

import signal


class StopRequest:
    """The last of Ctrl-C, SIGTERM and SIGUSR1, to be obeyed at the next safe point; a second Ctrl-C ends at once."""

    def __init__(self):
        self.number = 0  # of the last signal

    def __enter__(self) -> "StopRequest":
        self._before = {n: signal.signal(n, self._ask) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number, frame):
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number
