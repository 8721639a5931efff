"""Signals that ask a run to stop, caught from the start: a scheduler may warn a job that is still loading."""

import os
import signal
import time

from ..common.parallel import launcher

EXIT_STOPPED = 85  # stopped before the end, state saved: start again with --resume
SECONDS_FOR_ROOT_TO_PRINT = 3.0


class StopRequest:
    """The last of Ctrl-C, SIGTERM and SIGUSR1, to be obeyed at the next safe point; a second Ctrl-C ends at once.

    While `is_starting`, nothing is computed that could be lost: the process ends at once.
    """

    def __init__(self, *, is_starting: bool = False):
        self.number = 0  # of the last signal
        self.is_starting = is_starting

    def __enter__(self) -> "StopRequest":
        self._before = {n: signal.signal(n, self._ask) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number, frame):
        if self.is_starting:
            if not launcher.rank():
                name = signal.Signals(number).name
                os.write(1, f"stopped before the training began ({name}); continue with --resume\n".encode())
            elif not self.number:  # mpirun ends all ranks when the first one leaves, by another signal
                self.number = number
                time.sleep(SECONDS_FOR_ROOT_TO_PRINT)
            os._exit(EXIT_STOPPED)
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number
