"""Learner of DDPG and TD3: a deterministic actor and critics that learn from replayed transitions.

The algorithm's own mathematics arrives as an `UpdateRule`. Every stream has its own part of the replay and gives an
equal share of every minibatch. A small minibatch is not worth a message: rank 0 makes all updates of a round in one
compiled loop and broadcasts the result. For a large one the ranks compute the gradients of their streams' shares, with
a sum over the ranks per update. The options alone decide between the two, so a run is the same on any number of ranks.
Gradients are float32.

Shapes: N streams, n of them on this rank, L steps of each per round, K updates after them, M rows of a minibatch,
C critics, O observation, A action, D of a transition, P parameters of the actor, Q of a critic.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..networks import mlp, tf_mlp
from ..optim.adam import Adam
from ..parallel.comm import Comm
from ..parallel.execution import MAX_SOLO_ROWS, load_tensorflow_where_needed
from ..parallel.seeding import generator
from ..parallel.tensorflow_setup import load_tensorflow
from ..sampling.noise import Colour
from ..sampling.replay import Replay, Transitions, row_width
from ..sampling.streams import Segments, Streams
from .settings import OffPolicySettings


class Networks:
    """Forward passes of the actor and the critics, in TensorFlow. Actions are in units of half their range."""

    def __init__(self, config: OffPolicySettings, sizes: tuple[int, ...], *, num_critics: int, has_range: np.ndarray):
        """Build networks of these layer sizes; `has_range` [A]: the actions that have limits."""
        O, *hidden, A = sizes
        self.sizes, self.critic_sizes, self._num_critics = sizes, (O + A, *hidden, 1), num_critics
        self._style = mlp.Style(config.activation, config.use_tanh_output)
        self._critic_style = mlp.Style(config.activation)
        self._limits = np.where(has_range, 1.0, np.inf)

    def act(self, actor, observations):
        """Return the actor's actions [M, A]."""
        return tf_mlp.apply(actor, observations, self.sizes, self._style)

    def clip(self, actions):
        """Clip actions [M, A] to their range, also where the environment does not."""
        tf = load_tensorflow()
        limits = tf.constant(self._limits, actions.dtype)
        return tf.clip_by_value(actions, -limits, limits)

    def values(self, critics, observations, actions) -> list:
        """Return the values of every critic, C times [M]."""
        inputs = load_tensorflow().concat([observations, actions], axis=1)
        each = critics if isinstance(critics, list) else self.split_critics(critics)
        return [tf_mlp.apply(critic, inputs, self.critic_sizes, self._critic_style)[:, 0] for critic in each]

    def split_actor(self, actor) -> list:
        """Split flat parameters [P] into layers."""
        return tf_mlp.split_layers(actor, self.sizes)

    def split_critics(self, critics) -> list:
        """Split flat parameters [C Q] into layers of each critic."""
        each = load_tensorflow().split(critics, self._num_critics)
        return [tf_mlp.split_layers(critic, self.critic_sizes) for critic in each]


class UpdateRule(NamedTuple):
    """The mathematics of an algorithm, in TensorFlow; the noise is NumPy's. Parameters are flat or in layers."""

    targets: Callable  # (networks, target_actor, target_critics, batch, noise) -> y [M]
    critic_loss: Callable  # (networks, critics, batch, y) -> loss of the critics
    actor_loss: Callable  # (networks, actor, critics, batch) -> loss of the actor
    target_noise: Callable | None = None  # (rng, shape) -> noise for `targets`
    num_critics: int = 1
    policy_delay: int = 1  # updates of the critics per update of the actor and the targets

    def critic_gradient(self, networks: Networks, critics, target_actor, target_critics, rows, noise):
        """Return the gradient of the critics' loss, with the structure of the critics' parameters."""
        batch = Transitions.from_rows(rows, networks.sizes[0], networks.sizes[-1])
        y = self.targets(networks, target_actor, target_critics, batch, noise)
        return gradient(lambda critics: self.critic_loss(networks, critics, batch, y), critics)

    def actor_gradient(self, networks: Networks, actor, critics, rows):
        """Return the gradient of the actor's loss, with the structure of the actor's parameters."""
        batch = Transitions.from_rows(rows, networks.sizes[0], networks.sizes[-1])
        return gradient(lambda actor: self.actor_loss(networks, actor, critics, batch), actor)


def gradient(loss: Callable, parameters):
    """Return the gradient of a loss. In layers it is faster: that of a flat vector is a sum of padded ones."""
    with load_tensorflow().GradientTape() as tape:
        tape.watch(parameters)
        value = loss(parameters)
    return tape.gradient(value, parameters)


class Fitted(NamedTuple):
    """Parameters that are fitted, their Polyak average and their Adam: arrays or tensors, flat or split into layers."""

    theta: Any
    target: Any
    adam: Adam

    def map(self, function: Callable) -> "Fitted":
        """Apply a function to all that has the shape of the parameters."""
        mean, square, count = self.adam
        return Fitted(function(self.theta), function(self.target), Adam(function(mean), function(square), count))

    def descend(self, gradient, learning_rate: float) -> "Fitted":
        """Take a step of Adam down the gradient."""
        nest, after = load_tensorflow().nest, []
        for part, mean, square, slope in zip(*map(nest.flatten, (self.theta, *self.adam[:2], gradient))):
            moments, change = Adam(mean, square, self.adam.count).step(slope, learning_rate=learning_rate)
            after.append((part - change, moments.mean, moments.square))
        theta, mean, square = (nest.pack_sequence_as(self.theta, list(parts)) for parts in zip(*after))
        return self._replace(theta=theta, adam=Adam(mean, square, moments.count))

    def polyak_update(self, rate: float) -> "Fitted":
        """Polyak-average the target: target <- (1 - rate) target + rate theta."""
        nest = load_tensorflow().nest
        return self._replace(target=nest.map_structure(lambda t, p: t + rate * (p - t), self.target, self.theta))


class Agent(NamedTuple):
    """Everything that an update changes."""

    actor: Fitted  # [P]
    critics: Fitted  # [C Q]

    def step_critics(self, gradient, config: OffPolicySettings) -> "Agent":
        """Step down the gradient of the critics' loss."""
        return self._replace(critics=self.critics.descend(gradient, config.critic_learning_rate))

    def step_actor(self, gradient, config: OffPolicySettings) -> "Agent":
        """Step down the gradient of the actor's loss, then Polyak-average all targets."""
        actor = self.actor.descend(gradient, config.actor_learning_rate)
        return Agent(actor.polyak_update(config.target_rate), self.critics.polyak_update(config.target_rate))


def flatten(layers):
    """Return all layers as one vector."""
    tf = load_tensorflow()
    return tf.concat([tf.reshape(part, [-1]) for part in tf.nest.flatten(layers)], axis=0)


def compile_updates(networks: Networks, rule: UpdateRule, config: OffPolicySettings):
    """Compile K updates into one call: (agent, rows [K, M, D], noise [K, M, A], updates before) -> agent.

    Inside the loop parameters and moments are in layers, so no update splits and joins them.
    """
    tf = load_tensorflow()

    def loop(agent, rows, noise, num_before):
        def body(i, *parts):
            agent = tf.nest.pack_sequence_as(example, parts)
            actor, critics = agent
            slope = rule.critic_gradient(networks, critics.theta, actor.target, critics.target, rows[i], noise[i])
            agent = agent.step_critics(slope, config)

            def with_actor():
                slope = rule.actor_gradient(networks, agent.actor.theta, agent.critics.theta, rows[i])
                return tf.nest.flatten(agent.step_actor(slope, config))

            if rule.policy_delay == 1:
                return i + 1, *with_actor()
            is_due = (num_before + i + 1) % rule.policy_delay == 0
            return i + 1, *tf.cond(is_due, with_actor, lambda: tf.nest.flatten(agent))

        example = Agent(agent.actor.map(networks.split_actor), agent.critics.map(networks.split_critics))
        _, *parts = tf.while_loop(lambda i, *_: i < rows.shape[0], body, (0, *tf.nest.flatten(example)))
        return Agent(*(fitted.map(flatten) for fitted in tf.nest.pack_sequence_as(example, parts)))

    return tf.function(loop, jit_compile=True, autograph=False)


def compile_gradients(networks: Networks, rule: UpdateRule) -> list:
    """Compile the gradients of critics and actor as functions of flat parameters and a minibatch."""
    tf, split_actor, split = load_tensorflow(), networks.split_actor, networks.split_critics

    def of_critics(critics, target_actor, target_critics, *minibatch):
        parameters = split(critics), split_actor(target_actor), split(target_critics)
        return flatten(rule.critic_gradient(networks, *parameters, *minibatch))

    def of_actor(actor, critics, rows):
        return flatten(rule.actor_gradient(networks, split_actor(actor), split(critics), rows))

    return [tf.function(function, jit_compile=True, autograph=False) for function in (of_critics, of_actor)]


class ReplayLearner:
    """Rounds of a segment with exploration noise and updates from the replay."""

    def __init__(self, config: Any, rule: UpdateRule, roller, comm: Comm, seed: int):
        self.config, self.roller, self._rule, self._comm, self._seed = config, roller, rule, comm, seed
        N, (O, *_, A) = config.num_trajectories, roller.layer_sizes
        L, limit = config.steps_per_round, config.time_limit
        self.streams = Streams(roller, comm, seed, num_streams=N, num_steps=L, gamma=config.gamma, time_limit=limit)
        self._mine = range(self.streams.mine.start, self.streams.mine.stop)
        self.replay = Replay(len(self._mine), config.buffer_size // N, row_width(O, A))
        self.replay_bytes = 4 * row_width(O, A) * config.buffer_size
        self.networks = Networks(
            config, roller.layer_sizes, num_critics=rule.num_critics, has_range=roller.has_action_range
        )
        self._is_solo = N == 1 or config.batch_size <= MAX_SOLO_ROWS
        load_tensorflow_where_needed(comm, is_needed=comm.rank == 0 or not self._is_solo)
        self._compiled: Any = None
        self._colour = Colour.of(config.noise, config.noise_bandwidth)
        self._noise_state = self._colour.initial(generator(seed, "noise"), N, A)  # [N, A, filters]
        self.num_updates = 0
        self.agent = self._initial_agent()

    def _initial_agent(self) -> Agent:
        actor = init_uniform_parameters(self.networks.sizes, generator(self._seed, "weights"))
        rng = generator(self._seed, "value_weights")
        sizes, C = self.networks.critic_sizes, self._rule.num_critics
        critics = np.concatenate([init_uniform_parameters(sizes, rng) for _ in range(C)])
        return Agent(*(Fitted(theta, theta, Adam.of_size(len(theta))) for theta in (actor, critics)))

    @property
    def theta(self) -> np.ndarray:
        """Parameters of the actor. [P]"""
        return np.asarray(self.agent.actor.theta, np.float64)

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Make some rounds; return the row for the log."""
        config, is_random = self.config, total_timesteps < self.config.random_timesteps
        for number in range(iteration * config.rounds_per_iteration, (iteration + 1) * config.rounds_per_iteration):
            theta, offsets = self.explore(number, is_random=total_timesteps < config.random_timesteps)
            segments = self.streams.collect(theta, offsets, number)
            self.replay.add(self._transitions(segments).rows())
            total_timesteps += config.num_trajectories * config.steps_per_round
            if total_timesteps >= config.random_timesteps:
                self.update(number)
        own = {"num_updates": float(self.num_updates), "actor_norm": float(np.linalg.norm(self.theta))}
        return self.streams.row() | own | {"is_random": float(is_random)}

    def explore(self, number: int, *, is_random: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters to act with in a round, and the offsets [n, L, A] to add to their actions."""
        config, scale = self.config, np.array(self.roller.style.scale)
        N, L, A = config.num_trajectories, config.steps_per_round, len(scale)
        rng = generator(self._seed, "actions", number)
        if is_random:
            return np.zeros_like(self.theta), scale * rng.uniform(-1, 1, (N, L, A))[self.streams.mine]
        noise, self._noise_state = self._colour.draw(rng, self._noise_state, L)  # [L, N, A]
        return self.theta, config.noise_std * scale * noise.transpose(1, 0, 2)[self.streams.mine]

    def _transitions(self, segments: Segments) -> Transitions:
        """Return the transitions of segments, with actions in units of half their range."""
        centre, scale = np.array(self.roller.style.centre), np.array(self.roller.style.scale)
        actions = (segments.actions - centre) / scale
        return Transitions(
            segments.observations, actions, segments.rewards, segments.is_terminal, segments.next_observations
        )

    def update(self, number: int) -> None:
        """Make the K updates of a round, if the replay holds a minibatch."""
        config, N = self.config, self.config.num_trajectories
        if self.replay.num_filled * N < config.batch_size or not config.updates_per_round:
            return
        minibatches = [self.sample(number, stream) for stream in self._mine]
        self.agent = self._update_solo(minibatches) if self._is_solo else self._update_shared(minibatches)
        self.num_updates += config.updates_per_round

    def sample(self, number: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a stream's part of a round's minibatches [K, M / N, D], and the noise [K, M / N, A] of the targets."""
        config, A = self.config, self.networks.sizes[-1]
        shape = (config.updates_per_round, config.batch_size // config.num_trajectories)
        rng = generator(self._seed, "minibatches", number, stream)
        rows = self.replay.sample(stream - self._mine.start, rng.integers(self.replay.num_filled, size=shape))
        draw = self._rule.target_noise
        return rows, np.zeros((*shape, 0), np.float32) if draw is None else draw(rng, (*shape, A))

    def _update_solo(self, minibatches: list[tuple[np.ndarray, np.ndarray]]) -> Agent:
        """Make all updates on rank 0, in one compiled call."""
        comm, N = self._comm, self.config.num_trajectories
        gathered: list[Any] = [comm.gather_on_root(np.stack(parts), N) for parts in zip(*minibatches)]

        def on_root() -> Agent:
            tf = load_tensorflow()
            self._compiled = self._compiled or compile_updates(self.networks, self._rule, self.config)
            agent = tf.nest.map_structure(lambda value: tf.constant(np.float32(value)), self.agent)
            rows, noise = (np.concatenate(parts, axis=1) for parts in gathered)  # [K, M, ...] of [N, K, M / N, ...]
            after = self._compiled(agent, rows, noise, tf.constant(self.num_updates % self._rule.policy_delay))
            return tf.nest.map_structure(lambda value: value.numpy(), after)

        return comm.on_root(on_root, expected=())

    def _update_shared(self, minibatches: list[tuple[np.ndarray, np.ndarray]]) -> Agent:
        """Make one update at a time, with gradients that are the mean over the streams of all ranks."""
        config, N, agent = self.config, self.config.num_trajectories, self.agent
        self._compiled = self._compiled or compile_gradients(self.networks, self._rule)
        critic_gradient, actor_gradient = self._compiled

        def mean(function, parameters: tuple, *columns) -> np.ndarray:
            parameters = tuple(map(np.float32, parameters))
            return self._comm.sum(np.array([function(*parameters, *part).numpy() for part in zip(*columns)]), N) / N

        for i in range(config.updates_per_round):
            rows, noise = [rows[i] for rows, _ in minibatches], [noise[i] for _, noise in minibatches]
            actor, critics = agent
            slope = mean(critic_gradient, (critics.theta, actor.target, critics.target), rows, noise)
            agent = agent.step_critics(slope, config)
            if (self.num_updates + i + 1) % self._rule.policy_delay == 0:
                slope = mean(actor_gradient, (agent.actor.theta, agent.critics.theta), rows)
                agent = agent.step_actor(slope, config)
        return agent

    def state(self) -> dict[str, Any]:
        """Return everything a checkpoint must hold; the replay is gathered on rank 0."""
        state = self.replicated()
        state["replay"]["rows"] = self._comm.gather_on_root(self.replay.filled, self.config.num_trajectories)
        return state

    def replicated(self) -> dict[str, Any]:
        """Return the part of the state that is the same on all ranks."""
        actor, critics = self.agent
        return {
            "policy": {"theta": np.float64(actor.theta)},
            "critics": {"theta": np.float64(critics.theta), "num_updates": np.asarray(self.num_updates)},
            "targets": {"actor": np.float64(actor.target), "critics": np.float64(critics.target)},
            "actor_adam": actor.adam._asdict(),
            "critic_adam": critics.adam._asdict(),
            "streams": self.streams.state(),
            "noise": {"state": self._noise_state},
            "replay": {"num_added": np.asarray(self.replay.num_added)},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.streams.load_state(state["streams"])
        self._noise_state = state["noise"]["state"]
        self.replay.load(state["replay"]["rows"][self.streams.mine], int(state["replay"]["num_added"]))

    def begin_from(self, state: dict[str, Any]) -> None:
        """Take over the networks of the stage before, but none of its experience."""
        policy, critics, targets = state["policy"], state["critics"], state["targets"]
        self.agent = Agent(
            Fitted(policy["theta"], targets["actor"], Adam(**state["actor_adam"])),
            Fitted(critics["theta"], targets["critics"], Adam(**state["critic_adam"])),
        )
        self.num_updates = int(critics["num_updates"])


def init_uniform_parameters(sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw weights and biases uniformly within 1 / sqrt(inputs), as PyTorch does, which the references use."""
    bounds = [np.full((n + 1) * m, 1 / np.sqrt(n)) for n, m in zip(sizes, sizes[1:])]
    return np.concatenate([rng.uniform(-bound, bound) for bound in bounds])
