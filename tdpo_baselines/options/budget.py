"""When a run stops, and how often it saves."""

import math
import re
from dataclasses import dataclass

from .config import Settings, option


def format_count(number: float) -> str:
    """Return a number as it is typed: 3.5e7."""
    return f"{number:g}".replace("e+0", "e").replace("e+", "e")


@dataclass(frozen=True)
class Budget(Settings):
    """Limits of a run and intervals between its checkpoints. Every field is an argument of the command line."""

    num_timesteps: int = option(
        5 * 10**7, "simulated steps of all ranks, branches included, if the preset has no other", low=1, high=10**18
    )
    num_iterations: int | None = option(None, "stop after this many updates, if that comes first", low=1, high=10**18)
    checkpoint_every: int = option(1000, "updates between checkpoints", low=1, high=10**18)
    checkpoint_minutes: float = option(2.0, "minutes between checkpoints at most", above=0)
    max_walltime: str | None = option(None, "save and stop after this time, with exit code 85")
    step_timeout: float | None = option(
        None, "end the job if one step of a Gymnasium environment takes this many seconds", above=0, high=10**6
    )

    def __post_init__(self):
        super().__post_init__()
        if self.max_walltime is not None and not re.fullmatch(r"\d+:\d+:\d+", self.max_walltime):
            raise ValueError(f"max_walltime must be HH:MM:SS, got {self.max_walltime!r}")

    @property
    def max_seconds(self) -> float:
        """The limit of one session."""
        hours, minutes, seconds = map(float, (self.max_walltime or "inf:0:0").split(":"))
        return 3600 * hours + 60 * minutes + seconds

    def fraction_done(self, progress) -> float:
        """Return the fraction of timesteps or iterations that is done, whichever is larger, at most 1."""
        iterations = self.num_iterations or math.inf
        return min(max(progress.total_timesteps / self.num_timesteps, progress.iteration / iterations), 1.0)
