"""Checks that several algorithms share."""

import contextlib
import errno
import math
import os
import resource
from collections.abc import Iterator

import numpy as np

from . import launcher


class NotFinite(FloatingPointError):
    """A replicated number is not finite. All ranks hold it, so all of them raise."""


class BadEnvironment(ValueError):
    """An environment does not keep to its interface."""


def is_finite(values: np.ndarray) -> bool:
    """Return whether all numbers of a vector are finite. A sum of squares is fast, but may overflow."""
    return math.isfinite(values.dot(values)) or bool(np.isfinite(values).all())


def require_finite(name: str, values: np.ndarray) -> None:
    """Raise NotFinite naming the first bad entry of a replicated array: [trajectory, ...] or [parameter]."""
    is_finite = np.isfinite(values)
    if not is_finite.all():
        raise NotFinite(f"{name} {np.argwhere(~is_finite)[0].tolist()} is {values[~is_finite][0]}")


def describe_shortage(error: BaseException) -> str:
    """Return which limit of this machine an error is about, and the remedy; '' if it is about none."""
    number = getattr(error, "errno", None)
    if number in (errno.EMFILE, errno.ENFILE):
        return "too many open files; raise the limit with ulimit -n 1024"
    # the last: a library cannot be loaded
    if isinstance(error, MemoryError) or number == errno.ENOMEM or "failed to map segment" in str(error):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        why = "" if limit == resource.RLIM_INFINITY else f", with a limit of {limit / 1e9:.3g} GB (ulimit -v)"
        return f"out of memory{why}; raise the limit, or use fewer ranks or smaller settings"
    return ""


_notes: list[dict[str, float]] = []  # of those who ask what settings need, the innermost last


@contextlib.contextmanager
def noting_memory() -> Iterator[dict[str, float]]:
    """Note the bytes per rank that settings need, by cause, instead of comparing them with the memory of this host."""
    _notes.append({})
    try:
        yield _notes[-1]
    finally:
        _notes.pop()


def require_memory(cause: str, num_bytes: float) -> None:
    """Raise ValueError if the ranks of this host, with `num_bytes` each, need more than half of its memory."""
    if _notes:
        _notes[-1][cause] = max(num_bytes, _notes[-1].get(cause, 0.0))
        return
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    num_ranks = launcher.num_local_ranks() or 1
    if num_ranks * num_bytes > total / 2:
        raise ValueError(
            f"{cause} need about {num_bytes / 1e9:.3g} GB per rank, and this host, with {num_ranks} rank(s), "
            f"has {total / 1e9:.3g} GB; make them smaller, or use fewer ranks per host"
        )


def require_trajectories(num_trajectories: int, num_ranks: int) -> None:
    """Raise ValueError if a rank would have no trajectory."""
    if num_trajectories < num_ranks:
        raise ValueError(
            f"num_trajectories must be at least the number of ranks ({num_ranks}), got {num_trajectories}; "
            f"pass --num_trajectories {num_ranks} or run on {num_trajectories} ranks"
        )
