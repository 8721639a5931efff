"""A run is a folder: config.json, progress.csv, checkpoints/, best/, and rank_NNN.log of ranks that failed."""

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path

from .. import __version__
from ..common import files
from ..common.parallel import launcher
from ..options import callables
from .upgrade import ADDED_ENV_OPTIONS, ADDED_OPTIONS, REMOVED_OPTIONS

LIMITS = ("num_timesteps", "num_iterations")  # that a resumed or repeated run keeps unless one is given
MAX_COUNT = 10**18
MAX_TEXT = 4096


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
            if not isinstance(getattr(self, name), hint) or isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is not of type {hint.__name__}")
        if not 0 <= self.seed <= MAX_COUNT:
            raise ValueError("seed is not from 0 to 1e18")
        for number, stage in enumerate(self.stages, start=1):
            if not isinstance(stage, dict) or not _is_count(stage.get("timesteps")):
                raise ValueError(f"stage{number} is not an object of options with timesteps")
        for name in LIMITS:
            if self.made_with.get(name) is not None and not _is_count(self.made_with[name]):
                raise ValueError(f"made_with.{name} is not a whole number")
        for name, value in self.init.items():
            if not isinstance(value, str):
                raise ValueError(f"init.{name} is not a text")
        if self.init and "from" not in self.init:
            raise ValueError("init has no 'from'")
        _check_texts(asdict(self))

    @staticmethod
    def from_values(values: dict, source: str | Path) -> "RunConfig":
        """Return the config in the values of a config.json."""
        try:
            config = RunConfig(**values)
            kept = {name: value for name, value in config.options.items() if REMOVED_OPTIONS.get(name, "") != value}
            return replace(config, options=kept)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source} is not a run's config: {error}") from error

    def values(self) -> dict:
        """Return all options as --set would give them, those of environment and stages with their prefixes."""
        groups = {"": self.options, "env.": self.env_options}
        groups |= {f"stage{number}.": changes for number, changes in enumerate(self.stages, start=1)}
        return {prefix + name: value for prefix, group in groups.items() for name, value in group.items()}

    @staticmethod
    def from_checkpoint(state: dict) -> "RunConfig":
        """Return the config that every checkpoint carries."""
        text = state.get("config")
        if not isinstance(text, str):
            raise ValueError("the checkpoint is not one of a run: it has no config")
        try:
            return RunConfig.from_values(files.parse_json(text, "config"), "config")
        except ValueError as error:
            raise ValueError(f"the checkpoint is not one of a run: {error}") from error

    def differences(self, other: "RunConfig") -> list[str]:
        """Return what makes `other` another run, such as 'gamma: 0.9 here, 0.99 asked for'."""
        mine, its = (json.loads(config.to_json()) for config in (self, other))
        pairs = [(name, mine[name], its[name]) for name in ("algorithm", "environment", "seed")]
        pairs.append(("init", mine["init"].get("from"), its["init"].get("from")))
        if (self.algorithm, self.environment) == (other.algorithm, other.environment):  # else they have other options
            pairs += _pairs_of_options(mine, its)
        return [f"{name}: {here} here, {there} asked for" for name, here, there in pairs if here != there]


def _pairs_of_options(mine: dict, its: dict) -> list[tuple]:
    """Return name and both values of every option in two configs of one algorithm and environment."""
    groups = [
        (prefix, {name: value for name, value in added.items() if name in its[kind]} | mine[kind], its[kind])
        for prefix, kind, added in (("", "options", ADDED_OPTIONS), ("env.", "env_options", ADDED_ENV_OPTIONS))
    ]
    stages: Iterable = zip_longest(mine["stages"], its["stages"], fillvalue={})
    groups += [(f"stage{number}.", here, there) for number, (here, there) in enumerate(stages, start=1)]
    return [
        (prefix + name, here.get(name), there.get(name))
        for prefix, here, there in groups
        for name in dict.fromkeys([*here, *there])
    ]


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _check_texts(values, name: str = "config") -> None:
    """Raise ValueError for a text that would be too long for a line, or steer the terminal that shows it."""
    if isinstance(values, dict):
        for key, value in values.items():
            _check_texts(key, "a name")
            _check_texts(value, key)
    elif isinstance(values, (list, tuple)):
        for value in values:
            _check_texts(value, name)
    elif isinstance(values, str) and not (values.isprintable() and len(values) <= MAX_TEXT):
        raise ValueError(f"{name} is not a printable text of at most {MAX_TEXT} characters")


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
        differences = self.find_config().differences(config)
        if differences:
            raise ValueError(f"{self.path} holds another run ({'; '.join(differences)}); pass another --log_dir")

    def create(self) -> None:
        """Create the folder and test that it can be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for folder in (self.checkpoints, self.best):
                files.make_folder(folder)
            with tempfile.TemporaryFile(dir=self.path) as probe:
                probe.write(bytes(16384))
        except OSError as error:
            raise ValueError(
                f"cannot write to log_dir {self.path}: {error.strerror}; pass another --log_dir or make room"
            ) from error

    def require_space(self, num_bytes: int) -> None:
        """Raise ValueError unless the disk has room for checkpoints of that size, those already there included."""
        present = sum(path.lstat().st_blocks * 512 for path in self.checkpoints.glob("*/*"))
        free = shutil.disk_usage(self.path).free
        if num_bytes - present > free:
            raise ValueError(
                f"checkpoints need about {(num_bytes - present) / 1e6:,.0f} MB in log_dir {self.path}, "
                f"{free / 1e6:,.0f} MB are free; make room or pass another --log_dir"
            )

    def lock(self) -> None:
        """Lock the folder until this process ends, however it ends."""
        self._lock = files.lock(self.path, "--log_dir")

    def is_ours(self) -> bool:
        """Return whether the folder is the one that was locked, and not another run's under the same name."""
        try:
            return os.path.samestat(os.fstat(self._lock.fileno()), os.lstat(self.path / ".lock"))
        except OSError:
            return False

    def unlock(self) -> None:
        """Release the lock."""
        self._lock.close()

    def note(self, rank: int, text: str) -> None:
        """Append to a rank's own log, for errors that it cannot report in another way."""
        with files.open_to_append(self.path / f"rank_{rank:03d}.log") as file:
            file.write(text)

    def has_run(self) -> bool:
        """Return whether anything was computed here."""
        return os.path.lexists(self.progress_path) or any(self.checkpoints.glob("*"))

    def write_config(self, config: RunConfig) -> None:
        """Replace config.json."""
        files.replace(self.config_path, [config.to_json(), "\n"]).close()

    def read_config(self) -> RunConfig:
        """Read config.json."""
        if not os.path.lexists(self.config_path):
            why = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            raise ValueError(f"{self.path} is not a run folder: {why}")
        return RunConfig.from_values(files.read_json(self.config_path, follow_links=False), self.config_path)

    def find_config(self) -> RunConfig:
        """Read config.json, or, if it is lost or damaged, the config that the newest checkpoint carries."""
        try:
            return self.read_config()
        except ValueError as error:
            from . import checkpoint  # loads NumPy

            state = None
            with contextlib.suppress(OSError):  # none can be read
                state = checkpoint.load_newest(self.checkpoints, skip=checkpoint.REPLAY)
            if state is None:
                raise
            if not launcher.rank():
                print(f"warning: {error}; the config of its newest checkpoint is used", file=sys.stderr)
            return RunConfig.from_checkpoint(state)


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
