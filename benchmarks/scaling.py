"""Start-up, memory and communication of TDPO on many ranks, and what they predict for more: docs/scaling.md.

    python benchmarks/scaling.py --out docs/scaling.json                    # 1 to 72 ranks of this machine
    python benchmarks/scaling.py --out docs/scaling.json --ranks 3 6 --hosts 3   # over hosts (network namespaces; root)
    python benchmarks/scaling.py --report docs/scaling.json                 # tables and picture beside it

A measurement replaces that of the same environment, hosts and ranks in the file. Ranks may exceed cores: then waiting
for a turn on a core would swamp what is to be measured. So work is measured in processor time, on one rank, and
communication by itself: the messages of a few real iterations are written down and sent again, many times, with no
work between them. Other programs slow processor time too, through caches: of repeated work the fastest counts.
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
ENVIRONMENTS = {  # and the timesteps at which to measure their work: the leg's branches grow
    "pendulum-nlr": {"throughout": 0},
    "leg": {"first updates": 0, "half-way": 25_000_000},  # of a run as long as the default
}
NUM_WARM_UP, NUM_RECORDED = 1, 4  # iterations
REPLAY_SECONDS = 3.0
NUM_TRIES = 3  # of a share of the rollouts
MOST_TRAJECTORIES = 1152  # that are predicted for: measured, so that nothing is extrapolated beyond them
MARK = "scaling: "  # before the result on standard output


# On the ranks.


def measure(environment: str, num_trajectories: int, launched: float) -> None:
    """One number of ranks: a short training, what it took to start, and its messages once more."""
    clock = Clock(launched, "launch")
    from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment

    prepare_environment()
    from tdpo_baselines import run
    from tdpo_baselines.harness import registry

    config, _ = run.resolve(run.parse(["--env", environment]))
    num_trajectories = max(num_trajectories, config.options["num_trajectories"])
    options, kernel = make_stage(run, config, num_trajectories)
    from tdpo_baselines.common.parallel.comm import connect
    from tdpo_baselines.tdpo import tdpo

    clock.ends("imports")
    comm = connect()
    clock.ends("mpi")
    roller = comm.warm_up(lambda: registry.make_roller(kernel, options))
    clock.ends("compile")
    learner = tdpo.Learner(options, roller, comm, config.seed)
    clock.ends("tensorflow")
    calls = record_messages(comm)
    first_iteration, recorded = train(learner, config, comm, calls)
    result = {
        "environment": environment,
        "hosts": comm.num_hosts,
        "ranks": comm.size,
        "cores": os.cpu_count(),
        "num_trajectories": num_trajectories,
        "startup": gathered_startup(clock, first_iteration, comm),
        "memory": gathered_memory(comm),
        "messages": counted(recorded),
        "communication_seconds": replay(recorded, comm) / NUM_RECORDED,
    }
    if comm.size == 1:
        numbers = (num_trajectories, MOST_TRAJECTORIES)
        result["work"] = {
            when: [measure_work(run, config, comm, number, timesteps) for number in numbers]
            for when, timesteps in ENVIRONMENTS[environment].items()
        }
    if comm.rank == 0:
        print(MARK + json.dumps(result), flush=True)


def make_stage(run, config, num_trajectories: int):
    changed = type(config)(**{**vars(config), "options": {**config.options, "num_trajectories": num_trajectories}})
    return run.make_stages(changed)[-1]


class Clock:
    """Seconds of each stage of the start on this rank."""

    def __init__(self, began: float, first: str):
        self._last, self.stages = began, {}
        self.ends(first)

    def ends(self, stage: str) -> None:
        now = time.time()
        self.stages[stage], self._last = now - self._last, now


class Message(NamedTuple):
    kind: str
    num_bytes: int  # of all ranks' parts together, or of what rank 0 tells
    send: Any  # again


def record_messages(comm) -> list[Message]:
    """A list that grows with every collective from now on."""
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


def counted(messages: list[Message]) -> list[list]:
    """[kind, bytes, how many of them in an iteration]"""
    numbers = Counter((message.kind, message.num_bytes) for message in messages)
    return [[*which, number / NUM_RECORDED] for which, number in sorted(numbers.items())]


def train(learner, config, comm, calls: list[Message]) -> tuple[float, list[Message]]:
    """Seconds of the first iteration, which compiles graphs, and the messages of the recorded ones."""
    from tdpo_baselines.harness.budget import Budget
    from tdpo_baselines.harness.logger import Console
    from tdpo_baselines.harness.run_folder import RunFolder
    from tdpo_baselines.harness.stop_request import StopRequest
    from tdpo_baselines.harness.training import Training

    begins, iterate = [], learner.iterate

    def marked(*arguments):
        begins.append((time.time(), len(calls)))
        return iterate(*arguments)

    learner.iterate = marked
    num_iterations = NUM_WARM_UP + NUM_RECORDED + 1  # the last one writes a checkpoint
    folder = comm.on_root(tempfile.mkdtemp)
    comm.on_root(RunFolder(folder).create)
    budget = Budget(10**18, num_iterations, 10**6, 1e9, None)
    quiet = Console(is_quiet=True)
    training = Training([lambda: learner], config, RunFolder(folder), comm, budget, quiet, StopRequest())
    training.prepare(is_resumed=False)
    training.run()
    comm.on_root(lambda: shutil.rmtree(folder))
    learner.iterate = iterate
    first, last = begins[NUM_WARM_UP][1], begins[-1][1]
    return begins[1][0] - begins[0][0], calls[first:last]


def gathered_startup(clock: Clock, first_iteration: float, comm) -> dict[str, float]:
    """Medians over the ranks of each stage, the slowest rank's total, and the first iteration."""
    import numpy as np

    mine = [*clock.stages.values(), sum(clock.stages.values())]
    everyone = comm.gather(np.array([mine]), comm.size)
    stages = dict(zip(clock.stages, np.median(everyone, axis=0)))
    return {**stages, "total": everyone[:, -1].max(), "first_iteration": first_iteration}


def gathered_memory(comm) -> dict[str, float]:
    """Proportional set sizes: what ranks of a host share is divided among them. In MB."""
    import numpy as np

    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    mine = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    everyone = comm.gather(np.array([[mine, "tensorflow" in sys.modules]]), comm.size)
    megabytes, has_tensorflow = everyone[:, 0], everyone[:, 1] > 0
    kinds = {"with_tensorflow": has_tensorflow, "without_tensorflow": ~has_tensorflow}
    medians = {name: float(np.median(megabytes[kind])) if kind.any() else None for name, kind in kinds.items()}
    return {"root": megabytes[0], **medians, "num_with_tensorflow": int(has_tensorflow.sum()), "all": megabytes.sum()}


def replay(messages: list[Message], comm) -> float:
    """Seconds to send them all once more, from many times."""

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


def measure_work(run, config, comm, num_trajectories: int, timesteps: int) -> dict[str, Any]:
    """Processor seconds of an iteration on one rank: what the ranks share, and what each does for itself.

    Schedules are those after so many timesteps; the policy is an early one.
    """
    from tdpo_baselines.harness import registry
    from tdpo_baselines.tdpo import tdpo

    is_shipped = num_trajectories == config.options["num_trajectories"]
    options, kernel = make_stage(run, config, num_trajectories)
    learner = tdpo.Learner(options, registry.make_roller(kernel, options), comm, config.seed)
    roll_vines = tdpo.roll_vines
    rollouts, rolled = time_calls(tdpo, "roll_vines")
    blocks = getattr(learner, "_blocks", None)
    names = ("gradient", "wasserstein_product", "sensitivity_product") if blocks is not None else ()
    updates = [time_calls(blocks.derivatives, name)[0] for name in names]
    learner.iterate(0, timesteps)
    parts = []  # total, rollouts and update of each iteration
    for iteration in range(1, 1 + NUM_RECORDED):
        for seconds in (rollouts, *updates):
            seconds.clear()
        began = time.process_time()
        learner.iterate(iteration, timesteps)
        parts.append((time.process_time() - began, sum(rollouts), sum(map(sum, updates))))
    tdpo.roll_vines = roll_vines
    total, rolling, updating = min(parts)
    return {
        "num_trajectories": num_trajectories,
        "num_blocks": blocks.num_blocks if blocks is not None else 0,
        "rollouts": rolling,
        "update": updating,
        "serial": total - rolling - updating,
        "spread": max(parts)[0] / total,
        "slowest_share": slowest_shares(roll_vines, rolled[-1], num_trajectories) if is_shipped else {},
    }


def time_calls(owner, name: str) -> tuple[list[float], list[tuple]]:
    """Replace a function by one that notes the processor seconds and the arguments of each call."""
    seconds: list[float] = []
    calls: list[tuple] = []
    function = getattr(owner, name)

    def timed(*arguments):
        calls[:] = [arguments]
        began = time.process_time()
        result = function(*arguments)
        seconds.append(time.process_time() - began)
        return result

    setattr(owner, name, timed)
    return seconds, calls


def processor_seconds(function) -> float:
    began = time.process_time()
    function()
    return time.process_time() - began


def slowest_shares(roll_vines, arguments: tuple, num_trajectories: int) -> dict[int, float]:
    """Processor seconds of the rank with most to roll out, for numbers of ranks up to the trajectories'."""
    from tdpo_baselines.common.parallel.comm import Comm

    *others, plan = arguments
    slowest = {}
    for size in [*(2**k for k in range(20) if 2**k < num_trajectories), num_trajectories]:
        slowest[size] = 0.0
        for rank in range(size):
            comm = Comm()
            comm.rank, comm.size = rank, size
            share = plan.share(comm.share(num_trajectories))
            fastest = min(processor_seconds(partial(roll_vines, *others, share)) for _ in range(NUM_TRIES))
            slowest[size] = max(slowest[size], fastest)
    return slowest


# The program.


def main() -> None:
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
    if arguments.hosts == 1:
        launch_each(arguments, lambda num_ranks, *command: [mpirun(), "-np", str(num_ranks), *command])
        return
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import hosts

    missing = hosts.why_not()
    if missing:
        sys.exit(f"no hosts to measure on: {missing}")
    with tempfile.TemporaryDirectory() as folder:
        several = hosts.Hosts(Path(folder) / "hosts", arguments.hosts)
        try:
            several.start()
            launch_each(arguments, partial(several.mpirun, mpirun()))
        finally:
            several.stop()


def launch_each(arguments: argparse.Namespace, make_command) -> None:
    for environment in arguments.environments:
        for num_ranks in arguments.ranks:
            result = launch(make_command, environment, num_ranks)
            add_result(arguments.out, result)
            print(summary(result), flush=True)


def mpirun() -> str:
    beside_python = Path(sys.executable).parent / "mpirun"
    return str(beside_python) if beside_python.exists() else "mpirun"


def launch(make_command, environment: str, num_ranks: int) -> dict:
    on_rank = ("--on-rank", environment, str(num_ranks), str(time.time()))
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]; import scaling; scaling.main()"
    command = make_command(num_ranks, sys.executable, "-c", code, *on_rank)
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    oversubscribed = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    process = subprocess.run(
        command, env={**os.environ, **allowed, **oversubscribed}, stdout=subprocess.PIPE, text=True, check=True
    )
    line = next(line for line in process.stdout.splitlines() if line.startswith(MARK))
    return json.loads(line.removeprefix(MARK))


def add_result(path: Path, result: dict) -> None:
    def key(r):
        return r["environment"], r["hosts"], r["ranks"]

    results = json.loads(path.read_text()) if path.exists() else []
    results = [other for other in results if key(other) != key(result)] + [result]
    path.write_text("[\n" + ",\n".join(json.dumps(rounded(r)) for r in sorted(results, key=key)) + "\n]\n")


def rounded(value):
    """Numbers of five digits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def summary(result: dict) -> str:
    startup, memory = result["startup"], result["memory"]
    return (
        f"{result['environment']}, {result['ranks']} rank(s) on {result['hosts']} host(s): "
        f"start {startup['total']:.1f} s, memory {memory['all']:.0f} MB in all, "
        f"{sum(number for *_, number in result['messages']):.1f} messages an iteration, "
        f"communication {1e3 * result['communication_seconds']:.2f} ms"
    )


if __name__ == "__main__":
    main()
