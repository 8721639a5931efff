"""Share of a TDPO iteration spent outside rollouts: `mpirun -np 2 python benchmarks/update_share.py`.

48 trajectories x 4 branches on pendulum-nlr with the shipped settings, and with the paper's
sensitivity term. Everything counts: drawing, gathering, gradient, conjugate gradient, log, waiting.
"""

import tempfile
import time

from tdpo_baselines import registry
from tdpo_baselines.budget import Budget
from tdpo_baselines.common import comm as communication
from tdpo_baselines.common.logger import Console
from tdpo_baselines.common.rollout import KernelRoller
from tdpo_baselines.common.tensorflow_setup import load_tensorflow, prepare_environment
from tdpo_baselines.run_folder import RunConfig, RunFolder

NUM_WARM_UP, NUM_ITERATIONS = 20, 200
ENV = "pendulum-nlr"


def measure(comm, **changes):
    from tdpo_baselines.algos import tdpo
    from tdpo_baselines.training import Training

    values = {**registry.presets("tdpo", ENV)["tuned"], "num_trajectories": 48, "num_branches": 4, **changes}
    options = tdpo.Config.from_values(values)
    env_options = registry.resolve_options(ENV, {})
    roller = comm.root_first(
        lambda: KernelRoller(registry.make_kernel(ENV, env_options), options.hidden_sizes, options.gamma)
    )
    rollout_seconds = time_calls(roller, "rollouts")
    learner = tdpo.Learner(options, roller, comm, seed=0)
    for iteration in range(NUM_WARM_UP):
        learner.iterate(iteration, 0)
    rollout_seconds.clear()
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(comm.broadcast(folder))
        budget = Budget(10**18, NUM_ITERATIONS, 100, None)
        training = Training(learner, RunConfig("tdpo", ENV, 0, {}, {}), run, comm, budget, Console(is_quiet=True))
        training.prepare(is_resumed=False)
        began = time.perf_counter()
        training.run()
        total = time.perf_counter() - began
    return sum(rollout_seconds), total


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
    prepare_environment()
    comm = communication.connect()
    load_tensorflow()
    for title, changes in {"shipped settings": {}, "with the sensitivity term": {"c1_over_c2": 1.0}}.items():
        rollouts, total = measure(comm, **changes)
        if comm.rank == 0:
            print(
                f"{title}, {comm.size} rank(s): iteration {1e3 * total / NUM_ITERATIONS:.1f} ms, rollouts "
                f"{1e3 * rollouts / NUM_ITERATIONS:.1f} ms, outside rollouts {1 - rollouts / total:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
