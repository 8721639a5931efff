"""Train and load from Python: `tdpo_baselines.train(...)` and `tdpo_baselines.load(...)`.

A run is a process of its own for each rank, started as the command line would start it. So it has the same bits as
there, whatever the calling process has loaded, and it can be watched, stopped and resumed in the same ways.
"""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .common.parallel import launcher, mpirun
from .evaluating.trained import Trained, load
from .harness.resolve import BUDGET
from .harness.stop_request import EXIT_STOPPED
from .options import callables
from .options.config import to_text
from .run import EXIT_INVALID_INPUT
from .storage.logger import ProgressReader, Tail
from .storage.run_folder import RunFolder, default_path

__all__ = ["Trained", "load", "train"]

ARGUMENTS = {
    *BUDGET,
    "env",
    "alg",
    "seed",
    "preset",
    "config",
    "init",
    "track",
}  # None leaves them out; of options it is a value
SECONDS_BETWEEN_LOOKS = 0.1


def train(
    env: str | Callable | None = None,
    alg: str | None = None,
    *,
    seed: int | None = None,
    num_timesteps: float | None = None,
    ranks: int = 1,
    options: Mapping[str, Any] | None = None,
    log_dir: str | Path | None = None,
    callback: Callable[[dict], Any] | None = None,
    resume: bool = False,
    quiet: bool = False,
    **arguments: Any,
) -> Trained:
    """Train a policy, with the same bits as the command line; return it as `load` does.

    `env` is a name, an id of Gymnasium, or a callable that makes an environment; the default of `alg` is "tdpo".
    `options` are those of `--set`, such as {"gamma": 0.9, "env.delay_steps": 2}; other keywords are options without a
    dot, or arguments of the command line, such as `num_iterations=10` or `init="pretrained:leg"`. `callback(row)` is
    called with every new row of progress.csv; the run stops, with everything saved, if it returns False. Ctrl-C saves
    and stops too.
    """
    if launcher.rank() is not None:
        raise ValueError("train() starts its ranks itself; start the script without mpirun and pass ranks=N")
    name = callables.register(env) if callable(env) else env
    folder = RunFolder(log_dir or default_path(alg or "tdpo", name, seed or 0))
    given = {"env": name, "alg": alg, "seed": seed, "num_timesteps": num_timesteps, "log_dir": folder.path, **arguments}
    words = [f"--{key}={to_text(value)}" for key, value in given.items() if value is not None or key not in ARGUMENTS]
    words += ["--resume"] * resume + ["--quiet"] * quiet
    words += ["--set", *(f"{key}={to_text(value)}" for key, value in options.items())] if options else []
    module, pickled = ("worker", callables.pickle(env)) if callable(env) else ("run", b"")
    start = partial(mpirun.start, ranks, module, words)
    _run(start, pickled, folder, callback)
    return load(folder.path, env=env)


def _run(start: Callable, standard_input: bytes, folder: RunFolder, callback: Callable[[dict], Any] | None) -> None:
    """Start a training and wait for its end; raise ValueError or RuntimeError if it fails."""
    rows = ProgressReader(folder.progress_path)
    rows.read()  # of earlier sessions
    with tempfile.TemporaryDirectory() as scratch:
        texts = [Path(scratch, name) for name in ("output", "errors")]
        with open(texts[0], "wb") as output, open(texts[1], "wb") as errors:
            process: Any = start(stdin=subprocess.PIPE, stdout=output, stderr=errors)
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:  # broken: it ended already
                pipe.write(standard_input)
            _follow(process, rows, callback, *map(Tail, texts))
        except BaseException:  # Ctrl-C, or an error of the callback
            _stop(process)
            raise
        _raise_for(process.returncode, texts[1].read_text(errors="replace"))


def _follow(process: subprocess.Popen, rows: ProgressReader, callback, output: Tail, errors: Tail) -> None:
    """Print what the run prints and pass its rows on until it ends."""
    is_over = is_stopping = is_failing = False
    while not is_over:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        is_over = process.poll() is not None
        for line in output.read():
            print(line, flush=True)
        for line in errors.read():
            is_failing |= line.startswith(("error: ", "-----"))  # will be raised; the latter is mpirun's comment
            if not is_failing:
                print(line, file=sys.stderr, flush=True)
        for row in rows.read() if callback is not None else ():
            if callback(row) is False and not is_stopping and not is_over:
                is_stopping = True
                process.send_signal(signal.SIGUSR1)


def _stop(process: subprocess.Popen) -> None:
    """Let a run save and end; end it at once if this is interrupted."""
    try:
        process.send_signal(signal.SIGUSR1)
        process.wait()
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        raise


def _raise_for(exit_code: int, errors: str) -> None:
    """Raise the error that a run ended with."""
    if exit_code in (0, EXIT_STOPPED):
        return
    found = re.search(r"^error: (.*)$", errors, flags=re.MULTILINE)
    if exit_code == EXIT_INVALID_INPUT and found:
        raise ValueError(found[1])
    raise RuntimeError(found[1] if found else f"the run ended with exit code {exit_code}:\n{errors}")
