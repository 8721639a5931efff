"""Watch runs: `python -m tdpo_baselines.watch DIR...` shows curves, rates and time left in the terminal until Ctrl-C.

DIR is a run folder or a folder of runs. Only files are read, so it works from another shell or host.
"""

import argparse
import math
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from .storage.logger import COLUMNS_OF_RUNS, ProgressReader, format_time
from .storage.run_folder import RunFolder
from .viewing.terminal import draw_curve, printable

SECONDS_OF_RATE = 60.0  # the speed is that of the last minute
SECONDS_OF_SILENCE = 60.0  # after which a run is not called running
MAX_CURVE_LINES = 10
LABEL_WIDTH = 11
ENTER, LEAVE, HOME, END_OF_LINE, END_OF_SCREEN = (
    "\x1b[?1049h\x1b[?25l",
    "\x1b[?25h\x1b[?1049l",
    "\x1b[H",
    "\x1b[K",
    "\x1b[J",
)


class WatchedRun:
    """A run folder and the rows that its log has had so far."""

    def __init__(self, path: Path):
        self.folder = RunFolder(path)
        self.rows: list[dict] = []
        self._reader = ProgressReader(self.folder.progress_path, COLUMNS_OF_RUNS)

    def read(self) -> None:
        """Read new rows and the config, whose budget changes when a run is continued."""
        self.config = self.folder.read_config()
        self.rows += self._reader.read()

    def fraction_done(self, row: dict) -> float:
        """Return the fraction of timesteps or iterations that is done, whichever is larger; NaN if unknown."""
        limits, columns = self.config.made_with, {"num_timesteps": "total_timesteps", "num_iterations": "iteration"}
        done = [row[column] / limits[limit] for limit, column in columns.items() if limits.get(limit)]
        return min(max(done, default=math.nan), 1.0)

    def speed(self) -> tuple[float, float]:
        """Return timesteps per second and the seconds left, by the last minute."""
        last = self.rows[-1]
        since = next(row for row in self.rows if row["wall_time"] >= last["wall_time"] - SECONDS_OF_RATE)
        seconds = last["wall_time"] - since["wall_time"]
        if seconds <= 0:
            return last["steps_per_second"], math.nan
        gained = self.fraction_done(last) - self.fraction_done(since)
        left = (1 - self.fraction_done(last)) * seconds / gained if gained > 0 else math.nan
        return (last["total_timesteps"] - since["total_timesteps"]) / seconds, left

    def status(self) -> str:
        """Return whether the run goes on, how far it is, and the time left."""
        done, (_, left) = self.fraction_done(self.rows[-1]), self.speed()
        silence = time.time() - self.folder.progress_path.stat().st_mtime
        if done >= 1:
            return "finished"
        share = "" if math.isnan(done) else f", {done:.1%}"
        if silence > SECONDS_OF_SILENCE:
            return f"no row for {format_time(silence)}{share}"
        return f"running{share}" + ("" if math.isnan(left) else f", {format_time(left)} left")

    def numbers(self) -> str:
        """Return the last row in a line."""
        last, (steps_per_second, _) = self.rows[-1], self.speed()
        texts = [f"iteration {last['iteration']}", f"{last['total_timesteps'] / 1e6:.2f}M timesteps"]
        texts += [
            f"{name.removesuffix('_mean')} {last[name]:.5g}" for name in ("return_mean", "payoff") if name in last
        ]
        return "  ".join([*texts, f"{steps_per_second:,.0f} steps/s"])


def describe(run: WatchedRun, width: int, num_lines: int, *, column: str, is_ascii: bool) -> list[str]:
    """Return at most `num_lines` lines about a run: name and status, numbers, curve."""
    status, config = run.status() if run.rows else "no row yet", run.config
    path = printable(str(run.folder.path))
    rest = printable(f"  {config.algorithm} on {config.environment}, seed {config.seed}  {status}")
    room = max(width - len(rest), 10)
    lines = [(path if len(path) <= room else f"...{path[3 - room :]}") + rest]  # the end of a path tells more
    if not run.rows:
        return lines
    lines.append(f"  {run.numbers()}")
    values = np.array([row.get(column, math.nan) for row in run.rows], dtype=float)
    values, height = values[np.isfinite(values)], min(num_lines - 3, MAX_CURVE_LINES)
    if len(values) and height > 0 and width > LABEL_WIDTH + 10:
        curve, low, high = draw_curve(values, width - LABEL_WIDTH - 1, height, is_ascii=is_ascii)
        labels = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"] if height > 1 else [f"{high:.4g}"]
        lines += [f"{label:>{LABEL_WIDTH}} {line}" for label, line in zip(labels, curve)]
    return [*lines[: num_lines - 1], ""]


def make_frame(runs: list[WatchedRun], size: tuple[int, int], *, column: str, is_ascii: bool) -> list[str]:
    """Return the lines of a screen of (width, height) that the runs share equally."""
    width, height = size
    num_lines = max(height // max(len(runs), 1), 3)
    lines = [line for run in runs for line in describe(run, width, num_lines, column=column, is_ascii=is_ascii)]
    return [line[:width] for line in lines[:height]]


def find_runs(paths: list[str], known: dict[Path, WatchedRun]) -> list[WatchedRun]:
    """Return the runs in the folders, up to two levels down; raise ValueError if a folder does not exist."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            raise ValueError(f"{path} is not a folder; pass a run folder or a folder of runs")
        for pattern in ("config.json", "*/config.json", "*/*/config.json"):
            folders = sorted(config.parent for config in path.glob(pattern))
            found |= dict.fromkeys(folder for folder in folders if RunFolder(folder).checkpoints.is_dir())
    return [known.setdefault(path, WatchedRun(path)) for path in found]


def show(paths: list[str], known: dict[Path, WatchedRun], *, column: str, size: tuple[int, int]) -> list[str]:
    """Read the runs and return a frame."""
    runs = find_runs(paths, known)
    for run in runs:
        run.read()
    is_ascii = "utf" not in (sys.stdout.encoding or "").lower()
    return make_frame(runs, size, column=column, is_ascii=is_ascii) or [f"no runs yet in {', '.join(paths)}"]


def terminal_size() -> tuple[int, int]:
    """Return width and height."""
    width, height = shutil.get_terminal_size()
    return width, height


def watch(paths: list[str], *, column: str, seconds: float) -> None:
    """Redraw the terminal until Ctrl-C."""
    known: dict[Path, WatchedRun] = {}
    show(paths, known, column=column, size=(80, 24))  # an invalid folder is told before the screen changes
    sys.stdout.write(ENTER)
    try:
        while True:
            lines = show(paths, known, column=column, size=terminal_size())
            sys.stdout.write(HOME + "\r\n".join(line + END_OF_LINE for line in lines) + END_OF_SCREEN)
            sys.stdout.flush()
            time.sleep(seconds)
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(LEAVE)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tdpo_baselines.watch", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", metavar="DIR", help="run folders, or folders of runs")
    parser.add_argument("--y", default="payoff", help="column of progress.csv to draw (default: payoff)")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="time between looks (default: 1)")
    parser.add_argument("--once", action="store_true", help="print one frame and end, as without a terminal")
    parsed = parser.parse_args(arguments)
    if not 0.1 <= parsed.every <= 3600:
        parser.error(f"--every must be from 0.1 to 3600 seconds, got {parsed.every}")
    return parsed


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit code."""
    parsed = parse(arguments)
    try:
        if parsed.once or not sys.stdout.isatty():
            size = (terminal_size()[0], 1000)
            print("\n".join(show(parsed.runs, {}, column=parsed.y, size=size)), flush=True)
        else:
            watch(parsed.runs, column=parsed.y, seconds=parsed.every)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
