"""TRPO, PPO1, TD3 and DDPG against Stable-Baselines3 and sb3-contrib: environment steps per second of processor time.

    pip install stable-baselines3 sb3-contrib
    python benchmarks/baselines_speed.py

Each library runs in a process of its own with one thread, with the same networks, batch sizes and updates per step;
the two take turns. The pendulum is Gymnasium's Pendulum-v1 for the peers and the compiled pendulum-20hz, which has the
same physics, for us.
"""

import importlib.util
import json
import os
import subprocess
import sys
import time

import numpy as np
from table import add_row

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
NUM_ROUNDS = 3
NUM_WARM_UP = 8  # iterations, until the replay holds a minibatch of 256 and updates are compiled
CHEETAH, PENDULUM = ("HalfCheetah-v5", "HalfCheetah-v5"), ("Pendulum-v1", "pendulum-20hz")
SMALL, LARGE = ([64, 64], 128), ([400, 300], 256)
CASES = {  # algorithm, (the peers' environment, ours), layers and batch size, measured steps of the peers and of ours
    "PPO1, HalfCheetah-v5, 64-64": ("ppo1", CHEETAH, ([64, 64], 64), 4096, 16384),
    "PPO1, pendulum, 64-64": ("ppo1", PENDULUM, ([64, 64], 64), 4096, 65536),
    "TRPO, HalfCheetah-v5, 64-64": ("trpo", CHEETAH, ([64, 64], 128), 4096, 16384),
    "TRPO, pendulum, 64-64": ("trpo", PENDULUM, ([64, 64], 128), 8192, 65536),
    "TD3, pendulum, 64-64, batch 128": ("td3", PENDULUM, SMALL, 1000, 4000),
    "TD3, HalfCheetah-v5, 400-300, batch 256": ("td3", CHEETAH, LARGE, 300, 500),
    "DDPG, pendulum, 64-64, batch 128": ("ddpg", PENDULUM, SMALL, 1000, 4000),
    "DDPG, HalfCheetah-v5, 400-300, batch 256": ("ddpg", CHEETAH, LARGE, 300, 500),
}

GOALS = {case: "at least 2.5" if "400-300" in case else "at least 5" for case in CASES}


def measure_peers(algorithm, environments, network, num_steps, _) -> float:
    """Return the steps per second of the other libraries."""
    import torch

    torch.set_num_threads(1)
    from sb3_contrib import TRPO
    from stable_baselines3 import DDPG, PPO, TD3

    layers, batch_size = network
    make = {"ppo1": PPO, "trpo": TRPO, "td3": TD3, "ddpg": DDPG}[algorithm]
    options = {"batch_size": batch_size, "policy_kwargs": {"net_arch": layers}, "device": "cpu", "seed": 0}
    is_on_policy = algorithm in ("ppo1", "trpo")
    model = make("MlpPolicy", environments[0], **options, **({} if is_on_policy else {"learning_starts": 256}))
    model.learn(2048 if is_on_policy else 400)
    began = time.process_time()
    model.learn(num_steps, reset_num_timesteps=False)
    return num_steps / (time.process_time() - began)


def measure_ours(algorithm, environments, network, _, num_steps) -> float:
    """Return our steps per second."""
    from tdpo_baselines.common.parallel.comm import Comm
    from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow, prepare_environment
    from tdpo_baselines.options import registry

    prepare_environment()
    load_tensorflow()
    layers, batch_size = network
    options = {"hidden_sizes": layers, "num_trajectories": 1}
    if algorithm == "ppo1":
        options |= {"steps_per_trajectory": 2048, "minibatch_size": batch_size}
    elif algorithm == "trpo":
        options |= {"steps_per_trajectory": 2048, "value_minibatch_size": batch_size, "cg_iterations": 15}
    else:
        options |= {"batch_size": batch_size, "random_timesteps": 0, "rounds_per_iteration": 1}
    module = registry.algorithm(algorithm)
    config = module.Config.from_values(options)
    through_gymnasium = {"compiled": False} if environments[1] in registry.TWINS else {}  # as theirs
    environment = registry.make_environment(
        environments[1], registry.resolve_options(environments[1], through_gymnasium)
    )
    learner = module.Learner(config, registry.make_roller(environment, config), Comm(), seed=0)
    for iteration in range(NUM_WARM_UP):
        learner.iterate(iteration, 0)
    done, began = 0, time.process_time()
    while done < num_steps:
        iteration += 1
        done += learner.iterate(iteration, 0)["num_timesteps"]
    return done / (time.process_time() - began)


def measure(who: str, case: str) -> float:
    """Return the steps per second of "peers" or "ours", measured in a process of its own."""
    command = [sys.executable, __file__, who, case]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a line for each case."""
    if len(sys.argv) > 1:
        who, case = sys.argv[1:]
        print(json.dumps({"peers": measure_peers, "ours": measure_ours}[who](*CASES[case])))
        return
    if not all(importlib.util.find_spec(name) for name in ("stable_baselines3", "sb3_contrib")):
        print("baselines_speed: skipped; pip install stable-baselines3 sb3-contrib to compare with them")
        return
    print(f"{'steps per second of processor time':44}{'SB3':>10}{'ours':>10}  ratio, each round")
    for case in CASES:
        pairs = [(measure("peers", case), measure("ours", case)) for _ in range(NUM_ROUNDS)]
        peers, ours = np.median(pairs, axis=0)
        ratios = ", ".join(f"{mine / theirs:.3g}" for theirs, mine in pairs)
        print(f"{case:44}{peers:10.0f}{ours:10.0f}  {ratios}", flush=True)
        bound = "environment and matrix products of the minibatches"
        add_row(f"{case}, beside SB3", ours, "steps/s", other=peers, goal=GOALS[case], bound=bound)


if __name__ == "__main__":
    main()
