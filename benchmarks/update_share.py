"""Fraction of a TDPO iteration spent outside rollouts, steps per second and memory, on any number of ranks.

    mpirun -np 2 python benchmarks/update_share.py

pendulum-nlr with the paper's settings, with TDPO's default variant, and with this and 48 trajectories x 4 branches; the
leg and HalfCheetah-v5 with the shipped settings. HalfCheetah-v5 goes through Gymnasium, whose steps are its rollouts;
everything else counts as outside: drawing, gathering, gradient, conjugate gradient, log, waiting.
"""

# ruff: noqa: E402

import contextlib
import resource
import tempfile
import time
from pathlib import Path

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow, prepare_environment

prepare_environment()  # before anything imports NumPy: one thread

import numpy as np
from table import add_row

from tdpo_baselines.common.parallel.comm import connect
from tdpo_baselines.common.sampling.rollouts import PolicyRoller
from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.harness.session import set_up
from tdpo_baselines.harness.stop_request import StopRequest
from tdpo_baselines.plot import read_progress
from tdpo_baselines.run import parse
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunFolder

SIZE = ("num_trajectories=48", "num_branches=4")
CASES = {  # environment, iterations of warm-up and of the measurement, preset, changes of options
    "pendulum-nlr, paper": ("pendulum-nlr", 20, 400, "paper", ()),
    "pendulum-nlr": ("pendulum-nlr", 20, 1000, "none", ()),
    "pendulum-nlr, 48 x 4": ("pendulum-nlr", 20, 400, "none", SIZE),
    "leg": ("leg", 2, 20, "none", ()),
    "HalfCheetah-v5": ("HalfCheetah-v5", 1, 5, "tuned", ("env.compiled=false",)),
}


def measure(comm, environment, num_warm_up, num_iterations, preset, changes):
    """Return the seconds in rollouts, the seconds in all, and the timesteps of a run."""
    train(comm, environment, num_warm_up, preset, changes)
    return train(comm, environment, num_iterations, preset, changes)


def train(comm, environment, num_iterations, preset, changes):
    """Train in a temporary folder; return the seconds in rollouts, the seconds in all, and the timesteps."""
    arguments = ["--env", environment, "--num_iterations", str(num_iterations), "--num_timesteps", "1e18"]
    run = resolve(parse([*arguments, "--preset", preset, *(("--set", *changes) if changes else ())]))
    gymnasiums = getattr(run.stages[-1].environment, "env", None)  # None: compiled
    owner, name = (PolicyRoller, "rollouts") if gymnasiums is None else (gymnasiums, "step")
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(comm.broadcast(path))
        training = set_up(run, folder, comm, StopRequest(), is_quiet=True)
        with time_calls(owner, name) as rollouts:
            began = time.perf_counter()
            training.run()
            total = time.perf_counter() - began
        num_steps = comm.on_root(lambda: int(read_progress(folder.path)["total_timesteps"][-1]))
    return sum(rollouts), total, num_steps


@contextlib.contextmanager
def time_calls(owner, name):
    """Append the seconds of each call of a method to the list that this yields."""
    seconds, method = [], getattr(owner, name)

    def timed(*arguments, **keywords):
        began = time.perf_counter()
        result = method(*arguments, **keywords)
        seconds.append(time.perf_counter() - began)
        return result

    setattr(owner, name, timed)
    yield seconds
    setattr(owner, name, method)


def main():
    """Print a line for each case, and the memory of each rank."""
    comm = connect()
    load_tensorflow()
    with tempfile.TemporaryDirectory() as folder:  # the first checkpoint of a process takes four times as long
        checkpoint.save(Path(folder), 0, {"policy": {"theta": np.zeros(1)}}, keep=1)
    for title, case in CASES.items():
        rollouts, total, num_steps = measure(comm, *case)
        if comm.rank == 0:
            print(
                f"{title}, {comm.size} rank(s): iteration {1e3 * total / case[2]:.1f} ms, outside rollouts "
                f"{1 - rollouts / total:.1%}, {num_steps / total:,.0f} steps/s",
                flush=True,
            )
            goal = "30 %" if "paper" in title else "3 %" if comm.size == 1 else "10 %"
            name = f"share of an update outside rollouts, {title}, {comm.size} rank(s)"
            add_row(
                name, 100 * (1 - rollouts / total), "%", goal=f"at most {goal}", bound="matrix products of the step"
            )
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"rank {comm.rank}: {megabytes:.0f} MB at most", flush=True)


if __name__ == "__main__":
    main()
