"""Share of a TDPO iteration spent outside rollouts, steps per second and memory, on any number of ranks.

    mpirun -np 2 python benchmarks/update_share.py

48 trajectories x 4 branches on pendulum-nlr with the shipped settings, and with the paper's
sensitivity term; the leg with the shipped settings; HalfCheetah-v5, where everything but the steps of
Gymnasium's environment is outside. Everything counts: drawing, gathering, gradient, conjugate gradient,
log, waiting.
"""

# ruff: noqa: E402

import resource
import tempfile
import time
from pathlib import Path

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow, prepare_environment

prepare_environment()  # before anything imports NumPy: one thread

import numpy as np

from tdpo_baselines.common.parallel import comm as communication
from tdpo_baselines.harness import checkpoint, registry
from tdpo_baselines.harness.budget import Budget
from tdpo_baselines.harness.logger import Console
from tdpo_baselines.harness.run_folder import RunConfig, RunFolder
from tdpo_baselines.harness.stop_request import StopRequest
from tdpo_baselines.plot import read_progress

SIZE = {"num_trajectories": 48, "num_branches": 4}
CASES = {  # environment, warm-up and measured iterations, changes to the shipped settings
    "pendulum-nlr": ("pendulum-nlr", 20, 1000, SIZE),
    "pendulum-nlr, sensitivity term": ("pendulum-nlr", 20, 200, {**SIZE, "c1_over_c2": 1.0}),
    "leg": ("leg", 2, 20, {}),
    "HalfCheetah-v5": ("HalfCheetah-v5", 1, 5, {}),
}


def measure(comm, environment, num_warm_up, num_iterations, changes):
    """Seconds in rollouts (of Gymnasium: in its steps), seconds in all, and timesteps."""
    from tdpo_baselines.harness.training import Training
    from tdpo_baselines.tdpo import tdpo

    options = tdpo.Config.from_values({**registry.presets("tdpo", environment).get("tuned", {}), **changes})
    kernel = registry.make_environment(environment, registry.resolve_options(environment, {}))
    roller = comm.warm_up(lambda: registry.make_roller(kernel, options))
    is_ours = environment in registry.ENVIRONMENTS
    rollout_seconds = time_calls(roller, "rollouts") if is_ours else time_calls(kernel._env, "step")
    learner = tdpo.Learner(options, roller, comm, seed=0)
    for iteration in range(num_warm_up):
        learner.iterate(iteration, 0)
    rollout_seconds.clear()
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(comm.broadcast(folder))
        comm.on_root(run.create)
        budget = Budget(10**18, num_iterations, 1000, 120.0, None)
        training = Training(
            [lambda: learner],
            RunConfig("tdpo", environment, 0, {}, {}),
            run,
            comm,
            budget,
            Console(is_quiet=True),
            StopRequest(),
        )
        training.prepare(is_resumed=False)
        began = time.perf_counter()
        training.run()
        total = time.perf_counter() - began
        num_steps = int(read_progress(run.path)["total_timesteps"][-1])
    return sum(rollout_seconds), total, num_steps


def time_calls(owner, name):
    """Replace a method by one that appends the seconds of each call to the returned list."""
    seconds, method = [], getattr(owner, name)

    def timed(*arguments, **keywords):
        began = time.perf_counter()
        result = method(*arguments, **keywords)
        seconds.append(time.perf_counter() - began)
        return result

    setattr(owner, name, timed)
    return seconds


def main():
    comm = communication.connect()
    load_tensorflow()
    # The first checkpoint of a process takes four times as long as those that follow.
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save(Path(folder), 0, {"theta": np.zeros(1)}, keep=1)
    for title, case in CASES.items():
        rollouts, total, num_steps = measure(comm, *case)
        if comm.rank == 0:
            print(
                f"{title}, {comm.size} rank(s): iteration {1e3 * total / case[2]:.1f} ms, outside rollouts "
                f"{1 - rollouts / total:.1%}, {num_steps / total:,.0f} steps/s",
                flush=True,
            )
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"rank {comm.rank}: {megabytes:.0f} MB at most", flush=True)


if __name__ == "__main__":
    main()
