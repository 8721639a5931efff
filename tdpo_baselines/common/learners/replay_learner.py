"""What DDPG and TD3 share: a deterministic actor and critics, learning from replayed transitions.

Every stream has its own part of the replay and gives its share of every minibatch. A small minibatch is not
worth a message: rank 0 makes all updates between two segments in one compiled loop and tells the others. Of a
large one the ranks compute the gradients of their streams' shares, a call and a sum per update. Which of the two
is decided by the settings, so a run is the same on any number of ranks. The updates themselves are in common/dpg.py.

Shapes: N streams of which this rank has n, L steps of each per segment, K updates after it, M rows of a
minibatch, C critics, O observation, A action, P parameters of the actor, Q of a critic.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...harness.config import Settings, option
from ..networks import mlp
from ..optim.adam import Adam
from ..parallel.checks import require_finite, require_memory, require_trajectories
from ..parallel.comm import Comm
from ..parallel.seeding import generator
from ..parallel.tensorflow_setup import load_tensorflow, load_tensorflow_in_turn
from ..sampling.noise import KINDS, Colour
from ..sampling.replay import Columns, Replay
from ..sampling.streams import Streams
from .dpg import Formulas, Networks, State, Tricks, compile_gradients, compile_loop

MAX_ROWS_AT_ONCE = 512  # of a minibatch whose updates rank 0 makes alone


@dataclass(frozen=True)
class OffPolicySettings(Settings):
    num_trajectories: int = option(
        1, "streams of episodes over all ranks, each with its part of the replay", low=1, high=10**6
    )
    steps_per_round: int = option(50, "steps of each stream between updates (Spinning Up)", low=1, high=10**9)
    updates_per_round: int = option(50, "updates after them, whatever the streams (Spinning Up)", low=0, high=10**9)
    rounds_per_iteration: int = option(20, "such rounds per row of the log", low=1, high=10**9)
    random_timesteps: int = option(10_000, "first steps: uniformly random, no updates (SB3 zoo)", low=0, high=10**12)
    gamma: float = option(0.99, "discount per step (all)", above=0, high=1)
    hidden_sizes: tuple[int, ...] = option((256, 256), "hidden layers of actor and critics (CleanRL)", low=1, high=4096)
    activation: str = option("relu", "of the hidden layers (all but openai/baselines)", choices=("relu", "tanh"))
    use_tanh_output: bool = option(True, "actions through a tanh onto their range (all); else linear")
    actor_learning_rate: float = option(1e-3, "Adam's step for the actor (SB3)", above=0, high=1)
    critic_learning_rate: float = option(1e-3, "Adam's step for the critics (SB3)", above=0, high=1)
    batch_size: int = option(256, "transitions per update, over all ranks (SB3)", low=1, high=10**9)
    buffer_size: int = option(10**6, "transitions kept, over all ranks (all)", low=1, high=10**12)
    target_rate: float = option(0.005, "tau: how fast the targets follow (all but openai/baselines)", above=0, high=1)
    noise: str = option("gaussian", "of exploration; see common/noise.py (CleanRL, SB3 zoo)", choices=KINDS)
    noise_std: float = option(0.1, "its deviation, in halves of the action's range (CleanRL, SB3 zoo)", low=0, high=1e3)
    noise_bandwidth: float = option(1.0, "relative bandwidth of ou, pink and lowpass noise (paper)", above=0, high=1)

    def network_style(self, environment) -> mlp.Style:
        centre, scale = action_range(environment)
        return mlp.Style(self.activation, self.use_tanh_output, tuple(centre.tolist()), tuple(scale.tolist()))

    def remarks(self, environment, num_timesteps: int) -> list[str]:
        is_all_random = self.random_timesteps >= num_timesteps
        return ["warning: all steps are random ones: random_timesteps is not less than num_timesteps"] * is_all_random


def action_range(environment) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half of the action's range, (0, 1) where it has no limits. [A], [A]"""
    low, high = environment.action_low, environment.action_high
    is_limited = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(is_limited, low, -1.0), np.where(is_limited, high, 1.0)
    return (low + high) / 2, (high - low) / 2


def check_off_policy(config: OffPolicySettings, environment, num_ranks: int) -> None:
    """Refuse what cannot run: too few streams, minibatches that they cannot share, no range, too much memory."""
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
        raise ValueError(f"buffer_size must be at least batch_size ({config.batch_size}), got {config.buffer_size}")
    if config.use_tanh_output and not np.all(np.isfinite([environment.action_low, environment.action_high])):
        raise ValueError("actions without limits have no range for a tanh; pass --set use_tanh_output=false")
    width = Columns.of(environment.observation_size, environment.action_size).width
    require_memory("transitions of buffer_size", 3 * 4 * width * config.buffer_size)  # a checkpoint needs two copies
    require_memory("updates_per_round and batch_size", 8 * width * config.updates_per_round * config.batch_size)
    require_memory("num_trajectories and steps_per_round", 8 * 3 * width * N * config.steps_per_round)


def coloured_exploration(config: OffPolicySettings, environment, state, rng: np.random.Generator, shape):
    """The noise [E, T, A] that the actor explores with."""
    colour = Colour.of(config.noise, config.noise_bandwidth)
    num_episodes, num_steps, num_actions = shape
    noise, _ = colour.draw(rng, colour.initial(rng, num_episodes, num_actions), num_steps)  # [T, E, A]
    return config.noise_std * action_range(environment)[1] * noise.transpose(1, 0, 2)


class OffPolicyLearner:
    """Segments with noise, then updates from the replay. `state` is all that a checkpoint must hold."""

    def __init__(self, config: Any, tricks: Tricks, roller, comm: Comm, seed: int):
        self.config, self._tricks, self._roller, self._comm, self._seed = config, tricks, roller, comm, seed
        N, (O, *hidden, A) = config.num_trajectories, roller.layer_sizes
        self._mine = comm.share(N)
        self._streams = Streams(roller, comm, seed, num_streams=N, num_steps=config.steps_per_round, gamma=config.gamma)
        self._columns = Columns.of(O, A)
        num_mine = self._mine.stop - self._mine.start
        self._replay = Replay(num_mine, config.buffer_size // N, self._columns.width)
        self.replay_bytes = 4 * self._columns.width * config.buffer_size
        self._formulas = Formulas(roller.layer_sizes, roller.is_action_limited, config, tricks)
        self._is_at_once = N == 1 or config.batch_size <= MAX_ROWS_AT_ONCE
        load_tensorflow_in_turn(comm, is_needed=comm.rank == 0 or not self._is_at_once)
        self._compiled: Any = None
        self._colour = Colour.of(config.noise, config.noise_bandwidth)
        self._noise_state = self._colour.initial(generator(seed, "noise"), N, A)  # [N, A, filters]
        self._num_updates = 0
        self._now = self._initial_state((O + A, *hidden, 1))

    def _initial_state(self, critic_sizes: tuple[int, ...]) -> State:
        actor = torch_like_parameters(self._roller.layer_sizes, generator(self._seed, "weights"))
        rng = generator(self._seed, "value_weights")
        critics = np.concatenate([torch_like_parameters(critic_sizes, rng) for _ in range(self._tricks.num_critics)])
        return State(Networks(actor, critics, actor, critics), Adam.of_size(len(actor)), Adam.of_size(len(critics)))

    @property
    def theta(self) -> np.ndarray:
        return np.asarray(self._now.networks.actor, np.float64)

    def state(self) -> dict[str, Any]:
        """Gathers the replay on rank 0: all ranks must ask together."""
        replay = self._comm.gather_on_root(self._replay.filled, self.config.num_trajectories)
        return {**self.replicated(), "replay_rows": replay}

    def replicated(self) -> dict[str, np.ndarray]:
        networks = self._now.networks._asdict()
        return {
            **{"theta" if name == "actor" else name: np.float64(value) for name, value in networks.items()},
            **self._now.actor_adam.state("actor_adam"),
            **self._now.critic_adam.state("critic_adam"),
            **self._streams.state(),
            "noise_state": self._noise_state,
            "num_updates": np.asarray(self._num_updates),
            "replay_added": np.asarray(self._replay.num_added),
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.begin_from(state)
        self._streams.load_state(state)
        self._noise_state = state["noise_state"]
        self._replay.load(state["replay_rows"][self._mine], int(state["replay_added"]))

    def begin_from(self, state: dict[str, np.ndarray]) -> None:
        """Take over the networks of the stage before, but none of its experience."""
        networks = Networks(state["theta"], *(state[name] for name in Networks._fields[1:]))
        self._now = State(networks, Adam.from_state(state, "actor_adam"), Adam.from_state(state, "critic_adam"))
        self._num_updates = int(state["num_updates"])

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Rounds of a segment and its updates; the row for the log."""
        config, is_random = self.config, total_timesteps < self.config.random_timesteps
        for number in range(iteration * config.rounds_per_iteration, (iteration + 1) * config.rounds_per_iteration):
            exploration = self._exploration(number, is_random=total_timesteps < config.random_timesteps)
            segments = self._streams.collect(*exploration, number)
            centre, scale = map(np.array, (self._roller.style.centre, self._roller.style.scale))
            self._replay.add(self._columns.rows(segments, (segments.actions - centre) / scale))
            total_timesteps += config.num_trajectories * config.steps_per_round
            has_enough = self._replay.num_filled * config.num_trajectories >= config.batch_size
            if total_timesteps >= config.random_timesteps and has_enough and config.updates_per_round:
                self._update(number)
        require_finite("parameter", self.theta)
        own = {"num_updates": float(self._num_updates), "actor_norm": float(np.linalg.norm(self.theta))}
        return self._streams.row() | own | {"is_random": float(is_random)}

    def _exploration(self, number: int, is_random: bool) -> tuple[np.ndarray, np.ndarray]:
        """Parameters to act with, and offsets [n, L, A]."""
        config, scale = self.config, np.array(self._roller.style.scale)
        N, L, A = config.num_trajectories, config.steps_per_round, len(scale)
        rng = generator(self._seed, "actions", number)
        if is_random:
            return np.zeros_like(self.theta), scale * rng.uniform(-1, 1, (N, L, A))[self._mine]
        noise, self._noise_state = self._colour.draw(rng, self._noise_state, L)  # [L, N, A]
        return self.theta, config.noise_std * scale * noise.transpose(1, 0, 2)[self._mine]

    def _minibatches(self, number: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
        """A stream's part of the round's minibatches [K, M/N, D], with noise for the targets' actions [K, M/N, A]."""
        config, tricks = self.config, self._tricks
        shape = (config.updates_per_round, config.batch_size // config.num_trajectories)
        rng = generator(self._seed, "minibatches", number, stream)
        rows = self._replay.sample(stream - self._mine.start, rng.integers(self._replay.num_filled, size=shape))
        if not tricks.target_noise_std:
            return rows, np.zeros((*shape, 0), np.float32)
        noise = tricks.target_noise_std * rng.standard_normal((*shape, self._roller.layer_sizes[-1]), np.float32)
        return rows, np.clip(noise, -tricks.target_noise_clip, tricks.target_noise_clip)

    def _update(self, number: int) -> None:
        comm, minibatches = self._comm, [self._minibatches(number, i) for i in range(self._mine.start, self._mine.stop)]
        if self._is_at_once:
            rows, noise = (
                comm.gather_on_root(np.stack(parts), self.config.num_trajectories) for parts in zip(*minibatches)
            )
            self._now = comm.on_root(lambda: self._all_at_once(side_by_side(rows), side_by_side(noise)), expected=())
        else:
            self._step_by_step(minibatches)
        self._num_updates += self.config.updates_per_round

    def _all_at_once(self, rows: np.ndarray, noise: np.ndarray) -> State:
        tf = load_tensorflow()
        self._compiled = self._compiled or compile_loop(self._formulas, self.config, self._tricks)
        now = tf.nest.map_structure(lambda value: tf.constant(np.float32(value)), self._now)
        after = self._compiled(now, rows, noise, tf.constant(self._num_updates % self._tricks.policy_delay))
        return tf.nest.map_structure(lambda value: value.numpy(), after)

    def _step_by_step(self, minibatches: list[tuple[np.ndarray, np.ndarray]]) -> None:
        comm, config, N = self._comm, self.config, self.config.num_trajectories
        if self._compiled is None:
            self._compiled = compile_gradients(self._formulas)
        critic_gradient, actor_gradient = self._compiled

        def mean(function, *columns) -> np.ndarray:
            networks = Networks(*map(np.float32, self._now.networks))
            return comm.sum(np.array([function(networks, *part).numpy() for part in zip(*columns)]), N) / N

        for i in range(config.updates_per_round):
            rows, noise = [rows[i] for rows, _ in minibatches], [noise[i] for _, noise in minibatches]
            self._now = self._now.with_critics(mean(critic_gradient, rows, noise), config.critic_learning_rate)
            if (self._num_updates + i + 1) % self._tricks.policy_delay == 0:
                self._now = self._now.with_actor(mean(actor_gradient, rows), config)


def side_by_side(parts: Any) -> np.ndarray:
    """The streams' parts [N, K, M/N, D] of minibatches as whole ones. [K, M, D]"""
    return np.concatenate(list(parts), axis=1)


def torch_like_parameters(sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Weights and biases uniform within 1 / sqrt(inputs), as the layers of PyTorch, which the references use."""
    bounds = [np.full((n + 1) * m, 1 / np.sqrt(n)) for n, m in zip(sizes, sizes[1:])]
    return np.concatenate([rng.uniform(-bound, bound) for bound in bounds])
