"""TD3 of Stable-Baselines3 on HalfCheetah-v5, for comparison in docs/results/baselines.md.

    pip install stable-baselines3
    python run_scripts/peers_td3.py --seeds 0 1 2 --out runs/baselines/peers-td3

Network, batch size, learning rates, noise, random steps and update ratio are those of `td3 on HalfCheetah-v5` in
run_scripts/baselines.py. It runs on one thread; a seed whose file exists is skipped.
"""

import argparse
import json
import time
from pathlib import Path

NUM_TIMESTEPS, NUM_EPISODES = 300_000, 50


def train(seed: int) -> dict:
    """Train one seed; return the mean return without noise after the last step, and seconds of processor time."""
    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3 import TD3
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(1)
    environment = gymnasium.make("HalfCheetah-v5")
    num_actions = environment.action_space.shape[0]
    model = TD3(
        "MlpPolicy",
        environment,
        learning_rate=1e-3,
        batch_size=128,
        learning_starts=10_000,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(num_actions), np.full(num_actions, 0.1)),
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    began = time.process_time()
    model.learn(NUM_TIMESTEPS, log_interval=10)
    seconds = time.process_time() - began
    returns, _ = evaluate_policy(model, Monitor(gymnasium.make("HalfCheetah-v5")), n_eval_episodes=NUM_EPISODES)
    return {"seed": seed, "return": float(returns), "processor_seconds": seconds}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("runs/baselines/peers-td3"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        kept = arguments.out / f"{seed}.json"
        if not kept.exists():
            kept.write_text(json.dumps(train(seed)) + "\n")
        print(kept.read_text().strip(), flush=True)


if __name__ == "__main__":
    main()
