"""Signals that ask a run to stop. Listened to from the first moment: a warning may come while a job still starts."""

import signal


class StopRequest:
    """Ctrl-C, SIGTERM, SIGUSR1 ask for a stop at the next safe point; a second Ctrl-C ends at once."""

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
