"""Trackers: tools that get every row of progress.csv too. Rank 0 alone speaks to them.

The name of a run for Weights & Biases and trackio is in its folder, so a resumed run continues the same tracked run.
"""

import contextlib
import importlib.util
import io
import os
import re
import secrets
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..common import files
from ..common.parallel.tensorflow_setup import load_tensorflow
from ..options.config import did_you_mean
from .run_folder import RunConfig, RunFolder

PROJECT = "tdpo_baselines"


class TensorBoard:
    """Events in the run's folder."""

    def __init__(self, folder: RunFolder, config: RunConfig, is_quiet: bool):
        files.make_folder(folder.path / "tensorboard")
        self._writer = load_tensorflow().summary.create_file_writer(str(folder.path / "tensorboard"))

    def log(self, row: dict, step: int) -> None:
        """Write a row of progress.csv as scalars."""
        with self._writer.as_default(step=step):
            for name, value in row.items():
                load_tensorflow().summary.scalar(name, value)

    def finish(self) -> None:
        """Write what is left."""
        self._writer.close()


def open_wandb(folder: RunFolder, config: RunConfig, is_quiet: bool) -> Any:
    """Begin or continue a run of Weights & Biases; its own variables, such as WANDB_MODE=offline, are obeyed."""
    wandb = import_module("wandb")
    settings = wandb.Settings(console="off", silent=is_quiet)
    where = {"project": os.environ.get("WANDB_PROJECT", PROJECT), "dir": str(folder.path), "name": folder.path.name}
    return wandb.init(**where, id=tracked_name(folder), config=describe(config), resume="allow", settings=settings)


def open_trackio(folder: RunFolder, config: RunConfig, is_quiet: bool) -> Any:
    """Begin or continue a run of trackio, on this machine unless its own variables name another place."""
    project = os.environ.get("TRACKIO_PROJECT", PROJECT)
    with contextlib.redirect_stdout(io.StringIO()) if is_quiet else contextlib.nullcontext():
        return import_module("trackio").init(
            project, name=tracked_name(folder), config=describe(config), resume="allow", auto_log_cpu=False
        )


TRACKERS: dict[str, Callable[[RunFolder, RunConfig, bool], Any]] = {
    "tensorboard": TensorBoard,
    "wandb": open_wandb,
    "trackio": open_trackio,
}
"""Trackers by the name of their library, which is that of our extra too. Each makes something to log and finish."""


def require(names: Sequence[str]) -> None:
    """Raise ValueError if a tracker is unknown or not installed."""
    for name in names:
        if name not in TRACKERS:
            near = did_you_mean(name, TRACKERS)
            raise ValueError(f"--track {name} is unknown{near}; choose one of {', '.join(TRACKERS)}")
        if not is_installed(name):
            raise ValueError(f'--track {name} needs its library: pip install "tdpo_baselines[{name}]"')


def is_installed(name: str) -> bool:
    """Return whether a tracker's library can be imported."""
    return importlib.util.find_spec(name) is not None


def tracked_name(folder: RunFolder) -> str:
    """Return the name by which trackers know the run, made when it is first asked for."""
    path = folder.path / "tracked_as.txt"
    known = next(files.read_lines(path), "").strip() if os.path.lexists(path) else ""
    if re.fullmatch(r"[\w.-]{1,100}", known):
        return known
    name = re.sub(r"[^\w.-]+", "-", folder.path.resolve().name)[:80] + "-" + secrets.token_hex(4)
    files.replace(path, [name, "\n"]).close()
    return name


def describe(config: RunConfig) -> dict[str, Any]:
    """Return what decides the run, by name."""
    head = {"algorithm": config.algorithm, "environment": config.environment, "seed": config.seed}
    return head | config.values()


class Trackers:
    """All trackers of a run. One that fails is left out from then on: it must not end the run."""

    def __init__(self, say: Callable[[str], None]):
        """Take a function that prints a warning."""
        self._say, self._open = say, dict[str, Any]()

    def open(self, names: Sequence[str], folder: RunFolder, config: RunConfig, *, is_quiet: bool) -> None:
        """Begin or continue the run in each tracker; raise ValueError if one refuses."""
        require(names)
        for name in dict.fromkeys(names):
            try:
                self._open[name] = TRACKERS[name](folder, config, is_quiet)
            except Exception as error:
                offline = "; WANDB_MODE=offline needs no account" if name == "wandb" else ""
                raise ValueError(f"--track {name}: {' '.join(str(error).split())}{offline}") from error

    def log(self, rows: Sequence[dict]) -> None:
        """Pass rows of progress.csv on, over timesteps."""
        for row in rows:
            self._call("log", row, step=row["total_timesteps"])

    def finish(self) -> None:
        """End the tracked runs, which wait until everything is written or sent."""
        self._call("finish")
        self._open.clear()

    def _call(self, method: str, *arguments: Any, **keywords: Any) -> None:
        for name, tracker in list(self._open.items()):
            try:
                getattr(tracker, method)(*arguments, **keywords)
            except Exception as error:
                del self._open[name]
                self._say(f"warning: {name} failed ({error}); the run goes on without it")
