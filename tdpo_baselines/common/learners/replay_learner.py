"""Learner of DDPG and TD3: a deterministic actor and critics that learn from replayed transitions.

The algorithm's own mathematics arrives as an `UpdateRule`. Every stream has its own part of the replay and gives an
equal share of every minibatch. A small minibatch is not worth a message: rank 0 makes all updates of a round and
broadcasts the result. For a large one the ranks compute the gradients of their streams' shares, with a sum over the
ranks per update. The options alone decide between the two, so a run is the same on any number of ranks. Gradients,
parameters and moments are float32.

Shapes: N streams, n of them on this rank, L steps of each per round, K updates after them, M rows of a minibatch,
C critics, O observation, A action, D of a transition, P parameters of the actor, Q of a critic.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..networks import mlp
from ..networks.batch_mlp import BatchMlp, Pass
from ..optim.adam import Adam, descend, descend_and_average
from ..parallel.comm import Comm
from ..parallel.execution import MAX_SOLO_ROWS
from ..parallel.seeding import generator
from ..sampling.noise import Colour
from ..sampling.replay import Replay, Transitions, row_width
from ..sampling.streams import Segments, Streams
from .settings import OffPolicySettings

EPSILON = 1e-8  # Adam's


class Networks:
    """Forward passes of the actor and the critics. Actions are in units of half their range."""

    def __init__(self, config: OffPolicySettings, sizes: tuple[int, ...], *, num_critics: int, has_range: np.ndarray):
        """Compile networks of these layer sizes; `has_range` [A]: the actions that have limits."""
        O, *hidden, A = sizes
        self.sizes, self.critic_sizes, self._num_critics = sizes, (O + A, *hidden, 1), num_critics
        self._actor = BatchMlp(sizes, mlp.Style(config.activation, config.use_tanh_output))
        self._critic = BatchMlp(self.critic_sizes, mlp.Style(config.activation))
        self._limits = np.where(has_range, 1, np.inf).astype(np.float32)

    def compile(self) -> None:
        """Compile, or load compiled code, with a minibatch of one row."""
        for network in (self._actor, self._critic):
            row = network(np.zeros(network.num_parameters, np.float32), np.zeros((1, network.sizes[0])))
            row.parameter_vjp(row.outputs), row.input_vjp(row.outputs)

    def act(self, actor: np.ndarray, observations: np.ndarray) -> Pass:
        """Run the actor, whose outputs are actions [M, A]."""
        return self._actor(actor, observations)

    def clip(self, actions: np.ndarray) -> np.ndarray:
        """Clip actions [M, A] to their range, also where the environment does not."""
        return np.minimum(np.maximum(actions, -self._limits), self._limits)

    def judge(self, critics: np.ndarray, observations: np.ndarray, actions: np.ndarray) -> list[Pass]:
        """Run every critic, whose outputs are values [M, 1]."""
        inputs = np.concatenate([observations, actions], axis=1, dtype=np.float32)
        return [self._critic(critic, inputs) for critic in self._split(critics)]

    def _split(self, critics: np.ndarray) -> list[np.ndarray]:
        size = self._critic.num_parameters
        return [critics[first : first + size] for first in range(0, len(critics), size)]

    def values(self, critics: np.ndarray, observations: np.ndarray, actions: np.ndarray) -> list[np.ndarray]:
        """Return the values [M] of every critic."""
        return [critic.outputs[:, 0] for critic in self.judge(critics, observations, actions)]

    def critic_gradient(self, critics: np.ndarray, batch: Transitions, slope: Callable) -> np.ndarray:
        """Return the gradient [C Q] of a loss whose derivative by a critic's values [M] is slope(values)."""
        gradient = np.empty_like(critics)
        for critic, part in zip(self.judge(critics, batch.observations, batch.actions), self._split(gradient)):
            critic.parameter_vjp(slope(critic.outputs[:, 0])[:, None], out=part)
        return gradient

    def policy_gradient(self, actor: np.ndarray, critics: np.ndarray, batch: Transitions) -> np.ndarray:
        """Return the mean of grad_a Q_1(s, a) grad_theta mu(s) at a = mu(s), the gradient of mean Q_1(s, mu(s)). [P]"""
        policy = self.act(actor, batch.observations)
        critic, *_ = self.judge(self._split(critics)[0], batch.observations, policy.outputs)
        slopes = critic.input_vjp(np.full_like(critic.outputs, 1 / len(critic.outputs)))  # [M, O + A]
        return policy.parameter_vjp(slopes[:, self.sizes[0] :])


class UpdateRule(NamedTuple):
    """The mathematics of an algorithm: functions of flat float32 parameters and a minibatch."""

    targets: Callable  # (networks, target_actor, target_critics, batch, noise) -> y [M]
    critic_gradient: Callable  # (networks, critics, batch, y) -> gradient of the critics' loss [C Q]
    actor_gradient: Callable  # (networks, actor, critics, batch) -> gradient of the actor's loss [P]
    target_noise: Callable | None = None  # (rng, shape) -> noise for `targets`
    num_critics: int = 1
    policy_delay: int = 1  # updates of the critics per update of the actor and the targets


class Fitted(NamedTuple):
    """Parameters that are fitted, their Polyak average and their Adam: float32, changed in place."""

    theta: np.ndarray
    target: np.ndarray
    adam: Adam

    @classmethod
    def of(cls, theta: np.ndarray, target: np.ndarray, adam: Adam) -> "Fitted":
        """Return float32 copies."""
        mean, square, count = adam
        theta, target, mean, square = (np.array(vector, np.float32) for vector in (theta, target, mean, square))
        return cls(theta, target, Adam(mean, square, np.array(count)))

    def copied(self) -> "Fitted":
        """Return copies."""
        return self.of(*self)

    def descend(self, gradient: np.ndarray, learning_rate: float, target_rate: float) -> None:
        """Take a step of Adam down the gradient; then target <- target + target_rate (theta - target)."""
        mean, square, count = self.adam
        count += 1
        step = np.asarray(gradient, np.float32), float(count), learning_rate, EPSILON
        if target_rate:
            descend_and_average(self.theta, mean, square, self.target, *step, target_rate)
        else:
            descend(self.theta, mean, square, *step)


class Agent(NamedTuple):
    """Everything that an update changes."""

    actor: Fitted  # [P]
    critics: Fitted  # [C Q]


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
        comm.warm_up(self.networks.compile, is_needed=comm.rank == 0 or not self._is_solo)
        self._colour = Colour.of(config.noise, config.noise_bandwidth)
        self._noise_state = self._colour.initial(generator(seed, "noise"), N, A)  # [N, A, filters]
        self.num_updates = 0
        self.agent = self._initial_agent()

    def _initial_agent(self) -> Agent:
        actor = init_uniform_parameters(self.networks.sizes, generator(self._seed, "weights"))
        rng = generator(self._seed, "value_weights")
        sizes, C = self.networks.critic_sizes, self._rule.num_critics
        critics = np.concatenate([init_uniform_parameters(sizes, rng) for _ in range(C)])
        return Agent(*(Fitted.of(theta, theta, Adam.of_size(len(theta))) for theta in (actor, critics)))

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
        if self._is_solo:
            self._update_solo(minibatches)
        else:
            self._update_all(minibatches, lambda parts: self._comm.sum(np.array(parts, np.float64), N) / N)
        self.num_updates += config.updates_per_round

    def sample(self, number: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a stream's part of a round's minibatches [K, M / N, D], and the noise [K, M / N, A] of the targets."""
        config, A = self.config, self.networks.sizes[-1]
        shape = (config.updates_per_round, config.batch_size // config.num_trajectories)
        rng = generator(self._seed, "minibatches", number, stream)
        rows = self.replay.sample(stream - self._mine.start, rng.integers(self.replay.num_filled, size=shape))
        draw = self._rule.target_noise
        return rows, np.zeros((*shape, 0), np.float32) if draw is None else draw(rng, (*shape, A))

    def _update_solo(self, minibatches: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Make all updates on rank 0."""
        comm, N = self._comm, self.config.num_trajectories
        gathered: list[Any] = [comm.gather_on_root(np.stack(parts), N) for parts in zip(*minibatches)]

        def on_root() -> Agent:
            rows, noise = (np.concatenate(parts, axis=1) for parts in gathered)  # [K, M, ...] of [N, K, M / N, ...]
            self._update_all([(rows, noise)], lambda parts: parts[0])
            return self.agent

        self.agent = comm.on_root(on_root, expected=())

    def _update_all(self, minibatches: list[tuple[np.ndarray, np.ndarray]], mean: Callable) -> None:
        """Make the updates of a round; `mean` combines the gradients [n, ...] of this rank's parts of a minibatch."""
        config, rule, (actor, critics) = self.config, self._rule, self.agent
        for i in range(config.updates_per_round):
            parts = [(self._batch(rows[i]), noise[i]) for rows, noise in minibatches]
            is_due = (self.num_updates + i + 1) % rule.policy_delay == 0
            rate = config.target_rate if is_due else 0.0
            gradient = mean([self._critic_gradient(*part) for part in parts])
            critics.descend(gradient, config.critic_learning_rate, rate)
            if is_due:
                slopes = [rule.actor_gradient(self.networks, actor.theta, critics.theta, batch) for batch, _ in parts]
                actor.descend(mean(slopes), config.actor_learning_rate, rate)

    def _batch(self, rows: np.ndarray) -> Transitions:
        return Transitions.from_rows(rows, self.networks.sizes[0], self.networks.sizes[-1])

    def _critic_gradient(self, batch: Transitions, noise: np.ndarray) -> np.ndarray:
        """Return the gradient of the critics' loss on a part of a minibatch. [C Q]"""
        actor, critics = self.agent
        y = self._rule.targets(self.networks, actor.target, critics.target, batch, noise)
        return self._rule.critic_gradient(self.networks, critics.theta, batch, y)

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
            "actor_adam": actor.copied().adam._asdict(),
            "critic_adam": critics.copied().adam._asdict(),
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
            Fitted.of(policy["theta"], targets["actor"], Adam(**state["actor_adam"])),
            Fitted.of(critics["theta"], targets["critics"], Adam(**state["critic_adam"])),
        )
        self.num_updates = int(critics["num_updates"])


def init_uniform_parameters(sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw weights and biases uniformly within 1 / sqrt(inputs), as PyTorch does, which the references use."""
    bounds = [np.full((n + 1) * m, 1 / np.sqrt(n)) for n, m in zip(sizes, sizes[1:])]
    return np.concatenate([rng.uniform(-bound, bound) for bound in bounds])
