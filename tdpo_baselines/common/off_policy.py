"""What DDPG and TD3 share: a deterministic actor and critics, learning from replayed transitions.

Every stream has its own part of the replay and gives its share of every minibatch. A small minibatch is not
worth a message: rank 0 makes all updates between two segments in one compiled loop and tells the others. Of a
large one the ranks compute the gradients of their streams' shares, a call and a sum per update. Which of the two
is decided by the settings, so a run is the same on any number of ranks. Gradients are float32.

Shapes: N streams of which this rank has n, L steps of each per segment, K updates after it, M rows of a
minibatch, C critics, O observation, A action, P parameters of the actor, Q of a critic.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..config import Settings, option
from . import mlp
from .adam import Adam
from .checks import require_finite, require_memory, require_trajectories
from .comm import Comm
from .noise import KINDS, Colour
from .replay import Columns, Replay
from .seeding import generator
from .segments import Streams
from .tensorflow_setup import load_tensorflow, load_tensorflow_in_turn

MAX_ROWS_AT_ONCE = 1024  # of a minibatch whose updates rank 0 makes alone


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


class Tricks(NamedTuple):
    """Where TD3 and DDPG differ."""

    num_critics: int = 1  # targets are the smallest of theirs
    policy_delay: int = 1  # updates of the critics per update of the actor and the targets
    target_noise_std: float = 0.0  # noise on the targets' actions
    target_noise_clip: float = 0.0
    critic_l2: float = 0.0  # weight of the squared parameters of the critics


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


class Networks(NamedTuple):
    """Parameters, as arrays or tensors, or as layers of them."""

    actor: Any  # [P]
    critics: Any  # [C Q]
    target_actor: Any
    target_critics: Any

    def mapped(self, of_actor, of_critics) -> "Networks":
        """With a function applied to what is the actor's, and another to what is the critics'."""
        actors, critics = map(of_actor, self[::2]), map(of_critics, self[1::2])
        return Networks(*(part for pair in zip(actors, critics) for part in pair))


class Formulas:
    """The losses, in TensorFlow, of transitions as rows [M, D] with actions in units of their range."""

    def __init__(self, sizes: tuple[int, ...], is_limited: np.ndarray, config: OffPolicySettings, tricks: Tricks):
        """`is_limited` [A]: which actions the environment limits to their range."""
        O, *hidden, A = sizes
        self._limits = np.where(is_limited, 1.0, np.inf)
        self._sizes, self._critic_sizes = sizes, (O + A, *hidden, 1)
        self._style, self._critic_style = (
            mlp.Style(config.activation, config.use_tanh_output),
            mlp.Style(config.activation),
        )
        self._config, self._tricks, self._columns = config, tricks, Columns.of(O, A)

    def act(self, actor, observations):
        from .policy import actions

        return actions(actor, observations, self._sizes, self._style)

    def values(self, critics, observations, actions) -> list:
        """Of each critic. C times [M]"""
        from .policy import actions as network

        inputs = load_tensorflow().concat([observations, actions], axis=1)
        each = critics if isinstance(critics, list) else self.critic_layers(critics)
        return [network(critic, inputs, self._critic_sizes, self._critic_style)[:, 0] for critic in each]

    def actor_layers(self, actor) -> list:
        from .policy import layers

        return layers(actor, self._sizes)

    def critic_layers(self, critics) -> list:
        """Of each critic."""
        from .policy import layers

        each = load_tensorflow().split(critics, self._tricks.num_critics)
        return [layers(critic, self._critic_sizes) for critic in each]

    def targets(self, networks: Networks, rows, noise):
        """reward + gamma times the least target value of what the target actor would do, with noise [M, A]."""
        tf, columns = load_tensorflow(), self._columns
        observations = rows[:, columns.next_observation]
        actions = self.act(networks.target_actor, observations)
        if self._tricks.target_noise_std:
            actions += noise
        limits = tf.constant(self._limits, rows.dtype)
        actions = tf.clip_by_value(actions, -limits, limits)
        least = tf.reduce_min(tf.stack(self.values(networks.target_critics, observations, actions)), axis=0)
        return rows[:, columns.reward] + self._config.gamma * (1 - rows[:, columns.is_terminal]) * least

    def critic_loss(self, critics, networks: Networks, rows, noise):
        tf, columns = load_tensorflow(), self._columns
        targets = tf.stop_gradient(self.targets(networks, rows, noise))
        values = self.values(critics, rows[:, columns.observation], rows[:, columns.action])
        errors = tf.add_n([tf.reduce_mean((value - targets) ** 2) for value in values])
        if self._tricks.critic_l2:
            errors += self._tricks.critic_l2 * tf.add_n([tf.reduce_sum(part**2) for part in tf.nest.flatten(critics)])
        return errors

    def actor_loss(self, actor, critics, rows):
        """Minus the first critic's value of the actor's actions."""
        tf, columns = load_tensorflow(), self._columns
        observations = rows[:, columns.observation]
        return -tf.reduce_mean(self.values(critics, observations, self.act(actor, observations))[0])

    def critic_gradient(self, networks: Networks, rows, noise):
        return gradient_of(lambda critics: self.critic_loss(critics, networks, rows, noise), networks.critics)

    def actor_gradient(self, networks: Networks, rows):
        return gradient_of(lambda actor: self.actor_loss(actor, networks.critics, rows), networks.actor)


def gradient_of(function, parameters):
    """Flat or in layers, as the parameters are. In layers is faster: of a flat vector it is a sum of padded ones."""
    with load_tensorflow().GradientTape() as tape:
        tape.watch(parameters)
        value = function(parameters)
    return tape.gradient(value, parameters)


def flat(layers):
    """All layers in a row."""
    tf = load_tensorflow()
    return tf.concat([tf.reshape(part, [-1]) for part in tf.nest.flatten(layers)], axis=0)


def stepped(adam: Adam, parameters, gradient, learning_rate: float) -> tuple[Adam, Any]:
    """Moments and parameters, flat or in layers, after a step down the gradient."""
    nest, after = load_tensorflow().nest, []
    for part, mean, square, slope in zip(*map(nest.flatten, (parameters, adam.mean, adam.square, gradient))):
        moments, change = Adam(mean, square, adam.count).step(slope, learning_rate=learning_rate)
        after.append((part - change, moments.mean, moments.square))
    parameters, mean, square = (nest.pack_sequence_as(parameters, list(parts)) for parts in zip(*after))
    return Adam(mean, square, moments.count), parameters


def followed(networks: Networks, rate: float) -> Networks:
    """With targets that went a part of the way to their networks."""

    def follow(targets, parameters):
        return load_tensorflow().nest.map_structure(lambda t, p: t + rate * (p - t), targets, parameters)

    actor = follow(networks.target_actor, networks.actor)
    critics = follow(networks.target_critics, networks.critics)
    return networks._replace(target_actor=actor, target_critics=critics)


class State(NamedTuple):
    """All that an update changes."""

    networks: Networks
    actor_adam: Adam
    critic_adam: Adam

    def mapped(self, of_actor, of_critics) -> "State":
        """With a function applied to what is the actor's, and another to what is the critics'."""
        parts = (self.actor_adam, of_actor), (self.critic_adam, of_critics)
        adams = (Adam(function(adam.mean), function(adam.square), adam.count) for adam, function in parts)
        return State(self.networks.mapped(of_actor, of_critics), *adams)

    def with_critics(self, gradient, learning_rate: float) -> "State":
        adam, critics = stepped(self.critic_adam, self.networks.critics, gradient, learning_rate)
        return self._replace(networks=self.networks._replace(critics=critics), critic_adam=adam)

    def with_actor(self, gradient, config: OffPolicySettings) -> "State":
        """And with the targets after it."""
        adam, actor = stepped(self.actor_adam, self.networks.actor, gradient, config.actor_learning_rate)
        networks = self.networks._replace(actor=actor)
        return self._replace(networks=followed(networks, config.target_rate), actor_adam=adam)


def compile_loop(formulas: Formulas, config: OffPolicySettings, tricks: Tricks):
    """All updates in one call: (state, rows [K, M, D], noise [K, M, A], number of updates before) -> state.

    In between, parameters and moments are in layers: nothing is cut and joined in every update.
    """
    tf = load_tensorflow()

    def loop(state, rows, noise, num_before):
        def body(i, *parts):
            state = tf.nest.pack_sequence_as(example, parts)
            gradient = formulas.critic_gradient(state.networks, rows[i], noise[i])
            state = state.with_critics(gradient, config.critic_learning_rate)

            def with_actor():
                return tf.nest.flatten(state.with_actor(formulas.actor_gradient(state.networks, rows[i]), config))

            if tricks.policy_delay == 1:
                return i + 1, *with_actor()
            is_due = (num_before + i + 1) % tricks.policy_delay == 0
            return i + 1, *tf.cond(is_due, with_actor, lambda: tf.nest.flatten(state))

        example = state.mapped(formulas.actor_layers, formulas.critic_layers)
        _, *parts = tf.while_loop(lambda i, *_: i < rows.shape[0], body, (0, *tf.nest.flatten(example)))
        return tf.nest.pack_sequence_as(example, parts).mapped(flat, flat)

    return tf.function(loop, jit_compile=True, autograph=False)


def compile_gradients(formulas: Formulas) -> list:
    """The two gradients as functions of flat networks and a minibatch."""
    tf = load_tensorflow()

    def compiled(function):
        def of_flat(networks, *minibatch):
            return flat(function(networks.mapped(formulas.actor_layers, formulas.critic_layers), *minibatch))

        return tf.function(of_flat, jit_compile=True, autograph=False)

    return [compiled(formulas.critic_gradient), compiled(formulas.actor_gradient)]


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
