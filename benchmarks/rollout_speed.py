"""Closed-loop steps per second: the compiled pendulum against a Gymnasium Pendulum-v1 loop, one process, one run.

Both act with the same 64-64 tanh network, ours compiled into the rollout, theirs in NumPy.
"""

import time

import gymnasium
import numpy as np

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.harness import registry

SECONDS = 3.0
ROUNDS = 3


def numpy_policy(theta, sizes):
    layers, start = [], 0
    for n, m in zip(sizes, sizes[1:]):
        layers.append((theta[start : start + n * m].reshape(n, m), theta[start + n * m : start + (n + 1) * m]))
        start += (n + 1) * m

    def act(observation):
        x = observation
        for weights, biases in layers[:-1]:
            x = np.tanh(x @ weights + biases)
        weights, biases = layers[-1]
        return x @ weights + biases

    return act


def gymnasium_speed(theta, sizes):
    env, act = gymnasium.make("Pendulum-v1"), numpy_policy(theta, sizes)
    num_steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        observation, _ = env.reset(seed=num_steps)
        for _ in range(200):
            observation = env.step(act(observation))[0]
        num_steps += 200
    return num_steps / (time.perf_counter() - began)


def compiled_speed(roller, theta):
    states = roller.start_states(np.random.default_rng(0).random((50, 2)))
    num_steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        num_steps += roller.rollouts(theta, states).lengths.sum()
    return num_steps / (time.perf_counter() - began)


def main():
    rollers = {}
    for name in ("pendulum-20hz", "pendulum-nlr"):
        kernel = registry.make_environment(name, registry.resolve_options(name, {}))
        rollers[name] = KernelRoller(kernel, (64, 64), gamma=0.99)
    theta = {n: mlp.initial_parameters(r.layer_sizes, np.random.default_rng(0), 0.1) for n, r in rollers.items()}
    print(f"{'round':>5}  {'Gymnasium + NumPy':>18}" + "".join(f"  {name:>22}" for name in rollers))
    for number in range(ROUNDS):
        slow = gymnasium_speed(theta["pendulum-20hz"], rollers["pendulum-20hz"].layer_sizes)
        line = f"{number + 1:5d}  {slow:18,.0f}"
        for name, roller in rollers.items():
            fast = compiled_speed(roller, theta[name])
            line += f"  {fast:12,.0f} ({fast / slow:5.0f} x)"
        print(line, flush=True)


if __name__ == "__main__":
    main()
