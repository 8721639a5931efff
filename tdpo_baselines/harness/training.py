"""The loop around every algorithm: iterate, log, checkpoint, stop at a safe point, resume.

All ranks run this loop in step; only rank 0 writes.
"""

import dataclasses
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..common.parallel.checks import NotFinite, require_finite
from ..common.parallel.comm import Comm
from ..contracts import Component, Learner, Row, State
from ..options.budget import Budget
from ..storage import checkpoint
from ..storage.logger import Console, ProgressCSV, TimeLeft, format_time
from ..storage.run_folder import RunConfig, RunFolder
from ..storage.tracking import Trackers
from .initial import begin_with
from .selection import Selection
from .stages import StagedLearner
from .stop_request import EXIT_STOPPED, StopRequest

NUM_CHECKPOINTS = 3
ITERATIONS_BETWEEN_CHECKS = 50  # that all ranks hold the same
SECONDS_TO_FIRST_CHECKPOINT = 10.0  # of a session, so that a run can be evaluated soon
SECONDS_TO_MEASURE = 10.0  # before the expected time is told
SECONDS_BETWEEN_REPORTS = 0.2  # a report logs all iterations since the last one
MAX_ITERATIONS_BETWEEN_REPORTS = 20  # iterations may become slower, and stop requests must not wait for many


@dataclass
class Progress:
    """Counters of the whole run, over all its sessions."""

    iteration: int = 0
    total_timesteps: int = 0
    episodes: int = 0
    wall_time: float = 0.0

    def state(self) -> Component:
        """Return the values that a checkpoint must hold."""
        return dict(vars(self))

    def load_state(self, state: Component) -> None:
        """Continue from a checkpoint; those of earlier revisions hold more."""
        for name in vars(self):
            setattr(self, name, state[name].item())


class Training:
    """One session of a run: from its newest checkpoint, if any, to its end or a stop."""

    def __init__(
        self,
        learners: Sequence[Callable[[], Learner]],
        config: RunConfig,
        folder: RunFolder,
        comm: Comm,
        budget: Budget,
        console: Console,
        stop: StopRequest,
        track: Sequence[str] = (),
    ):
        """Take functions that make the learners of the stages, the run's own last, and names of trackers."""
        self._staged = StagedLearner(learners, (stage["timesteps"] for stage in config.stages))
        self._config, self._folder, self._comm = config, folder, comm
        self._budget, self._console, self._stop = budget, console, stop
        self._progress = Progress()
        self._selection = Selection(comm, config.seed, self._learner.theta)
        self._csv: ProgressCSV | None = None
        self._trackers, self._track = Trackers(console.say), track
        self._rows: list[dict] = []  # not in the log yet
        self._next_report = 0  # iteration
        self._has_warned = False
        self._has_told_time = False
        self._learning_began = 0.0  # seconds of this session
        self._saved = self._best_saved = -1  # iterations of the newest checkpoints of this session
        self._began = self._last_saved = self._last_report = 0.0  # times, set when training begins
        self._before = self._progress

    @property
    def _learner(self) -> Learner:
        return self._staged.now

    def prepare(self, *, is_resumed: bool, initial_theta: np.ndarray | None = None) -> None:
        """Load the newest readable checkpoint on every rank, if there is one, and open the log after it.

        With `initial_theta` the run begins from that policy, and saves it at once: a resumed run needs nothing else.
        """
        self._stop.is_starting = False
        self._check_state()
        if initial_theta is not None:
            begin_with(self._learner, initial_theta)
        state = self._comm.on_root(self._load) if is_resumed else None
        if state is not None:
            self._progress.load_state(state["progress"])
            self._staged.seek(self._progress.total_timesteps)
            expected = dict(self._learner.state())
            if "selection" in state:  # not in checkpoints of earlier revisions
                expected["selection"] = self._selection.state()
            self._comm.on_root(partial(self._require_fit, checkpoint.flatten(expected), state))
            self._learner.load_state(state)
            if "selection" in state:
                self._selection.load_state(state["selection"])
            self._console.say(f"resumed at iteration {self._progress.iteration}")
        self._require_space()
        if not self.is_finished():
            self._comm.on_root(self._open_log)
        if initial_theta is not None:
            self._save()
            self._saved = -1  # the first checkpoint of the training is still to come

    def _state(self) -> dict[str, Component]:
        """Return everything a checkpoint must hold. All ranks call this together: parts of it may be gathered."""
        return {"progress": self._progress.state(), "selection": self._selection.state(), **self._learner.state()}

    def _check_state(self) -> None:
        """Raise TypeError if the learner's state has not the form of `State`, with the policy's theta."""
        state, who = self._learner.replicated(), f"{self._config.algorithm}'s Learner.state()"
        for component, arrays in state.items():
            if not isinstance(arrays, dict) or any(
                np.asarray(array).dtype.kind not in "biuf" for array in arrays.values()
            ):
                raise TypeError(f"{who} must be {{component: {{name: array}}}}, got {arrays!r} as {component!r}")
        if "theta" not in state.get("policy", {}):
            raise TypeError(f"{who} must have the parameters of the policy as state['policy']['theta']")

    def _require_space(self) -> None:
        """Raise an error on all ranks if the disk has no room for the checkpoints of this stage."""
        size = sum(np.asarray(array).nbytes for array in checkpoint.flatten(self._state()).values())
        size = (NUM_CHECKPOINTS + 1) * (size + self._learner.replay_bytes)
        self._comm.on_root(lambda: self._folder.require_space(size))

    def _load(self) -> dict[str, Any] | None:
        state = checkpoint.load_newest(self._folder.checkpoints, max_bytes=sys.maxsize)
        if state is None:
            return None
        differences = RunConfig.from_checkpoint(state).differences(self._config)
        if differences:
            raise ValueError(f"the checkpoint in {self._folder.path} is of another run ({'; '.join(differences)})")
        del state["config"]
        self._require_fit(checkpoint.flatten({"progress": Progress().state()}), state)
        if min(state["progress"][name] for name in ("iteration", "total_timesteps", "episodes", "wall_time")) < 0:
            raise ValueError(f"the checkpoint in {self._folder.path} has negative counters; pass another --log_dir")
        return state

    def _require_fit(self, expected: dict[str, Any], state: dict[str, Any]) -> None:
        """Raise ValueError unless a checkpoint has the expected arrays; axes that are empty now may have any length."""
        found = checkpoint.flatten({name: arrays for name, arrays in state.items() if isinstance(arrays, dict)})
        for name, wanted in ((name, np.asarray(value)) for name, value in expected.items()):
            array = np.asarray(found.get(name, ""))
            lengths = zip(array.shape, wanted.shape)
            fits = array.ndim == wanted.ndim and all(now in (0, length) for length, now in lengths)
            if not fits or array.dtype.kind != wanted.dtype.kind:
                what = f"{name} of shape {wanted.shape} and type {wanted.dtype}"
                raise ValueError(f"the checkpoint in {self._folder.path} has no {what}; pass another --log_dir")

    def is_finished(self) -> bool:
        """Return whether the budget is used up."""
        return self._budget.fraction_done(self._progress) >= 1.0

    def run(self) -> int:
        """Train to the end of the budget or to a stop; return the exit code of the process."""
        progress, comm = self._progress, self._comm
        if self.is_finished():
            self._console.say(f"{self._folder.path} is finished already; a larger budget continues it")
            return 0
        self._began, self._before = time.monotonic(), dataclasses.replace(progress)
        self._last_saved = self._last_report = self._began
        self._time_left = TimeLeft(self._budget.fraction_done(progress))
        while not self.is_finished():
            self._rows.append(self._row(self._iterate()))
            stop_reason, is_saving = self._report() if self._is_report_due() else ("", False)
            if is_saving or progress.iteration % ITERATIONS_BETWEEN_CHECKS == 0:
                comm.check_equal(checkpoint.flatten(self._learner.replicated()))
            if is_saving:
                self._save()
            if stop_reason and not self.is_finished():
                self._trackers.finish()
                self._console.say(f"stopped at iteration {progress.iteration} ({stop_reason}); continue with --resume")
                return EXIT_STOPPED
        self._trackers.finish()
        self._console.say(
            f"finished: {progress.iteration} iterations, {progress.total_timesteps} timesteps, "
            f"{format_time(progress.wall_time)}{self._selection}; see {self._folder.path}"
        )
        return 0

    def _open_log(self) -> None:
        self._csv = ProgressCSV(self._folder.progress_path, last_iteration=self._progress.iteration)
        self._trackers.open(self._track, self._folder, self._config, is_quiet=self._console.is_quiet)

    def _iterate(self) -> dict[str, Any]:
        """Make one update and count it; return the learner's row."""
        progress, theta = self._progress, self._learner.theta.copy()
        before = copy_state(self._learner.state()) if self._learner.replay_bytes == 0 else None
        try:
            row = dict(self._learner.iterate(progress.iteration, progress.total_timesteps))
            require_finite("parameter", self._learner.theta)
        except NotFinite as error:
            self._stop_at(error, before)
        self._check_row(row)
        if row.pop("is_after_update", False):
            theta = self._learner.theta.copy()
        if not row.get("is_random"):
            self._selection.propose(row["payoff"], progress.iteration, theta)
        progress.iteration += 1
        progress.total_timesteps += row.pop("num_timesteps")
        progress.episodes += row.pop("num_episodes")
        self._selection.choose(self._learner.roller, progress.total_timesteps)
        progress.wall_time = self._before.wall_time + time.monotonic() - self._began
        if self._staged.advance(progress.total_timesteps):
            self._begin_stage()
        return row

    def _stop_at(self, error: NotFinite, before: dict[str, Component] | None) -> NoReturn:
        """Log, save the state before the update if it is known, and raise the error with the iteration's number."""
        self._report()
        fate = "checkpoints before it, if there are any, are in"
        if before is not None:
            self._learner.load_state(before)
            self._save()
            fate = "the state before it is saved in"
        iteration = self._progress.iteration + 1
        hint = "check the environment" + (", or try smaller steps or less noise" if iteration > 1 else "")
        raise NotFinite(f"iteration {iteration}: {error}; {fate} {self._folder.checkpoints}; {hint}") from error

    def _check_row(self, row: Mapping[str, Any]) -> None:
        """Raise TypeError if a row lacks a key of `Row`, has another value than a number, or counts no timestep."""
        who = f"the row that {self._config.algorithm}'s Learner.iterate returns"
        missing = next((name for name in Row.__annotations__ if name not in row), None)
        if missing:
            raise TypeError(
                f"{who} has no {missing!r}; it must have {', '.join(Row.__annotations__)}, got {', '.join(row)}"
            )
        odd = next((name for name, value in row.items() if not isinstance(value, Real)), None)
        if odd:
            raise TypeError(f"{who} must hold numbers, got {odd}={row[odd]!r}")
        if row["num_timesteps"] < 1:
            raise TypeError(f"{who} must count at least one timestep, got num_timesteps={row['num_timesteps']}")

    def _begin_stage(self) -> None:
        """Prepare for the learner of another stage."""
        self._require_space()
        self._selection.restart(self._learner.theta)
        self._next_report = 0  # its iterations may be slower
        self._console.say(f"stage {self._staged.number} begins after iteration {self._progress.iteration}")

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row of progress.csv."""
        progress, before = self._progress, self._before
        counters = {name: getattr(progress, name) for name in ("iteration", "total_timesteps", "episodes")}
        main = {name: row.pop(name) for name in ("return_mean", "discounted_return_mean", "payoff")}
        speed = (progress.total_timesteps - before.total_timesteps) / (progress.wall_time - before.wall_time)
        times = {"wall_time": progress.wall_time, "steps_per_second": speed}
        return {**counters, **main, **times, **row}

    def _is_report_due(self) -> bool:
        """Return whether to log now, the same on all ranks."""
        iteration = self._progress.iteration
        is_checkpoint_due = iteration % self._budget.checkpoint_every == 0
        return iteration >= self._next_report or is_checkpoint_due or self.is_finished()

    def _report(self) -> tuple[str, bool]:
        """Let rank 0 log the new rows; return the reason to stop, if there is one, and whether to save."""
        signals = self._comm.gather(np.array([self._stop.number]), self._comm.size)  # any rank may get one
        stop_reason, is_due, self._next_report = self._comm.on_root(lambda: self._log(int(signals.max())))
        self._rows = []
        return stop_reason, bool(is_due or stop_reason or self.is_finished())

    def _log(self, stop_signal: int) -> tuple[str, bool, int]:
        """Write the new rows; return the reason to stop, whether to save, and the iteration of the next report."""
        budget, iteration = self._budget, self._progress.iteration
        assert self._csv is not None
        self._csv.write(self._rows)
        self._trackers.log(self._rows)
        for row in self._rows:
            self._warn_if_stuck(row)
        now = time.monotonic()
        elapsed = now - self._began
        self._show_last_row(elapsed)
        stop_reason = "max_walltime" if elapsed >= budget.max_seconds else ""
        stop_reason = signal.Signals(stop_signal).name if stop_signal else stop_reason
        seconds = 60 * budget.checkpoint_minutes
        seconds = min(seconds, SECONDS_TO_FIRST_CHECKPOINT) if self._saved < 0 else seconds
        is_due = iteration % budget.checkpoint_every == 0 or now - self._last_saved >= seconds
        in_time = int(SECONDS_BETWEEN_REPORTS * len(self._rows) / (now - self._last_report))
        self._last_report = now
        return stop_reason, is_due, iteration + min(max(in_time, 1), MAX_ITERATIONS_BETWEEN_REPORTS)

    def _show_last_row(self, elapsed: float) -> None:
        if not self._rows:
            return
        row, done = self._rows[-1], self._budget.fraction_done(self._progress)
        if row.get("num_updates") == 0:  # DDPG and TD3 collect before they learn
            self._learning_began, seconds_left = elapsed, self._time_left.wait(elapsed, done)
        else:
            seconds_left = self._time_left.estimate(elapsed, done)
        if elapsed - self._learning_began >= SECONDS_TO_MEASURE and not self._has_told_time:
            self._has_told_time = True
            self._console.say(f"expected time: {(elapsed + seconds_left) / 60:.1f} minutes")
        self._console.show(row, fraction_done=done, seconds_left=seconds_left, is_last=done >= 1)

    def _warn_if_stuck(self, row: dict) -> None:
        is_stuck = row.get("gradient_norm") == 0 and not row.get("has_dropped") and row["iteration"] > 1
        if is_stuck and not self._has_warned:
            self._has_warned = True
            self._console.say("warning: the gradient is exactly zero; are all actions at their limits?")

    def _save(self) -> None:
        """Let rank 0 write a checkpoint, and one of the best parameters if they are new."""
        self._last_saved = time.monotonic()
        self._comm.on_root(partial(self._write_checkpoints, self._state()))

    def _write_checkpoints(self, state: dict[str, Any]) -> None:
        progress, config = self._progress, self._config.to_json()
        assert self._csv is not None
        self._csv.sync()  # a run resumes from a checkpoint only with all rows before it
        best = self._selection.best
        if not self._selection.has_best:
            checkpoint.clear(self._folder.best)  # of an earlier stage
        elif best.iteration != self._best_saved:
            state_of_best = {"policy": {"theta": best.theta}, "progress": {"iteration": best.iteration}}
            self._save_in(self._folder.best, best.iteration, {**state_of_best, "config": config}, keep=1)
            self._best_saved = best.iteration
        if progress.iteration != self._saved:
            state = {**state, "config": config}
            self._save_in(self._folder.checkpoints, progress.iteration, state, keep=NUM_CHECKPOINTS)
            self._saved = progress.iteration

    def _save_in(self, folder: Path, iteration: int, state: dict[str, Any], *, keep: int) -> None:
        checkpoint.save(folder, iteration, state, keep=keep, is_ours=self._folder.is_ours)


def copy_state(state: State) -> State:
    """Return a copy that a learner's changes in place do not reach."""
    return {component: {name: np.copy(a) for name, a in arrays.items()} for component, arrays in state.items()}
