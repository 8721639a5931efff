"""progress.csv and the console: what a run says while it goes on."""

import os
import sys
import time
from pathlib import Path


class ProgressCSV:
    """One row per iteration, flushed as they are written; the first row fixes the columns."""

    def __init__(self, path: Path, *, last_iteration: int):
        """Continue after `last_iteration`; later rows and a torn last line are dropped."""
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
                "restore the file, or start anew in another --log_dir"
            )
        return [header, *kept]

    def write(self, rows: list[dict]) -> None:
        lines = []
        for row in rows:
            if not self._columns:
                self._columns = list(row)
                lines.append(",".join(self._columns) + "\n")
            if self._columns != list(row):
                raise ValueError(f"{self._path} has other columns than this run: {', '.join(self._columns)}")
            lines.append(",".join(map(_text, row.values())) + "\n")
        if not os.path.exists(self._path):
            raise OSError(f"{self._path} has disappeared while the run went on; restore its folder, or start anew")
        try:
            self._file.write("".join(lines))
            self._file.flush()
        except OSError as error:
            raise OSError(
                f"cannot write {self._path}: {error.strerror}; make room and continue with --resume"
            ) from error

    def sync(self) -> None:
        """Rows on the disk, not only with the operating system."""
        os.fsync(self._file.fileno())


class Console:
    """A table on rank 0: a line now and then, with the time left."""

    SECONDS_BETWEEN_LINES = 3.0
    LINES_BETWEEN_HEADERS = 25
    HOW_FAR = ("step_w", "kl", "num_updates")  # how an algorithm tells that it learns: the first that it has

    def __init__(self, is_quiet: bool):
        self._is_quiet = is_quiet
        self._next_line = 0.0
        self._num_lines = 0

    def say(self, text: str) -> None:
        if self._is_quiet:
            return
        try:
            print(text, flush=True)
        except BrokenPipeError:  # of `| head`: nobody listens any more, which is no reason to stop
            self._is_quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def show(self, row: dict, *, fraction_done: float, seconds_left: float, is_last: bool) -> None:
        now = time.monotonic()
        if now < self._next_line and not is_last:
            return
        self._next_line = now + self.SECONDS_BETWEEN_LINES
        how_far = next(name for name in self.HOW_FAR if name in row)
        if self._num_lines % self.LINES_BETWEEN_HEADERS == 0:
            self.say(f"iteration  timesteps     return     payoff {how_far:>11}  steps/s   done  time left")
        self._num_lines += 1
        self.say(
            f"{row['iteration']:9d} {row['total_timesteps'] / 1e6:9.2f}M {row['return_mean']:10.4g} "
            f"{row['payoff']:10.4g} {row[how_far]:11.3g} {row['steps_per_second']:8.3g} "
            f"{fraction_done:6.1%}  {hours_minutes(seconds_left)}"
        )


def hours_minutes(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _text(value) -> str:
    """Shortest text that reads back as the same number."""
    return repr(float(value)) if isinstance(value, float) else str(int(value))
