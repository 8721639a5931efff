"""TD3 with several streams: gradient steps per second, all of a round in one compiled call by rank 0, as with small
minibatches, against a call and a sum over the ranks per step, as with large ones.

    python benchmarks/streams_speed.py; mpirun -np 2 python benchmarks/streams_speed.py
"""

import time

from tdpo_baselines.common.learners import replay_learner as off_policy
from tdpo_baselines.common.parallel.comm import connect
from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment
from tdpo_baselines.harness import registry

ENVIRONMENT = "pendulum-20hz"
CASES = (((64, 64), 128), ((256, 256), 256), ((256, 256), 1024), ((256, 256), 4096))  # hidden layers, rows
NUM_STREAMS = 2
NUM_ROUNDS = 3


def steps_per_second(comm, hidden_sizes, batch_size, *, is_at_once) -> float:
    """The fastest of some rounds."""
    from tdpo_baselines.td3 import td3

    off_policy.MAX_SOLO_ROWS = batch_size if is_at_once else 0
    num_updates = 50 if batch_size < 1000 else 10
    config = td3.Config(
        num_trajectories=NUM_STREAMS, hidden_sizes=hidden_sizes, batch_size=batch_size, buffer_size=10**5,
        random_timesteps=0, steps_per_round=batch_size, updates_per_round=num_updates, rounds_per_iteration=1,
    )  # fmt: skip
    environment = registry.make_environment(ENVIRONMENT, registry.resolve_options(ENVIRONMENT, {}))
    roller = comm.warm_up(lambda: registry.make_roller(environment, config))
    learner = td3.Learner(config, roller, comm, seed=0)
    learner.iterate(0, 0)  # compiles
    seconds = []
    for number in range(1, 1 + NUM_ROUNDS):
        began = time.perf_counter()
        learner.update(number)
        seconds.append(time.perf_counter() - began)
    return num_updates / min(seconds)


def main() -> None:
    prepare_environment()
    comm = connect()
    for hidden_sizes, batch_size in CASES:
        at_once, step_by_step = (
            steps_per_second(comm, hidden_sizes, batch_size, is_at_once=is_at_once) for is_at_once in (True, False)
        )
        if comm.rank == 0:
            case = f"{comm.size} rank(s), {'-'.join(map(str, hidden_sizes))}, {batch_size} rows"
            ratio = f"{at_once:.0f} steps/s at once, {step_by_step:.0f} one by one ({at_once / step_by_step:.3g} x)"
            print(f"{case}: {ratio}", flush=True)


if __name__ == "__main__":
    main()
