"""When a run stops, and how often it saves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    num_timesteps: int
    num_iterations: int | None
    checkpoint_every: int  # iterations
    checkpoint_seconds: float
    max_walltime: float | None  # seconds of one session

    def fraction_done(self, progress) -> float:
        """From 0 to 1, by whichever of timesteps and iterations comes first."""
        done = progress.total_timesteps / self.num_timesteps
        if self.num_iterations is not None:
            done = max(done, progress.iteration / self.num_iterations)
        return min(done, 1.0)
