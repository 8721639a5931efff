"""Closed-loop steps per second: the compiled pendulum against a Gymnasium Pendulum-v1 loop, in one process.

Both act with the same 64-64 tanh network: ours is compiled into the rollout, theirs is in NumPy.
"""

import time

import gymnasium
import numpy as np
from table import add_row

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.options import registry

SECONDS = 3.0
ROUNDS = 3
ENVIRONMENTS = ("pendulum-20hz", "pendulum-nlr")


def make_numpy_policy(theta, sizes):
    """Return the network as a function of an observation."""
    *hidden, (last_weights, last_biases) = mlp.split_layers(theta, sizes)

    def act(observation):
        x = observation
        for weights, biases in hidden:
            x = np.tanh(x @ weights + biases)
        return x @ last_weights + last_biases

    return act


def measure_gymnasium(theta, sizes):
    """Return steps per second of a Gymnasium loop."""
    env, act = gymnasium.make("Pendulum-v1"), make_numpy_policy(theta, sizes)
    num_steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        observation, _ = env.reset(seed=num_steps)
        for _ in range(200):
            observation = env.step(act(observation))[0]
        num_steps += 200
    return num_steps / (time.perf_counter() - began)


def measure_compiled(roller, theta):
    """Return steps per second of compiled rollouts."""
    states = roller.start_states(np.random.default_rng(0).random((50, 2)))
    num_steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        num_steps += roller.rollouts(theta, states).lengths.sum()
    return num_steps / (time.perf_counter() - began)


def main():
    """Print a line for each round."""
    rollers = {}
    for name in ENVIRONMENTS:
        kernel = registry.make_environment(name, registry.resolve_options(name, {}))
        rollers[name] = KernelRoller(kernel, (64, 64), gamma=0.99)
    theta = {n: mlp.init_parameters(r.layer_sizes, np.random.default_rng(0), 0.1) for n, r in rollers.items()}
    print(f"{'round':>5}  {'Gymnasium + NumPy':>18}" + "".join(f"  {name:>22}" for name in rollers))
    for number in range(ROUNDS):
        slow = measure_gymnasium(theta["pendulum-20hz"], rollers["pendulum-20hz"].layer_sizes)
        line = f"{number + 1:5d}  {slow:18,.0f}"
        for name, roller in rollers.items():
            fast = measure_compiled(roller, theta[name])
            line += f"  {fast:12,.0f} ({fast / slow:5.0f} x)"
            bound = "the network's arithmetic"
            add_row(f"steps per second, {name}, 64-64", fast, "steps/s", other=slow, goal="at least 40", bound=bound)
        print(line, flush=True)


if __name__ == "__main__":
    main()
