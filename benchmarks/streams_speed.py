"""Gradient steps per second of TD3 with several streams, in the two ways that minibatches are descended.

Rank 0 makes all steps of a round in one compiled call, as for small minibatches; or all ranks share every step and sum
their gradients, as for large ones.

    python benchmarks/streams_speed.py; mpirun -np 2 python benchmarks/streams_speed.py
"""

import time

from tdpo_baselines.common.learners import replay_learner
from tdpo_baselines.common.parallel.comm import connect
from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment
from tdpo_baselines.options import registry
from tdpo_baselines.td3 import Config, Learner

ENVIRONMENT = "pendulum-20hz"
CASES = (((64, 64), 128), ((256, 256), 256), ((256, 256), 1024), ((256, 256), 4096))  # hidden layers, rows
NUM_STREAMS = 2
NUM_ROUNDS = 3


def steps_per_second(comm, hidden_sizes, batch_size, *, is_solo) -> float:
    """Return the speed of the fastest round."""
    replay_learner.MAX_SOLO_ROWS = batch_size if is_solo else 0
    num_updates = 50 if batch_size < 1000 else 10
    config = Config(
        num_trajectories=NUM_STREAMS, hidden_sizes=hidden_sizes, batch_size=batch_size, buffer_size=10**5,
        random_timesteps=0, steps_per_round=batch_size, updates_per_round=num_updates, rounds_per_iteration=1,
    )  # fmt: skip
    environment = registry.make_environment(ENVIRONMENT, registry.resolve_options(ENVIRONMENT, {}))
    roller = comm.warm_up(lambda: registry.make_roller(environment, config))
    learner = Learner(config, roller, comm, seed=0)
    learner.iterate(0, 0)  # compiles
    seconds = []
    for number in range(1, 1 + NUM_ROUNDS):
        began = time.perf_counter()
        learner.update(number)
        seconds.append(time.perf_counter() - began)
    return num_updates / min(seconds)


def main() -> None:
    """Print a line for each case."""
    prepare_environment()
    comm = connect()
    for hidden_sizes, batch_size in CASES:
        solo, shared = (steps_per_second(comm, hidden_sizes, batch_size, is_solo=is_solo) for is_solo in (True, False))
        if comm.rank == 0:
            case = f"{comm.size} rank(s), {'-'.join(map(str, hidden_sizes))}, {batch_size} rows"
            print(f"{case}: {solo:.0f} steps/s by rank 0, {shared:.0f} shared ({solo / shared:.3g} x)", flush=True)


if __name__ == "__main__":
    main()
