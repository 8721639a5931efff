"""Set up a session of a run: check it, open its folder, announce it, and make its learners."""

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..common.parallel.comm import Comm
from ..contracts import Learner
from ..options import registry
from ..options.budget import format_count
from ..storage import tracking
from ..storage.logger import Console
from ..storage.run_folder import LIMITS, RunFolder, versions
from . import initial, stages
from .resolve import Run
from .stop_request import StopRequest
from .training import Training


def set_up(
    run: Run,
    folder: RunFolder,
    comm: Comm,
    stop: StopRequest,
    *,
    is_resumed: bool = False,
    is_quiet: bool = False,
    track: Sequence[str] = (),
) -> Training:
    """Return what trains the run, ready to go on. All ranks call this together; invalid input is `Refused` on all."""
    console, first = Console(is_quiet or comm.rank > 0), run.config
    comm.check_equal({"config.json": np.frombuffer(first.to_json().encode(), np.uint8)})  # hosts may see other files
    comm.on_root(lambda: stages.check(first.algorithm, run.stages, comm.size))
    comm.on_root(lambda: tracking.require(track))
    config, theta = comm.on_root(lambda: initial.take_over(first, run.stages[-1], folder, is_resumed=is_resumed))
    limits = {name: getattr(run.budget, name) for name in LIMITS}
    made_with = versions() | {"num_ranks": comm.size, "preset": run.preset} | limits
    comm.on_root(lambda: folder.open(dataclasses.replace(config, made_with=made_with), is_resumed=is_resumed))
    announce(run, folder, comm, console)
    makers = [partial(make_learner, run, stage, comm) for stage in run.stages]
    config = dataclasses.replace(config, made_with=limits | {"preset": run.preset})  # the same on any number of ranks
    training = Training(makers, config, folder, comm, run.budget, console, stop, track)
    training.prepare(is_resumed=is_resumed, initial_theta=theta)
    return training


def announce(run: Run, folder: RunFolder, comm: Comm, console: Console) -> None:
    """Print what is about to run, with warnings."""
    config, (options, environment), num_timesteps = run.config, run.stages[-1], run.budget.num_timesteps
    console.say(
        f"{config.algorithm} on {config.environment}, seed {config.seed}, preset {run.preset}: "
        f"{format_count(num_timesteps)} timesteps, {comm.size} rank(s), "
        f"{options.num_trajectories} trajectories per update -> {folder.path}"
    )
    if comm.crowd:
        console.say("warning: {} ranks share {} core(s) of a host; one rank per core is faster".format(*comm.crowd))
    for line in [*stages.describe(config, num_timesteps), *options.remarks(environment, num_timesteps)]:
        console.say(line)


def make_learner(run: Run, stage: stages.Stage, comm: Comm) -> Learner:
    """Make the learner of a stage. All ranks call this together."""
    roller = comm.warm_up(lambda: registry.make_roller(stage.environment, stage.options))
    return registry.algorithm(run.config.algorithm).Learner(stage.options, roller, comm, run.config.seed)
