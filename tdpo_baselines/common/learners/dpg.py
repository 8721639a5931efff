"""The updates of DDPG and TD3 in TensorFlow: losses, gradients, and steps of networks and targets.

Gradients are float32. Shapes: K updates, M rows of a minibatch, C critics, O observation, A action, D of a
transition, P parameters of the actor, Q of a critic.
"""

from typing import Any, NamedTuple

import numpy as np

from ..networks import mlp
from ..optim.adam import Adam
from ..parallel.tensorflow_setup import load_tensorflow
from ..sampling.replay import Columns


class Tricks(NamedTuple):
    """Where TD3 and DDPG differ."""

    num_critics: int = 1  # targets are the smallest of theirs
    policy_delay: int = 1  # updates of the critics per update of the actor and the targets
    target_noise_std: float = 0.0  # noise on the targets' actions
    target_noise_clip: float = 0.0
    critic_l2: float = 0.0  # weight of the squared parameters of the critics


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

    def __init__(self, sizes: tuple[int, ...], is_limited: np.ndarray, config, tricks: Tricks):
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
        from ..networks.tf_mlp import actions

        return actions(actor, observations, self._sizes, self._style)

    def values(self, critics, observations, actions) -> list:
        """Of each critic. C times [M]"""
        from ..networks.tf_mlp import actions as network

        inputs = load_tensorflow().concat([observations, actions], axis=1)
        each = critics if isinstance(critics, list) else self.critic_layers(critics)
        return [network(critic, inputs, self._critic_sizes, self._critic_style)[:, 0] for critic in each]

    def actor_layers(self, actor) -> list:
        from ..networks.tf_mlp import layers

        return layers(actor, self._sizes)

    def critic_layers(self, critics) -> list:
        """Of each critic."""
        from ..networks.tf_mlp import layers

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

    def with_actor(self, gradient, config) -> "State":
        """And with the targets after it."""
        adam, actor = stepped(self.actor_adam, self.networks.actor, gradient, config.actor_learning_rate)
        networks = self.networks._replace(actor=actor)
        return self._replace(networks=followed(networks, config.target_rate), actor_adam=adam)


def compile_loop(formulas: Formulas, config, tricks: Tricks):
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
