"""When a run stops, and how often it saves."""

from argparse import Namespace
from dataclasses import dataclass

from .config import parse_count, parse_number


@dataclass(frozen=True)
class Budget:
    """Limits of a run and intervals between its checkpoints."""

    num_timesteps: int
    num_iterations: int | None
    checkpoint_every: int  # iterations
    checkpoint_seconds: float
    max_walltime: float | None  # seconds of one session

    @staticmethod
    def from_arguments(arguments: Namespace) -> "Budget":
        """Parse the budget's arguments of the command line, which are texts."""
        iterations, walltime = arguments.num_iterations, arguments.max_walltime
        return Budget(
            num_timesteps=parse_count("num_timesteps", arguments.num_timesteps, low=1),
            num_iterations=None if iterations is None else parse_count("num_iterations", iterations, low=1),
            checkpoint_every=parse_count("checkpoint_every", arguments.checkpoint_every, low=1),
            checkpoint_seconds=60 * parse_positive("checkpoint_minutes", arguments.checkpoint_minutes),
            max_walltime=None if walltime is None else parse_seconds("max_walltime", walltime),
        )

    def fraction_done(self, progress) -> float:
        """Return the fraction of timesteps or iterations that is done, whichever is larger, at most 1."""
        done = progress.total_timesteps / self.num_timesteps
        if self.num_iterations is not None:
            done = max(done, progress.iteration / self.num_iterations)
        return min(done, 1.0)


def parse_positive(name: str, text: str) -> float:
    """Parse a number above 0."""
    value = parse_number(name, text)
    if value <= 0:
        raise ValueError(f"{name} must be more than 0, got {text}")
    return value


def parse_seconds(name: str, text: str) -> float:
    """Parse HH:MM:SS."""
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise ValueError(f"{name} must be HH:MM:SS, got {text!r}")
    return float(int(parts[0]) * 3600 + int(parts[1]) * 60 + int(parts[2]))
