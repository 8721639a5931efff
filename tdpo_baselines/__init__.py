"""Truly Deterministic Policy Optimization and its rivals, over MPI. `train` and `load` are for scripts."""

TYPE_CHECKING = False  # that of typing, whose import takes longer than the first words of a program may

if TYPE_CHECKING:
    from typing import Any

    from .api import load, train

__all__ = ["load", "train"]
__version__ = "0.1.0"


def __getattr__(name: str) -> "Any":
    """Import the functions for scripts when they are asked for; the programs must not load NumPy before they begin."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    return getattr(api, name)
