"""Start-up, memory and communication of TDPO on many ranks, with predictions for more: docs/scaling.md.

    python benchmarks/scaling.py --out docs/scaling.json                    # 1 to 72 ranks of this machine
    python benchmarks/scaling.py --out docs/scaling.json --ranks 3 6 --hosts 3   # over hosts (network namespaces; root)
    python benchmarks/scaling.py --report docs/scaling.json                 # tables and picture beside it

A measurement replaces the one of the same environment, hosts and ranks in the file. With more ranks than cores, waiting
for a core would dominate the wall time. So work is measured in processor time on one rank, and communication by itself:
the messages of a few iterations are recorded and sent again, many times, without work between them. Other programs
slow processor time too, through the caches, so the fastest of several tries counts.
"""

import argparse
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = {  # timesteps at which work is measured: the leg's branches grow
    "pendulum-nlr": {"throughout": 0},
    "leg": {"first updates": 0, "half-way": 25_000_000},
}
NUM_WARM_UP, NUM_RECORDED = 1, 4  # iterations
REPLAY_SECONDS = 3.0
NUM_TRIES = 3  # of each share of the rollouts
MOST_TRAJECTORIES = 1152  # the largest number of the predictions, measured to avoid extrapolation
MARK = "scaling: "  # precedes the result on standard output


# On the ranks.


def measure(environment: str, num_trajectories: int, launched: float) -> None:
    """Measure one number of ranks: the start of a short training, its messages, and on one rank its work."""
    clock = Clock(launched, "launch")
    from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment

    prepare_environment()
    from tdpo_baselines.common.parallel.comm import connect
    from tdpo_baselines.options import registry
    from tdpo_baselines.tdpo import Learner

    run = resolve_run(environment, num_trajectories)
    options, kernel = run.stages[-1]
    clock.end("imports")
    comm = connect()
    clock.end("mpi")
    roller = comm.warm_up(lambda: registry.make_roller(kernel, options))
    clock.end("compile")
    learner = Learner(options, roller, comm, run.config.seed)
    clock.end("tensorflow")
    calls = record_messages(comm)
    first_iteration, recorded = train(learner, run.config, comm, calls)
    result = {
        "environment": environment,
        "hosts": comm.num_hosts,
        "ranks": comm.size,
        "cores": os.cpu_count(),
        "num_trajectories": options.num_trajectories,
        "startup": gather_startup(clock, first_iteration, comm),
        "memory": gather_memory(comm),
        "messages": count_messages(recorded),
        "communication_seconds": replay(recorded, comm) / NUM_RECORDED,
    }
    if comm.size == 1:
        result["work"] = measure_all_work(environment, options.num_trajectories, comm)
    if comm.rank == 0:
        print(MARK + json.dumps(result), flush=True)


PENDULUM = (
    *("--set", "variant=basic", "num_trajectories=16", "branch_times=uniform", "exploration_std=1"),
    *("--set", "c2=0", "c1_over_c2=0", "delta_max=0.2", "cg_damping=0.3", "cg_tolerance=0.001"),
)


def resolve_run(environment: str, num_trajectories: int):
    """Return the run of the basic variant with its shipped settings and at least `num_trajectories`."""
    from tdpo_baselines.harness.resolve import resolve
    from tdpo_baselines.run import parse

    arguments = ["--env", environment, *(PENDULUM if environment.startswith("pendulum") else ())]
    run = resolve(parse(arguments))
    if num_trajectories <= run.config.options["num_trajectories"]:
        return run
    return resolve(parse([*arguments, "--num_trajectories", str(num_trajectories)]))


class Clock:
    """The seconds of each stage of the start on this rank."""

    def __init__(self, began: float, first: str):
        self._last, self.stages = began, {}
        self.end(first)

    def end(self, stage: str) -> None:
        """Note that a stage ends now."""
        now = time.time()
        self.stages[stage], self._last = now - self._last, now


class Message(NamedTuple):
    """A collective of all ranks."""

    kind: str
    num_bytes: int  # of all ranks' parts together, or of a broadcast
    send: Any  # sends it again


def record_messages(comm) -> list[Message]:
    """Return a list to which every collective is appended from now on."""
    messages: list[Message] = []
    gather, sum_up, broadcast = comm.gather, comm.sum, comm.broadcast

    def recording_gather(mine, num_items):
        everyone = gather(mine, num_items)
        messages.append(Message("gather", everyone.nbytes, partial(gather, mine.copy(), num_items)))
        return everyone

    def recording_sum(mine, num_items):
        total = sum_up(mine, num_items)
        messages.append(Message("sum", num_items * total.nbytes, partial(sum_up, mine.copy(), num_items)))
        return total

    def recording_broadcast(value):
        received = broadcast(value)
        messages.append(Message("broadcast", len(pickle.dumps(received)), partial(broadcast, value)))
        return received

    comm.gather, comm.sum, comm.broadcast = recording_gather, recording_sum, recording_broadcast
    return messages


def count_messages(messages: list[Message]) -> list[list]:
    """Return [kind, bytes, number per iteration] of equal messages."""
    numbers = Counter((message.kind, message.num_bytes) for message in messages)
    return [[*which, number / NUM_RECORDED] for which, number in sorted(numbers.items())]


def train(learner, config, comm, calls: list[Message]) -> tuple[float, list[Message]]:
    """Train for a few iterations; return the seconds of the first and the messages of the recorded ones."""
    from tdpo_baselines.harness.stop_request import StopRequest
    from tdpo_baselines.harness.training import Training
    from tdpo_baselines.options.budget import Budget
    from tdpo_baselines.storage.logger import Console
    from tdpo_baselines.storage.run_folder import RunFolder

    begins, iterate = [], learner.iterate

    def marked(*arguments):
        begins.append((time.time(), len(calls)))
        return iterate(*arguments)

    learner.iterate = marked
    num_iterations = NUM_WARM_UP + NUM_RECORDED + 1  # the last one writes a checkpoint
    folder = RunFolder(comm.on_root(tempfile.mkdtemp))
    comm.on_root(folder.create)
    comm.on_root(folder.lock)
    budget = Budget(num_timesteps=10**18, num_iterations=num_iterations)
    quiet = Console(is_quiet=True)
    training = Training([lambda: learner], config, folder, comm, budget, quiet, StopRequest())
    training.prepare(is_resumed=False)
    training.run()
    comm.on_root(lambda: shutil.rmtree(folder.path))
    learner.iterate = iterate
    first, last = begins[NUM_WARM_UP][1], begins[-1][1]
    return begins[1][0] - begins[0][0], calls[first:last]


def gather_startup(clock: Clock, first_iteration: float, comm) -> dict[str, float]:
    """Return the median over the ranks of each stage, the total of the slowest rank, and the first iteration."""
    import numpy as np

    mine = [*clock.stages.values(), sum(clock.stages.values())]
    everyone = comm.gather(np.array([mine]), comm.size)
    stages = dict(zip(clock.stages, np.median(everyone, axis=0)))
    return {**stages, "total": everyone[:, -1].max(), "first_iteration": first_iteration}


def gather_memory(comm) -> dict[str, float]:
    """Return proportional set sizes in MB: memory that ranks of a host share is divided among them."""
    import numpy as np

    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    mine = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    everyone = comm.gather(np.array([[mine, "tensorflow" in sys.modules]]), comm.size)
    megabytes, has_tensorflow = everyone[:, 0], everyone[:, 1] > 0
    kinds = {"with_tensorflow": has_tensorflow, "without_tensorflow": ~has_tensorflow}
    medians = {name: float(np.median(megabytes[kind])) if kind.any() else None for name, kind in kinds.items()}
    return {"root": megabytes[0], **medians, "num_with_tensorflow": int(has_tensorflow.sum()), "all": megabytes.sum()}


def replay(messages: list[Message], comm) -> float:
    """Return the seconds of sending all messages, as the mean of many repetitions."""

    def send_all(times: int) -> float:
        comm.broadcast(None)
        began = time.perf_counter()
        for _ in range(times):
            for message in messages:
                message.send()
        return time.perf_counter() - began

    once = send_all(1)
    times = comm.broadcast(max(1, round(REPLAY_SECONDS / once)))
    return send_all(times) / times


def measure_all_work(environment: str, num_trajectories: int, comm) -> dict[str, list[dict]]:
    """Return the work of an iteration with the shipped number of trajectories and with MOST_TRAJECTORIES."""
    return {
        when: [
            measure_work(environment, num_trajectories, timesteps, comm, has_shares=True),
            measure_work(environment, MOST_TRAJECTORIES, timesteps, comm, has_shares=False),
        ]
        for when, timesteps in ENVIRONMENTS[environment].items()
    }


def measure_work(environment: str, num_trajectories: int, timesteps: int, comm, *, has_shares: bool) -> dict[str, Any]:
    """Return processor seconds of an iteration on one rank: work that ranks share, and work that each does itself.

    Schedules are those after `timesteps`; the policy is an early one.
    """
    from tdpo_baselines.options import registry
    from tdpo_baselines.tdpo import Learner, tdpo

    run = resolve_run(environment, num_trajectories)
    options, kernel = run.stages[-1]
    learner = Learner(options, registry.make_roller(kernel, options), comm, run.config.seed)
    names = ("roll_vines", "solve_shared", "hessian_product")
    timers = {name: Timer(tdpo, name) for name in names} | {"cg": Timer(tdpo.cg, "solve")}
    learner.iterate(0, timesteps)
    parts = []  # total, rollouts and shared update of each iteration
    for iteration in range(1, 1 + NUM_RECORDED):
        for timer in timers.values():
            timer.seconds = 0.0
        began = time.process_time()
        learner.iterate(iteration, timesteps)
        total, spent = time.process_time() - began, {name: timer.seconds for name, timer in timers.items()}
        update = spent["solve_shared"] - spent["cg"] + spent["hessian_product"] if spent["solve_shared"] else 0.0
        parts.append((total, spent["roll_vines"], update))
    for timer in timers.values():
        timer.remove()
    total, rolling, updating = min(parts)
    solved = timers["solve_shared"].arguments
    K = options.branches_per_trajectory(kernel.horizon, kernel.action_size)
    return {
        "num_trajectories": num_trajectories,
        "num_groups": 0 if solved is None else len(solved[0].observations),
        "rows_per_trajectory": K * options.held_steps * kernel.action_size,
        "rollouts": rolling,
        "update": updating,
        "serial": total - rolling - updating,
        "spread": max(parts)[0] / total,
        "slowest_share": measure_shares(timers["roll_vines"], num_trajectories) if has_shares else {},
    }


class Timer:
    """The processor seconds and the last arguments of a function, which it replaces in its module."""

    def __init__(self, module, name: str):
        self._module, self._name, self.function = module, name, getattr(module, name)
        self.seconds, self.arguments = 0.0, None
        setattr(module, name, self)

    def __call__(self, *arguments, **keywords):
        self.arguments = arguments
        began = time.process_time()
        result = self.function(*arguments, **keywords)
        self.seconds += time.process_time() - began
        return result

    def remove(self) -> None:
        """Put the function back."""
        setattr(self._module, self._name, self.function)


def processor_seconds(function) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def measure_shares(rollouts: Timer, num_trajectories: int) -> dict[int, float]:
    """Return processor seconds of the rank with the longest rollouts, by number of ranks."""
    from tdpo_baselines.common.parallel.comm import Comm

    *others, plan = rollouts.arguments  # in balanced order
    slowest = {}
    for size in [*(2**k for k in range(20) if 2**k < num_trajectories), num_trajectories]:
        slowest[size] = 0.0
        for rank in range(size):
            comm = Comm()
            comm.rank, comm.size = rank, size
            share = plan.select(comm.share(num_trajectories))
            fastest = min(processor_seconds(partial(rollouts.function, *others, share)) for _ in range(NUM_TRIES))
            slowest[size] = max(slowest[size], fastest)
    return slowest


# The program.


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16, 36, 72])
    parser.add_argument("--hosts", type=int, default=1, help="over this many network namespaces, as root")
    parser.add_argument("--environments", nargs="+", default=list(ENVIRONMENTS), choices=ENVIRONMENTS)
    parser.add_argument("--out", type=Path, default=Path("scaling.json"))
    parser.add_argument("--report", type=Path, help="write the tables and the picture of this file, measure nothing")
    parser.add_argument("--on-rank", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.on_rank:
        environment, num_trajectories, launched = arguments.on_rank
        measure(environment, int(num_trajectories), float(launched))
    elif arguments.report:
        import scaling_model

        scaling_model.report(arguments.report)
    else:
        launch_all(arguments)


def launch_all(arguments: argparse.Namespace) -> None:
    """Measure on this machine, or over network namespaces."""
    if arguments.hosts == 1:
        launch_each(arguments, lambda num_ranks, *command: [mpirun(), "-np", str(num_ranks), *command])
        return
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import hosts

    missing = hosts.why_not()
    if missing:
        sys.exit(f"--hosts {arguments.hosts} cannot run here: {missing}")
    with tempfile.TemporaryDirectory() as folder:
        several = hosts.Hosts(Path(folder) / "hosts", arguments.hosts)
        try:
            several.start()
            launch_each(arguments, partial(several.mpirun, mpirun()))
        finally:
            several.stop()


def launch_each(arguments: argparse.Namespace, make_command) -> None:
    """Measure every environment on every number of ranks."""
    for environment in arguments.environments:
        for num_ranks in arguments.ranks:
            result = launch(make_command, environment, num_ranks)
            add_result(arguments.out, result)
            print(summary(result), flush=True)


def mpirun() -> str:
    """Return the virtual environment's mpirun, or the site's."""
    beside_python = Path(sys.executable).parent / "mpirun"
    return str(beside_python) if beside_python.exists() else "mpirun"


def launch(make_command, environment: str, num_ranks: int) -> dict:
    """Measure one number of ranks; return the record that rank 0 prints."""
    on_rank = ("--on-rank", environment, str(num_ranks), str(time.time()))
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]; import scaling; scaling.main()"
    command = make_command(num_ranks, sys.executable, "-c", code, *on_rank)
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    oversubscribed = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # Open MPI 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
    }
    process = subprocess.run(
        command, env={**os.environ, **allowed, **oversubscribed}, stdout=subprocess.PIPE, text=True, check=True
    )
    line = next(line for line in process.stdout.splitlines() if line.startswith(MARK))
    return json.loads(line.removeprefix(MARK))


def add_result(path: Path, result: dict) -> None:
    """Write a record to a file, in place of the one of the same environment, hosts and ranks."""

    def key(r):
        return r["environment"], r["hosts"], r["ranks"]

    results = json.loads(path.read_text()) if path.exists() else []
    results = [other for other in results if key(other) != key(result)] + [result]
    path.write_text("[\n" + ",\n".join(json.dumps(round_numbers(r)) for r in sorted(results, key=key)) + "\n]\n")


def round_numbers(value):
    """Round all numbers to five digits."""
    if isinstance(value, dict):
        return {name: round_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [round_numbers(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def summary(result: dict) -> str:
    """Return a record as a line of text."""
    startup, memory = result["startup"], result["memory"]
    return (
        f"{result['environment']}, {result['ranks']} rank(s) on {result['hosts']} host(s): "
        f"start {startup['total']:.1f} s, memory {memory['all']:.0f} MB in all, "
        f"{sum(number for *_, number in result['messages']):.1f} messages an iteration, "
        f"communication {1e3 * result['communication_seconds']:.2f} ms"
    )


if __name__ == "__main__":
    main()
