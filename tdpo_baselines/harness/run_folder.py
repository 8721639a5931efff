"""A run is a folder: config.json, progress.csv, checkpoints/, best/, and rank_NNN.log of ranks that failed."""

import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

from .. import __version__
from . import callables
from .config import read_json
from .upgrade import ADDED_OPTIONS


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run, resolved, and the versions it was made with."""

    algorithm: str
    environment: str
    seed: int
    options: dict  # of the algorithm
    env_options: dict
    stages: list = field(default_factory=list)  # for each its "timesteps" and the options that differ in it
    made_with: dict = field(default_factory=dict)
    init: dict = field(default_factory=dict)  # "from" and "sha256" of the policy that the run begins from, if any

    def to_json(self) -> str:
        """Return the config as the text of config.json."""
        return json.dumps(asdict(self), indent=2)

    def __post_init__(self):
        for name, hint in self.__annotations__.items():
            if not isinstance(getattr(self, name), hint):
                raise TypeError(f"{name} is not of type {hint.__name__}")

    @staticmethod
    def from_values(values: dict, source: str | Path) -> "RunConfig":
        """Return the config in the values of a config.json."""
        try:
            return RunConfig(**values)
        except TypeError as error:
            raise ValueError(f"{source} is not a run's config: {error}") from error

    def values(self) -> dict:
        """Return all options as --set would give them, those of environment and stages with their prefixes."""
        groups = {"": self.options, "env.": self.env_options}
        groups |= {f"stage{number}.": changes for number, changes in enumerate(self.stages, start=1)}
        return {prefix + name: value for prefix, group in groups.items() for name, value in group.items()}

    @staticmethod
    def from_checkpoint(state: dict) -> "RunConfig":
        """Return the config that every checkpoint carries."""
        try:
            return RunConfig(**json.loads(state["config"]))
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the checkpoint is not one of a run ({error!r})") from error

    def differences(self, other: "RunConfig") -> list[str]:
        """Return what makes `other` another run, such as 'gamma: 0.9 here, 0.99 asked for'."""
        mine, its = (json.loads(config.to_json()) for config in (self, other))
        pairs = [(name, mine[name], its[name]) for name in ("algorithm", "environment", "seed")]
        pairs.append(("init", mine["init"].get("from"), its["init"].get("from")))
        options = {name: value for name, value in ADDED_OPTIONS.items() if name in its["options"]} | mine["options"]
        groups = [("", options, its["options"]), ("env.", mine["env_options"], its["env_options"])]
        stages: Iterable = zip_longest(mine["stages"], its["stages"], fillvalue={})
        groups += [(f"stage{number}.", here, there) for number, (here, there) in enumerate(stages, start=1)]
        for prefix, here, there in groups:
            pairs += [(prefix + name, here.get(name), there.get(name)) for name in dict.fromkeys([*here, *there])]
        return [f"{name}: {here} here, {there} asked for" for name, here, there in pairs if here != there]


def default_path(algorithm: str, environment: str | None, seed: int) -> str:
    """Return the folder of a run whose user names none."""
    return f"runs/{algorithm}-{(environment or '').removeprefix(callables.PREFIX)}-{seed}"


class RunFolder:
    """The files of one run, written by rank 0."""

    def __init__(self, path: str | Path):
        self.path = Path(path).expanduser()
        self.config_path = self.path / "config.json"
        self.progress_path = self.path / "progress.csv"
        self.checkpoints = self.path / "checkpoints"
        self.best = self.path / "best"

    def open(self, config: RunConfig, *, is_resumed: bool) -> None:
        """Create and lock the folder and write its config; raise ValueError rather than overwrite another run."""
        self.create()
        self.lock()
        try:
            if self.has_run():
                self._require_same_run(config, is_resumed)
        except ValueError:
            self.unlock()
            raise
        self.write_config(config)

    def _require_same_run(self, config: RunConfig, is_resumed: bool) -> None:
        if not is_resumed:
            raise ValueError(f"{self.path} holds a run already; continue it with --resume or pass another --log_dir")
        differences = self.read_config().differences(config)
        if differences:
            raise ValueError(f"{self.path} holds another run ({'; '.join(differences)}); pass another --log_dir")

    def create(self) -> None:
        """Create the folder and test that it can be written."""
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
        """Raise ValueError unless the disk has room for checkpoints of that size, those already there included."""
        present = sum(path.stat().st_size for path in self.checkpoints.rglob("*") if path.is_file())
        free = shutil.disk_usage(self.path).free
        if num_bytes - present > free:
            raise ValueError(
                f"checkpoints need about {(num_bytes - present) / 1e6:,.0f} MB in log_dir {self.path}, "
                f"{free / 1e6:,.0f} MB are free; make room or pass another --log_dir"
            )

    def lock(self) -> None:
        """Lock the folder until this process ends, however it ends."""
        self._lock = open(self.path / ".lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another process is training in {self.path}; wait for it or pass another --log_dir"
            ) from error
        except OSError as error:
            reason = f"{self.path} cannot be locked ({error.strerror}); do not start a second run there"
            print(f"warning: {reason}", file=sys.stderr)

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.close()

    def note(self, rank: int, text: str) -> None:
        """Append to a rank's own log, for errors that it cannot report in another way."""
        with open(self.path / f"rank_{rank:03d}.log", "a") as file:
            file.write(text)

    def has_run(self) -> bool:
        """Return whether anything was computed here."""
        return self.progress_path.exists() or any(self.checkpoints.glob("*"))

    def write_config(self, config: RunConfig) -> None:
        """Replace config.json."""
        partial = self.config_path.with_suffix(".partial")
        partial.write_text(config.to_json() + "\n")
        os.replace(partial, self.config_path)

    def read_config(self) -> RunConfig:
        """Read config.json."""
        if not self.config_path.exists():
            raise ValueError(f"{self.path} is not a run folder: it has no config.json")
        return RunConfig.from_values(read_json(str(self.config_path)), self.config_path)


def versions() -> dict[str, str | None]:
    """Return the versions of the software that determines the numbers, and the git revision of a checkout."""
    found: dict[str, str | None] = {"tdpo_baselines": __version__, "python": platform.python_version()}
    for name in ("numpy", "numba", "tensorflow", "gymnasium", "mujoco"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    checkout = Path(__file__).parent.parent.parent
    if (checkout / ".git").exists():
        command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
        with contextlib.suppress(OSError):
            found["git_revision"] = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return found
