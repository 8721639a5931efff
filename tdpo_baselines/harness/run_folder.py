"""A run is a folder: config.json, progress.csv, checkpoints/, best/, and rank_NNN.log of ranks that failed.

Everything else reads that folder."""

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path

from .config import read_json


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run, and what it was made with. `options` are the algorithm's, resolved."""

    algorithm: str
    environment: str
    seed: int
    options: dict
    env_options: dict
    stages: list = field(default_factory=list)  # before the run's own: each its "timesteps", and what differs in it
    made_with: dict = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    def __post_init__(self):
        for name, hint in self.__annotations__.items():
            if not isinstance(getattr(self, name), hint):
                raise TypeError(f"{name} is not of type {hint.__name__}")

    @staticmethod
    def from_checkpoint(state: dict) -> "RunConfig":
        """The config that every checkpoint carries."""
        try:
            return RunConfig(**json.loads(state["config"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the checkpoint is not one of a run ({error!r})") from error

    def differences(self, other: "RunConfig") -> list[str]:
        """What would make `other` another run: 'gamma: 0.9 here, 0.99 asked for'."""
        mine, its = (json.loads(config.to_json()) for config in (self, other))
        pairs = [(name, mine[name], its[name]) for name in ("algorithm", "environment", "seed")]
        groups = [("", mine["options"], its["options"]), ("env.", mine["env_options"], its["env_options"])]
        stages: Iterable = zip_longest(mine["stages"], its["stages"], fillvalue={})
        groups += [(f"stage{number}.", here, there) for number, (here, there) in enumerate(stages, start=1)]
        for prefix, here, there in groups:
            pairs += [(prefix + name, here.get(name), there.get(name)) for name in dict.fromkeys([*here, *there])]
        return [f"{name}: {here} here, {there} asked for" for name, here, there in pairs if here != there]


class RunFolder:
    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser()
        self.config_path = self.path / "config.json"
        self.progress_path = self.path / "progress.csv"
        self.checkpoints = self.path / "checkpoints"
        self.best = self.path / "best"

    def create(self) -> None:
        """Make the folder and prove that it can be written, before any work is done."""
        probe = self.path / f".probe-{os.getpid()}"
        try:
            for folder in (self.path, self.checkpoints, self.best):
                folder.mkdir(parents=True, exist_ok=True)
            try:
                probe.write_bytes(bytes(16384))
            finally:
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(
                f"cannot write to log_dir {self.path}: {error.strerror}; pass another --log_dir or make room"
            ) from error

    def require_space(self, num_bytes: int) -> None:
        """ValueError unless all checkpoints of a run, of which there may be some already, will find room."""
        present = sum(path.stat().st_size for path in self.checkpoints.rglob("*") if path.is_file())
        free = shutil.disk_usage(self.path).free
        if num_bytes - present > free:
            raise ValueError(
                f"checkpoints need about {(num_bytes - present) / 1e6:,.0f} MB in log_dir {self.path}, "
                f"{free / 1e6:,.0f} MB are free; make room or pass another --log_dir"
            )

    def lock(self) -> None:
        """Keep other processes out until this one ends, however it ends."""
        self._lock = open(self.path / ".lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another process is training in {self.path}; wait for it or pass another --log_dir"
            ) from error
        except OSError as error:
            print(
                f"warning: {self.path} cannot be locked ({error.strerror}); start no second run there", file=sys.stderr
            )

    def unlock(self) -> None:
        self._lock.close()

    def note(self, rank: int, text: str) -> None:
        """What a rank has to say when it can say it to no other."""
        with open(self.path / f"rank_{rank:03d}.log", "a") as file:
            file.write(text)

    def has_run(self) -> bool:
        """Whether anything was computed here."""
        return self.progress_path.exists() or any(self.checkpoints.glob("*"))

    def write_config(self, config: RunConfig) -> None:
        partial = self.config_path.with_suffix(".partial")
        partial.write_text(config.to_json() + "\n")
        os.replace(partial, self.config_path)

    def read_config(self) -> RunConfig:
        if not self.config_path.exists():
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        values = read_json(str(self.config_path))
        try:
            return RunConfig(**values)
        except TypeError as error:
            raise ValueError(f"{self.config_path} is not a run's config: {error}") from error
