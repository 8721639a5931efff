"""TRPO, PPO1, TD3 and DDPG beside Stable-Baselines3, sb3-contrib and sbx: steps per second of processor time.

    make bench-peers                       # installs the peers into .venv-peers
    python benchmarks/baselines_speed.py

Each library runs in a process of its own on one core, with the same networks, batch sizes and updates per step; they
take turns. sbx is SB3 in JAX. The pendulum is Gymnasium's Pendulum-v1 for the peers and the compiled pendulum-20hz,
which has the same physics, for us.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from table import add_row

PEERS_PYTHON = Path(__file__).parent.parent / ".venv-peers" / "bin" / "python"
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
ONE_THREAD |= {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}
NUM_ROUNDS = 3
NUM_WARM_UP = 8  # iterations, until the replay holds a minibatch of 256 and updates are compiled
CHEETAH, PENDULUM = ("HalfCheetah-v5", "HalfCheetah-v5"), ("Pendulum-v1", "pendulum-20hz")
SMALL, LARGE, SQUARE = ([64, 64], 128), ([400, 300], 256), ([256, 256], 256)
CASES = {  # algorithm, (the peers' environment, ours), layers and batch size, measured steps of the peers and of ours
    "PPO1, HalfCheetah-v5, 64-64": ("ppo1", CHEETAH, ([64, 64], 64), 4096, 16384),
    "PPO1, pendulum, 64-64": ("ppo1", PENDULUM, ([64, 64], 64), 4096, 65536),
    "TRPO, HalfCheetah-v5, 64-64": ("trpo", CHEETAH, ([64, 64], 128), 4096, 16384),
    "TRPO, pendulum, 64-64": ("trpo", PENDULUM, ([64, 64], 128), 8192, 65536),
    "TD3, pendulum, 64-64, batch 128": ("td3", PENDULUM, SMALL, 1000, 4000),
    "TD3, HalfCheetah-v5, 400-300, batch 256": ("td3", CHEETAH, LARGE, 300, 500),
    "TD3, HalfCheetah-v5, 256-256, batch 256": ("td3", CHEETAH, SQUARE, 500, 1000),
    "DDPG, pendulum, 64-64, batch 128": ("ddpg", PENDULUM, SMALL, 1000, 4000),
    "DDPG, HalfCheetah-v5, 400-300, batch 256": ("ddpg", CHEETAH, LARGE, 300, 500),
    "DDPG, HalfCheetah-v5, 256-256, batch 256": ("ddpg", CHEETAH, SQUARE, 500, 1000),
}
PEERS = {"SB3": 2.5, "sbx": 2.0}  # and the goal with large networks


def measure_sb3(algorithm, environments, network, num_steps, _) -> float:
    """Return the steps per second of Stable-Baselines3 and sb3-contrib."""
    import torch

    torch.set_num_threads(1)
    from sb3_contrib import TRPO
    from stable_baselines3 import DDPG, PPO, TD3

    make = {"ppo1": PPO, "trpo": TRPO, "td3": TD3, "ddpg": DDPG}[algorithm]
    return measure_learn(make, algorithm, environments[0], network, num_steps, {"device": "cpu"})


def measure_sbx(algorithm, environments, network, num_steps, _) -> float:
    """Return the steps per second of sbx."""
    from sbx import DDPG, PPO, TD3

    make = {"ppo1": PPO, "td3": TD3, "ddpg": DDPG}[algorithm]
    return measure_learn(make, algorithm, environments[0], network, num_steps, {})


def measure_learn(make, algorithm, environment, network, num_steps, options) -> float:
    """Return the steps per second of a class with SB3's interface."""
    layers, batch_size = network
    options |= {"batch_size": batch_size, "policy_kwargs": {"net_arch": layers}, "seed": 0}
    is_on_policy = algorithm in ("ppo1", "trpo")
    model = make("MlpPolicy", environment, **options, **({} if is_on_policy else {"learning_starts": 256}))
    model.learn(2048 if is_on_policy else 400)
    began = time.process_time()
    model.learn(num_steps, reset_num_timesteps=False)
    return num_steps / (time.process_time() - began)


def measure_ours(algorithm, environments, network, _, num_steps) -> float:
    """Return our steps per second."""
    from tdpo_baselines.common.parallel.comm import Comm
    from tdpo_baselines.common.parallel.tensorflow_setup import prepare_environment
    from tdpo_baselines.options import registry

    prepare_environment()
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
    """Return the steps per second of "SB3", "sbx" or "ours", measured in a process of its own on one core."""
    python = sys.executable if who == "ours" else PEERS_PYTHON
    command = [python, __file__, who, case]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def compare(case: str) -> None:
    """Print and keep a line for each peer."""
    peers = [peer for peer in PEERS if (case[:4], peer) != ("TRPO", "sbx")]
    rounds = np.array([[measure(who, case) for who in (*peers, "ours")] for _ in range(NUM_ROUNDS)])
    *others, ours = np.median(rounds, axis=0)
    for column, (peer, other) in enumerate(zip(peers, others)):
        ratios = ", ".join(f"{ratio:.3g}" for ratio in rounds[:, -1] / rounds[:, column])
        print(f"{case:44}{peer:6}{other:10.0f}{ours:10.0f}  {ratios}", flush=True)
        goal = f"at least {5 if '64-64' in case else PEERS[peer]:g}"
        bound = "matrix products of the minibatches; the environment"
        add_row(f"{case}, beside {peer}", ours, "steps/s", other=other, goal=goal, bound=bound)


def main() -> None:
    """Print a line for each case whose name contains all the words of the command line."""
    roles = {"SB3": measure_sb3, "sbx": measure_sbx, "ours": measure_ours}
    if len(sys.argv) == 3 and sys.argv[1] in roles:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(roles[sys.argv[1]](*CASES[sys.argv[2]])))
        return
    if not PEERS_PYTHON.exists():
        print("baselines_speed: skipped; run `make bench-peers` to install the peers")
        return
    print(f"{'steps per second of processor time':44}{'peer':6}{'peer':>10}{'ours':>10}  ratio, each round")
    for case in CASES:
        if all(word in case for word in sys.argv[1:]):
            compare(case)


if __name__ == "__main__":
    main()
