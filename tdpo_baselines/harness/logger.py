"""The log of a run: progress.csv and lines on the console."""

import math
import os
import sys
import time
from pathlib import Path
from typing import TextIO


class ProgressCSV:
    """The file progress.csv: one row per iteration, with the columns of the first row."""

    def __init__(self, path: Path, *, last_iteration: int):
        """Continue after `last_iteration`, dropping later rows and an incomplete last line."""
        self._path = path
        self._columns: list[str] = []
        kept = self._kept_lines(last_iteration)
        partial = path.with_suffix(".partial")
        partial.write_text("".join(kept))
        os.replace(partial, path)
        self._file = open(path, "a")

    def _kept_lines(self, last_iteration: int) -> list[str]:
        if last_iteration == 0:
            return []
        text = self._path.read_text() if self._path.exists() else ""
        header, *rows = text.splitlines(keepends=True) or [""]
        self._columns = header.strip().split(",")
        kept = [row for row in rows[:last_iteration] if row.count(",") == len(self._columns) - 1 and row[-1] == "\n"]
        expected = [str(iteration) for iteration in range(1, last_iteration + 1)]
        if [row.split(",", 1)[0] for row in kept] != expected or self._columns[0] != "iteration":
            raise ValueError(
                f"{self._path} does not hold the {last_iteration} rows before the checkpoint; "
                "restore the file or pass another --log_dir"
            )
        return [header, *kept]

    def write(self, rows: list[dict]) -> None:
        """Append rows and flush them to the operating system."""
        lines = []
        for row in rows:
            if not self._columns:
                self._columns = list(row)
                lines.append(",".join(self._columns) + "\n")
            if self._columns != list(row):
                raise ValueError(f"{self._path} has other columns than this run: {', '.join(self._columns)}")
            lines.append(",".join(map(_text, row.values())) + "\n")
        if not os.path.exists(self._path):
            raise OSError(f"{self._path} has disappeared during the run; restore its folder or start again")
        try:
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as error:
            raise OSError(
                f"cannot write {self._path}: {error.strerror}; make room and continue with --resume"
            ) from error

    def sync(self) -> None:
        """Force the rows onto the disk."""
        os.fsync(self._file.fileno())


class Tail:
    """The lines that a growing file gains; one that is replaced begins again."""

    def __init__(self, path: Path):
        self._path = path
        self._file: TextIO | None = None
        self._rest = ""  # of an incomplete line

    def read(self) -> list[str]:
        """Return the lines that were completed since the last call."""
        if not self._path.exists():
            return []
        if self._file is None or not os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path)):
            self._file, self._rest = open(self._path, errors="replace"), ""
        *complete, self._rest = (self._rest + self._file.read()).split("\n")
        return complete


class ProgressReader:
    """The rows that progress.csv gains, each once, also if the run is resumed meanwhile."""

    def __init__(self, path: Path):
        self._tail = Tail(path)
        self._columns: list[str] = []
        self._last_iteration = 0

    def read(self) -> list[dict]:
        """Return the rows that were completed since the last call, by column."""
        rows = []
        for line in self._tail.read():
            cells = line.split(",")
            if cells[0] == "iteration":
                self._columns = cells
            elif int(cells[0]) > self._last_iteration:
                self._last_iteration = int(cells[0])
                rows.append({name: _number(cell) for name, cell in zip(self._columns, cells)})
        return rows


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
        texts |= {"done": f"{fraction_done:6.1%}", "time left": f"{format_time(seconds_left):>10}"}
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

    def estimate(self, seconds: float, done: float) -> float:
        """Return the seconds left, `seconds` after the beginning, with a fraction done."""
        passed = seconds - self._seconds
        kept = math.exp(-passed / self.SECONDS_REMEMBERED) if self._speed else 0.0
        self._speed = kept * self._speed + (1 - kept) * (done - self._done) / passed
        self._seconds, self._done = seconds, done
        return (1 - done) / max(self._speed, 1e-12)


def format_time(seconds: float) -> str:
    """Return H:MM:SS."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _text(value) -> str:
    """Return the shortest text that reads back as the same number."""
    return repr(float(value)) if isinstance(value, float) else str(int(value))
