"""The log of a run: progress.csv and lines on the console."""

import math
import os
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..common import files

MAX_BYTES = 2**29  # of a progress.csv that is shown
COUNTERS = ("iteration", "total_timesteps", "wall_time")  # at least 0 and at most 1e18
COLUMNS_OF_RUNS = (*COUNTERS, "return_mean", "payoff", "steps_per_second")


class ProgressCSV:
    """The file progress.csv: one row per iteration, with the columns of the first row."""

    def __init__(self, path: Path, *, last_iteration: int):
        """Continue after `last_iteration`, dropping later rows and an incomplete last line."""
        self._path = path
        self._columns: list[str] = []
        self._file = files.replace(path, self._kept_lines(last_iteration))

    def _kept_lines(self, last_iteration: int) -> Iterator[str]:
        """Yield the header and the rows up to an iteration; raise ValueError unless they are all there."""
        if last_iteration == 0:
            return
        lines = files.read_lines(self._path) if os.path.lexists(self._path) else iter(())
        header, num_rows = next(lines, ""), 0
        self._columns = header.strip().split(",")
        yield header
        for num_rows, row in enumerate(lines, start=1):
            is_row = row.count(",") == len(self._columns) - 1 and row[-1] == "\n" and row.startswith(f"{num_rows},")
            if num_rows > last_iteration or not is_row:
                num_rows -= 1
                break
            yield row
        if num_rows != last_iteration or self._columns[0] != "iteration":
            raise ValueError(
                f"{self._path} does not hold the {last_iteration} rows before the checkpoint; "
                "restore the file or pass another --log_dir"
            )

    def write(self, rows: list[dict]) -> None:
        """Append rows and flush them to the operating system. A column that a row lacks, such as one of an earlier
        revision, gets nan."""
        lines = []
        for row in rows:
            if not self._columns:
                self._columns = list(row)
                lines.append(",".join(self._columns) + "\n")
            if unknown := [name for name in row if name not in self._columns]:
                raise ValueError(f"{self._path} has no columns for {', '.join(unknown)}, which this run logs")
            lines.append(",".join(_text(row.get(name, math.nan)) for name in self._columns) + "\n")
        if not self._is_in_place():
            raise OSError(f"{self._path} has disappeared during the run; restore its folder or start again")
        try:
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as error:
            raise OSError(
                f"cannot write {self._path}: {error.strerror}; make room and continue with --resume"
            ) from error

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the file: another run's may have taken its place."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self._path))
        except OSError:
            return False

    def sync(self) -> None:
        """Force the rows onto the disk."""
        os.fsync(self._file.fileno())


class Tail:
    """The lines that a growing file gains; one that is replaced begins again."""

    def __init__(self, path: Path):
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""  # of an incomplete line

    def read(self) -> Iterator[str]:
        """Yield the lines that were completed since the last call."""
        if not os.path.lexists(self._path):
            return
        if self._file is None or not os.path.samestat(os.fstat(self._file.fileno()), os.lstat(self._path)):
            self._file, self._rest = files.open_to_read(self._path, max_bytes=MAX_BYTES), b""
        while line := self._file.readline(files.MAX_LINE):
            self._rest += line
            if len(self._rest) > files.MAX_LINE:
                raise ValueError(f"{self._path} has a line of more than {files.MAX_LINE} bytes; it is damaged")
            if line.endswith(b"\n"):
                complete, self._rest = self._rest, b""
                yield complete[:-1].decode(errors="replace")


class ProgressReader:
    """The rows that progress.csv gains, each once, also if the run is resumed meanwhile."""

    def __init__(self, path: Path, required: tuple[str, ...] = ()):
        """Read from a path; a log without one of the required columns is refused."""
        self._path, self._required = path, required
        self._tail = Tail(path)
        self._columns: list[str] = []
        self._last_iteration = 0

    def read(self) -> list[dict]:
        """Return the rows that were completed since the last call, by column."""
        return [dict(zip(self._columns, row)) for row in self._rows()]

    def _rows(self) -> Iterator[list[int | float]]:
        """Yield new rows; raise ValueError if the file is not a log."""
        for line in self._tail.read():
            cells = line.split(",")
            if cells[0] == "iteration":
                self._columns = self._check_columns(cells)
                continue
            if len(cells) != len(self._columns):
                raise ValueError(f"{self._path} has a row of {len(cells)} cells under {len(self._columns)} columns")
            row = [self._number(name, cell) for name, cell in zip(self._columns, cells)]
            if row[0] > self._last_iteration:
                self._last_iteration = int(row[0])
                yield row

    def _check_columns(self, names: list[str]) -> list[str]:
        missing = next((name for name in self._required if name not in names), None)
        if missing or len(set(names)) < len(names) or not "".join(names).isprintable():
            what = f"has no column {missing!r}" if missing else "has columns twice, or names that cannot be printed"
            raise ValueError(f"{self._path} is not the log of a run: it {what}")
        return names

    def _number(self, name: str, text: str) -> int | float:
        try:
            value = int(text) if len(text) < 19 and text.lstrip("-").isdecimal() else float(text)
        except ValueError as error:
            raise ValueError(f"{self._path} has a {name} that is no number: {text[:40]!r}") from error
        if name in COUNTERS and not 0 <= value <= 1e18:
            raise ValueError(f"{self._path} has a {name} that is not from 0 to 1e18: {text[:40]}")
        return value


class NothingYet(ValueError):
    """The log of a run that has only begun."""


def read_columns(path: Path) -> dict[str, array]:
    """Read the columns of a progress.csv, without an incomplete last line; raise NothingYet if it has no rows."""
    if not os.path.lexists(path):
        raise NothingYet(f"{path.parent} has no progress.csv")
    reader, columns = ProgressReader(path), list[array]()
    for row in reader._rows():
        columns = columns or [array("d") for _ in row]
        for column, value in zip(columns, row):
            column.append(value)
    if not columns:
        raise NothingYet(f"{path} has no rows yet")
    return dict(zip(reader._columns, columns))


COLUMNS = {  # of progress.csv -> title, format; columns that a row does not have are left out
    "iteration": ("iteration", "{:9d}"),
    "total_timesteps": ("timesteps", "{:9.2f}M"),  # millions
    "return_mean": ("return", "{:10.4g}"),
    "payoff": ("payoff", "{:10.4g}"),
    "step_w": ("step_w", "{:11.3g}"),  # TDPO
    "kl": ("kl", "{:11.3g}"),  # TRPO, PPO1
    "num_updates": ("num_updates", "{:11.3g}"),  # DDPG, TD3
    "steps_per_second": ("steps/s", "{:8.3g}"),
}


class Console:
    """Messages and a table of progress on the terminal of rank 0."""

    SECONDS_BETWEEN_LINES = 3.0
    LINES_BETWEEN_HEADERS = 25

    def __init__(self, is_quiet: bool):
        self.is_quiet = is_quiet
        self._next_line = 0.0
        self._num_lines = 0

    def say(self, text: str) -> None:
        """Print a line."""
        if self.is_quiet:
            return
        try:
            print(text, flush=True)
        except BrokenPipeError:  # of `| head`, which must not end the run
            self.is_quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def show(self, row: dict, *, fraction_done: float, seconds_left: float, is_last: bool) -> None:
        """Print a row of the table, unless the last one was printed a moment ago."""
        now = time.monotonic()
        if now < self._next_line and not is_last:
            return
        self._next_line = now + self.SECONDS_BETWEEN_LINES
        row = {**row, "total_timesteps": row["total_timesteps"] / 1e6}
        texts = {title: form.format(row[name]) for name, (title, form) in COLUMNS.items() if name in row}
        texts = {title: text.replace("nan", "  -") for title, text in texts.items()}  # no episode has ended
        time_left = format_time(seconds_left) if math.isfinite(seconds_left) else "-"
        texts |= {"done": f"{fraction_done:6.1%}", "time left": f"{time_left:>10}"}
        if self._num_lines % self.LINES_BETWEEN_HEADERS == 0:
            self.say(" ".join(title.rjust(len(text)) for title, text in texts.items()))
        self._num_lines += 1
        self.say(" ".join(texts.values()))


class TimeLeft:
    """The time to the end, by a moving average of the speed: algorithms may begin faster than they go on."""

    SECONDS_REMEMBERED = 60.0

    def __init__(self, done: float):
        """Begin at a fraction of the whole."""
        self._seconds, self._done, self._speed = 0.0, done, 0.0

    def wait(self, seconds: float, done: float) -> float:
        """Return infinity: nothing has been learned yet, which is much faster; begin anew."""
        self._seconds, self._done, self._speed = seconds, done, 0.0
        return math.inf

    def estimate(self, seconds: float, done: float) -> float:
        """Return the seconds left, `seconds` after the beginning, with a fraction done."""
        passed = seconds - self._seconds
        kept = math.exp(-passed / self.SECONDS_REMEMBERED) if self._speed else 0.0
        self._speed = kept * self._speed + (1 - kept) * (done - self._done) / passed
        self._seconds, self._done = seconds, done
        return (1 - done) / max(self._speed, 1e-12)


def format_time(seconds: float) -> str:
    """Return H:MM:SS."""
    minutes, seconds = divmod(int(min(seconds, 1e9)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _text(value) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(float(value)) if isinstance(value, float) else str(int(value))
