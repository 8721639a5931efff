"""Refusals that every algorithm shares."""

import os

import numpy as np

from . import launcher


class NotFinite(FloatingPointError):
    """A number that every rank holds is not finite; what it was computed from is gathered, so all find it."""


def require_finite(name: str, values: np.ndarray) -> None:
    """NotFinite naming the first bad entry of an array that all ranks hold: [trajectory, ...] or [parameter]."""
    is_finite = np.isfinite(values)
    if not is_finite.all():
        raise NotFinite(f"{name} {np.argwhere(~is_finite)[0].tolist()} is {values[~is_finite][0]}")


class TooLittleMemory(ValueError):
    """Of this host."""


def require_memory(cause: str, num_bytes: float) -> None:
    """TooLittleMemory if the ranks of this host would need more memory, so much each, than half of what it has."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    num_ranks = launcher.num_local_ranks() or 1
    if num_ranks * num_bytes > total / 2:
        raise TooLittleMemory(
            f"{cause} need about {num_bytes / 1e9:.3g} GB per rank and this host, with {num_ranks} rank(s), "
            f"has {total / 1e9:.3g} GB; make them smaller, or use fewer ranks per host"
        )


def require_trajectories(num_trajectories: int, num_ranks: int) -> None:
    """Every rank needs one."""
    if num_trajectories < num_ranks:
        raise ValueError(
            f"num_trajectories must be at least the number of ranks ({num_ranks}), got {num_trajectories}; "
            f"pass --num_trajectories {num_ranks} or run on {num_trajectories} ranks"
        )
