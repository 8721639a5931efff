"""An optional watchdog that ends the job if an environment does not return."""

import os
import sys
import threading
import time

from ..parallel import launcher

TICKS = 20  # of a time limit; a suspended process counts none
EXIT_HANGS = 1
inside: tuple[str, int] | None = None  # the environment that is executing, and the number of its step; 0 is its reset


def start(seconds: float) -> None:
    """Watch the environments of this process from now on, in a thread of its own."""
    threading.Thread(target=_watch, args=(seconds,), daemon=True).start()


def _watch(seconds: float) -> None:
    """End the process, and with it the job, once the same call lasts for `seconds`."""
    seen, num_ticks = None, 0
    while num_ticks < TICKS:
        time.sleep(seconds / TICKS)
        seen, num_ticks = inside, (num_ticks + 1 if inside is not None and inside is seen else 0)
    assert seen is not None
    name, number = seen
    where = f"step {number} of an episode" if number else "reset"
    print(
        f"[rank {launcher.rank() or 0}] error: {name} has not returned from {where} for {seconds:g} s "
        "(--step_timeout); checkpoints before it, if there are any, are in the run's folder",
        file=sys.stderr,
        flush=True,
    )
    os._exit(EXIT_HANGS)
