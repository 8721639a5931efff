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

from ..networks import mlp
from ..optim.adam import Adam
from ..parallel.checks import require_finite
from ..parallel.comm import Comm
from ..parallel.execution import MAX_SOLO_ROWS, load_tensorflow_where_needed
from ..parallel.seeding import generator
from ..parallel.tensorflow_setup import load_tensorflow
from ..sampling.noise import Colour
from ..sampling.replay import Replay, Transitions, row_width
from ..sampling.streams import Segments, Streams
from .settings import OffPolicySettings


class Parameters(NamedTuple):
    """Parameters of all networks: arrays or tensors, flat or split into layers."""

    actor: Any  # [P]
    critics: Any  # [C Q]
    target_actor: Any  # [P]
    target_critics: Any  # [C Q]

    def map(self, of_actor: Callable, of_critics: Callable) -> "Parameters":
        """Apply a function to both actors' parameters, and another to both sets of critics'."""
        return Parameters(
            of_actor(self.actor), of_critics(self.critics), of_actor(self.target_actor), of_critics(self.target_critics)
        )


class Networks:
    """Forward passes of the actor and the critics, in TensorFlow.

    Actions are in units of half their range, about its centre.
    """

    def __init__(self, config: OffPolicySettings, sizes: tuple[int, ...], *, num_critics: int, is_limited: np.ndarray):
        """Build networks of these layer sizes; `is_limited` [A]: the actions that the environment clips."""
        O, *hidden, A = sizes
        self.sizes, self.critic_sizes, self._num_critics = sizes, (O + A, *hidden, 1), num_critics
        self._style = mlp.Style(config.activation, config.use_tanh_output)
        self._critic_style = mlp.Style(config.activation)
        self._limits = np.where(is_limited, 1.0, np.inf)

    def act(self, actor, observations):
        """Return the actor's actions [M, A]."""
        from ..networks.tf_mlp import actions

        return actions(actor, observations, self.sizes, self._style)

    def clip(self, actions):
        """Clip actions [M, A] as the environment does."""
        tf = load_tensorflow()
        limits = tf.constant(self._limits, actions.dtype)
        return tf.clip_by_value(actions, -limits, limits)

    def values(self, critics, observations, actions) -> list:
        """Return the values of every critic, C times [M]."""
        from ..networks.tf_mlp import actions as outputs

        inputs = load_tensorflow().concat([observations, actions], axis=1)
        each = critics if isinstance(critics, list) else self.split_critics(critics)
        return [outputs(critic, inputs, self.critic_sizes, self._critic_style)[:, 0] for critic in each]

    def split_actor(self, actor) -> list:
        """Split flat parameters into layers."""
        from ..networks.tf_mlp import layers

        return layers(actor, self.sizes)

    def split_critics(self, critics) -> list:
        """Split flat parameters into layers of each critic."""
        from ..networks.tf_mlp import layers

        each = load_tensorflow().split(critics, self._num_critics)
        return [layers(critic, self.critic_sizes) for critic in each]


class UpdateRule(NamedTuple):
    """The mathematics of an algorithm. All but the noise is in TensorFlow."""

    targets: Callable  # (networks, parameters, batch, noise) -> y [M]
    critic_loss: Callable  # (networks, critics, batch, y) -> loss of the critics
    actor_loss: Callable  # (networks, actor, critics, batch) -> loss of the actor
    target_noise: Callable | None = None  # (rng, shape) -> noise for `targets`
    num_critics: int = 1
    policy_delay: int = 1  # updates of the critics per update of the actor and the targets

    def critic_gradient(self, networks: Networks, parameters: Parameters, rows, noise):
        """Return the gradient of the critics' loss, flat or in layers as the parameters are."""
        batch = Transitions.from_rows(rows, networks.sizes[0], networks.sizes[-1])
        y = self.targets(networks, parameters, batch, noise)
        return gradient(lambda critics: self.critic_loss(networks, critics, batch, y), parameters.critics)

    def actor_gradient(self, networks: Networks, parameters: Parameters, rows):
        """Return the gradient of the actor's loss, flat or in layers as the parameters are."""
        batch = Transitions.from_rows(rows, networks.sizes[0], networks.sizes[-1])
        return gradient(lambda actor: self.actor_loss(networks, actor, parameters.critics, batch), parameters.actor)


class Agent(NamedTuple):
    """Everything that an update changes."""

    parameters: Parameters
    actor_adam: Adam
    critic_adam: Adam

    def map(self, of_actor: Callable, of_critics: Callable) -> "Agent":
        """Apply a function to all that has the shape of the actor's parameters, and another to the critics'."""
        (m, v, count), (critic_m, critic_v, critic_count) = self.actor_adam, self.critic_adam
        return Agent(
            self.parameters.map(of_actor, of_critics),
            Adam(of_actor(m), of_actor(v), count),
            Adam(of_critics(critic_m), of_critics(critic_v), critic_count),
        )

    def step_critics(self, gradient, config: OffPolicySettings) -> "Agent":
        """Take a step of Adam down the gradient of the critics' loss."""
        adam, critics = descend(self.critic_adam, self.parameters.critics, gradient, config.critic_learning_rate)
        return self._replace(parameters=self.parameters._replace(critics=critics), critic_adam=adam)

    def step_actor(self, gradient, config: OffPolicySettings) -> "Agent":
        """Take a step of Adam down the gradient of the actor's loss, then Polyak-average the targets."""
        adam, actor = descend(self.actor_adam, self.parameters.actor, gradient, config.actor_learning_rate)
        parameters = polyak_update(self.parameters._replace(actor=actor), config.target_rate)
        return self._replace(parameters=parameters, actor_adam=adam)


def gradient(loss: Callable, parameters):
    """Return the gradient of a loss with the structure of the parameters.

    In layers it is faster: with respect to a flat vector it is a sum of padded ones.
    """
    with load_tensorflow().GradientTape() as tape:
        tape.watch(parameters)
        value = loss(parameters)
    return tape.gradient(value, parameters)


def descend(adam: Adam, parameters, gradient, learning_rate: float) -> tuple[Adam, Any]:
    """Return moments and parameters, flat or in layers, after a step of Adam down the gradient."""
    nest, after = load_tensorflow().nest, []
    for part, mean, square, slope in zip(*map(nest.flatten, (parameters, adam.mean, adam.square, gradient))):
        moments, change = Adam(mean, square, adam.count).step(slope, learning_rate=learning_rate)
        after.append((part - change, moments.mean, moments.square))
    parameters, mean, square = (nest.pack_sequence_as(parameters, list(parts)) for parts in zip(*after))
    return Adam(mean, square, moments.count), parameters


def polyak_update(parameters: Parameters, rate: float) -> Parameters:
    """Polyak-average the target networks: target <- (1 - rate) target + rate network."""

    def average(target, parameters):
        return load_tensorflow().nest.map_structure(lambda t, p: t + rate * (p - t), target, parameters)

    actor = average(parameters.target_actor, parameters.actor)
    critics = average(parameters.target_critics, parameters.critics)
    return parameters._replace(target_actor=actor, target_critics=critics)


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
            agent = agent.step_critics(rule.critic_gradient(networks, agent.parameters, rows[i], noise[i]), config)

            def with_actor():
                return tf.nest.flatten(
                    agent.step_actor(rule.actor_gradient(networks, agent.parameters, rows[i]), config)
                )

            if rule.policy_delay == 1:
                return i + 1, *with_actor()
            is_due = (num_before + i + 1) % rule.policy_delay == 0
            return i + 1, *tf.cond(is_due, with_actor, lambda: tf.nest.flatten(agent))

        example = agent.map(networks.split_actor, networks.split_critics)
        _, *parts = tf.while_loop(lambda i, *_: i < rows.shape[0], body, (0, *tf.nest.flatten(example)))
        return tf.nest.pack_sequence_as(example, parts).map(flatten, flatten)

    return tf.function(loop, jit_compile=True, autograph=False)


def compile_gradients(networks: Networks, rule: UpdateRule) -> list:
    """Compile the gradients of critics and actor as functions of flat parameters and a minibatch."""
    tf = load_tensorflow()

    def compiled(function):
        def of_flat(parameters, *minibatch):
            return flatten(function(networks, parameters.map(networks.split_actor, networks.split_critics), *minibatch))

        return tf.function(of_flat, jit_compile=True, autograph=False)

    return [compiled(rule.critic_gradient), compiled(rule.actor_gradient)]


class ReplayLearner:
    """Rounds of a segment with exploration noise and updates from the replay."""

    def __init__(self, config: Any, rule: UpdateRule, roller, comm: Comm, seed: int):
        self.config, self.roller, self._rule, self._comm, self._seed = config, roller, rule, comm, seed
        N, (O, *_, A) = config.num_trajectories, roller.layer_sizes
        self.streams = Streams(roller, comm, seed, num_streams=N, num_steps=config.steps_per_round, gamma=config.gamma)
        self._mine = range(self.streams.mine.start, self.streams.mine.stop)
        self.replay = Replay(len(self._mine), config.buffer_size // N, row_width(O, A))
        self.replay_bytes = 4 * row_width(O, A) * config.buffer_size
        self.networks = Networks(
            config, roller.layer_sizes, num_critics=rule.num_critics, is_limited=roller.is_action_limited
        )
        self._is_solo = N == 1 or config.batch_size <= MAX_SOLO_ROWS
        load_tensorflow_where_needed(comm, is_needed=comm.rank == 0 or not self._is_solo)
        self._compiled: Any = None
        self._colour = Colour.of(config.noise, config.noise_bandwidth)
        self._noise_state = self._colour.initial(generator(seed, "noise"), N, A)  # [N, A, filters]
        self.num_updates = 0
        self.agent = self._initial_agent()

    def _initial_agent(self) -> Agent:
        actor = uniform_parameters(self.networks.sizes, generator(self._seed, "weights"))
        rng = generator(self._seed, "value_weights")
        sizes, C = self.networks.critic_sizes, self._rule.num_critics
        critics = np.concatenate([uniform_parameters(sizes, rng) for _ in range(C)])
        parameters = Parameters(actor, critics, target_actor=actor, target_critics=critics)
        return Agent(parameters, Adam.of_size(len(actor)), Adam.of_size(len(critics)))

    @property
    def theta(self) -> np.ndarray:
        """Parameters of the actor. [P]"""
        return np.asarray(self.agent.parameters.actor, np.float64)

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
        require_finite("parameter", self.theta)
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

        def mean(function, parameters: Parameters, *columns) -> np.ndarray:
            parameters = Parameters(*map(np.float32, parameters))
            return self._comm.sum(np.array([function(parameters, *part).numpy() for part in zip(*columns)]), N) / N

        for i in range(config.updates_per_round):
            rows, noise = [rows[i] for rows, _ in minibatches], [noise[i] for _, noise in minibatches]
            agent = agent.step_critics(mean(critic_gradient, agent.parameters, rows, noise), config)
            if (self.num_updates + i + 1) % self._rule.policy_delay == 0:
                agent = agent.step_actor(mean(actor_gradient, agent.parameters, rows), config)
        return agent

    def state(self) -> dict[str, Any]:
        """Return everything a checkpoint must hold; the replay is gathered on rank 0."""
        state = self.replicated()
        state["replay"]["rows"] = self._comm.gather_on_root(self.replay.filled, self.config.num_trajectories)
        return state

    def replicated(self) -> dict[str, Any]:
        """Return the part of the state that is the same on all ranks."""
        parameters = Parameters(*map(np.float64, self.agent.parameters))
        return {
            "policy": {"theta": parameters.actor},
            "critics": {"theta": parameters.critics, "num_updates": np.asarray(self.num_updates)},
            "targets": {"actor": parameters.target_actor, "critics": parameters.target_critics},
            "actor_adam": self.agent.actor_adam._asdict(),
            "critic_adam": self.agent.critic_adam._asdict(),
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
        critics, targets = state["critics"], state["targets"]
        parameters = Parameters(state["policy"]["theta"], critics["theta"], targets["actor"], targets["critics"])
        self.agent = Agent(parameters, Adam(**state["actor_adam"]), Adam(**state["critic_adam"]))
        self.num_updates = int(critics["num_updates"])


def uniform_parameters(sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw weights and biases uniformly within 1 / sqrt(inputs), as PyTorch does, which the references use."""
    bounds = [np.full((n + 1) * m, 1 / np.sqrt(n)) for n, m in zip(sizes, sizes[1:])]
    return np.concatenate([rng.uniform(-bound, bound) for bound in bounds])
