"""Options that algorithms share, the checks of them, and the exploration noise that they describe."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...options.config import Settings, baselines, ours, paper
from ..networks import mlp
from ..parallel import launcher
from ..parallel.checks import require_memory, require_trajectories
from ..sampling.noise import KINDS, Colour
from ..sampling.replay import row_width
from ..sampling.streams import TIME_LIMITS

time_limit_option = partial(
    ours,
    "auto",
    "what follows an episode that its limit ends; terminal: nothing (openai/baselines); bootstrap: the value of the "
    "last state (SB3); auto: terminal if the task ends at its horizon, else bootstrap",
    choices=TIME_LIMITS,
)


@dataclass(frozen=True)
class OnPolicySettings(Settings):
    """Options of TRPO and PPO1."""

    num_trajectories: int = paper(
        2, "streams of episodes, over all ranks (with the next: 2048 steps, SB3)", low=1, high=10**6
    )
    steps_per_trajectory: int = paper(
        1024, "steps of each stream per update (SB3's PPO: 2048 of one stream)", low=2, high=10**9
    )
    gamma: float = paper(0.99, "discount per step (openai/baselines)", above=0, high=1)
    lam: float = paper(0.95, "lambda of GAE (openai/baselines ppo1, SB3)", low=0, high=1)
    hidden_sizes: tuple[int, ...] = paper(
        (64, 64), "hidden layers of policy and value, tanh (SB3)", low=1, high=4096, longest=8
    )
    initial_std: float = paper(1.0, "initial standard deviation of the action (all)", above=0, high=1e6)

    output_gain: float = baselines(0.01, "scale of the policy's initial output weights (all)", low=0, high=10)
    use_observation_normalisation: bool = baselines(
        True, "networks see observations scaled to mean 0 and deviation 1 (openai/baselines: yes)"
    )

    use_return_normalisation: bool = ours(True, "values are fitted in units of the returns' r.m.s. (as in CleanRL)")
    time_limit: str = time_limit_option()

    @property
    def num_steps(self) -> int:
        """Steps of an update, over all ranks."""
        return self.num_trajectories * self.steps_per_trajectory

    def fill_in_minibatch(self, size: str, count: str, default: int) -> None:
        """Give the option named `size` its default, unless the one named `count` stands in for it."""
        has_size, has_count = (getattr(self, name) is not None for name in (size, count))
        if has_size and has_count:
            raise ValueError(
                f"{size} and {count} exclude each other, got {getattr(self, size)} and {getattr(self, count)}; "
                f"pass --set {size}=none or --set {count}=none"
            )
        if not has_size and not has_count:
            object.__setattr__(self, size, default)


@dataclass(frozen=True)
class OffPolicySettings(Settings):
    """Options of DDPG and TD3."""

    gamma: float = paper(0.99, "discount per step (all)", above=0, high=1)
    hidden_sizes: tuple[int, ...] = paper(
        (256, 256), "hidden layers of actor and critics (CleanRL)", low=1, high=4096, longest=8
    )
    actor_learning_rate: float = paper(1e-3, "Adam's step for the actor (SB3)", above=0, high=1)
    critic_learning_rate: float = paper(1e-3, "Adam's step for the critics (SB3)", above=0, high=1)
    batch_size: int = paper(256, "transitions per update, over all ranks (SB3)", low=1, high=10**9)
    buffer_size: int = paper(10**6, "transitions kept, over all ranks (all)", low=1, high=10**12)
    target_rate: float = paper(0.005, "tau: rate of the Polyak averages (all but openai/baselines)", above=0, high=1)
    random_timesteps: int = paper(10_000, "first steps: uniformly random, no updates (SB3 zoo)", low=0, high=10**12)
    noise: str = paper("gaussian", "colour of the noise on actions (CleanRL, SB3 zoo)", choices=KINDS)
    noise_std: float = paper(
        0.1, "its standard deviation, in units of half the action's range (CleanRL, SB3 zoo)", low=0, high=1e3
    )

    num_trajectories: int = ours(
        1, "streams of episodes over all ranks, each with its part of the replay", low=1, high=10**6
    )
    steps_per_round: int = ours(50, "steps of each stream between updates (Spinning Up)", low=1, high=10**9)
    updates_per_round: int = ours(
        50, "updates after these steps, independent of num_trajectories (Spinning Up)", low=0, high=10**9
    )
    rounds_per_iteration: int = ours(20, "rounds per row of the log", low=1, high=10**9)
    activation: str = ours(
        "relu", "activation of the hidden layers (all but openai/baselines)", choices=("relu", "tanh")
    )
    use_tanh_output: bool = ours(True, "actions through a tanh onto their range (all); else linear")
    noise_bandwidth: float = ours(1.0, "relative bandwidth of ou, pink and lowpass noise (TDPO)", above=0, high=1)
    time_limit: str = time_limit_option()

    def network_style(self, environment) -> mlp.Style:
        """Return the activations and the output scaling of the actor."""
        centre, scale = action_range(environment)
        return mlp.Style(self.activation, self.use_tanh_output, tuple(centre.tolist()), tuple(scale.tolist()))

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        """Return a warning if all steps are random."""
        if self.random_timesteps < num_timesteps:
            return []
        return [
            f"warning: all steps are random: random_timesteps ({self.random_timesteps}) is not less than num_timesteps"
        ]


def action_range(environment) -> tuple[np.ndarray, np.ndarray]:
    """Return the centre and half the width of the action's range, 0 and 1 where it has no limits. [A], [A]"""
    low, high = environment.action_low, environment.action_high
    is_limited = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(is_limited, low, -1.0), np.where(is_limited, high, 1.0)
    return (low + high) / 2, (high - low) / 2


def check_on_policy(config: OnPolicySettings, environment, num_ranks: int, **minibatch: int | None) -> None:
    """Raise ValueError if streams are too few, minibatches too large or too many, or memory does not suffice."""
    require_trajectories(config.num_trajectories, num_ranks)
    for name, number in minibatch.items():
        if number is not None and number > config.num_steps:
            raise ValueError(
                f"{name} must be at most num_trajectories x steps_per_trajectory ({config.num_steps}), got {number}; "
                f"pass --set {name}={config.num_steps}"
            )
    O, A = environment.observation_size, environment.action_size
    require_memory("num_trajectories and steps_per_trajectory", 8 * config.num_steps * (4 * O + 4 * A + 8))


def check_off_policy(config: OffPolicySettings, environment, num_ranks: int) -> None:
    """Raise ValueError if streams cannot share the minibatches, actions have no range, or memory does not suffice."""
    N = config.num_trajectories
    require_trajectories(N, num_ranks)
    sizes = {"batch_size": config.batch_size, "buffer_size": config.buffer_size}
    if any(size % N for size in sizes.values()):
        nearest = " ".join(f"{name}={max(1, round(size / N)) * N}" for name, size in sizes.items())
        raise ValueError(
            f"batch_size and buffer_size must be multiples of num_trajectories ({N}), "
            f"got {config.batch_size} and {config.buffer_size}; pass --set {nearest}"
        )
    if config.buffer_size < config.batch_size:
        raise ValueError(
            f"buffer_size must be at least batch_size ({config.batch_size}), got {config.buffer_size}; "
            f"pass --set buffer_size={config.batch_size}"
        )
    if config.use_tanh_output and not np.all(np.isfinite([environment.action_low, environment.action_high])):
        raise ValueError("use_tanh_output needs actions with limits; pass --set use_tanh_output=false")
    width = row_width(environment.observation_size, environment.action_size)
    share = -(-N // num_ranks) / N + 2 / (launcher.num_local_ranks() or 1)  # a checkpoint needs two copies on rank 0
    require_memory("transitions of buffer_size", 4 * width * config.buffer_size * share)
    require_memory("updates_per_round and batch_size", 8 * width * config.updates_per_round * config.batch_size)
    require_memory("num_trajectories and steps_per_round", 8 * 3 * width * N * config.steps_per_round)


def no_exploration(config, environment, state, rng, shape) -> None:
    """Return None: the policy acts without noise."""


def gaussian_exploration(config, environment, state: dict, rng: np.random.Generator, shape: tuple[int, ...]):
    """Return the noise [E, T, A] that a checkpoint's policy acts with, or None if the checkpoint has no log_std."""
    policy = state["policy"]
    return np.exp(policy["log_std"]) * rng.standard_normal(shape) if "log_std" in policy else None


def coloured_exploration(config: OffPolicySettings, environment, state, rng: np.random.Generator, shape):
    """Return the noise [E, T, A] that the actor explores with."""
    colour = Colour.of(config.noise, config.noise_bandwidth)
    num_episodes, num_steps, num_actions = shape
    noise, _ = colour.draw(rng, colour.initial(rng, num_episodes, num_actions), num_steps)  # [T, E, A]
    return config.noise_std * action_range(environment)[1] * noise.transpose(1, 0, 2)
