"""Small learners of TD3 and DDPG, and random minibatches for their formulas, with losses in TensorFlow."""

from typing import Any, NamedTuple

import linear_quadratic
import numpy as np

from tdpo_baselines.common.networks import mlp, tf_mlp
from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.common.sampling.kernel_roller import KernelRoller
from tdpo_baselines.common.sampling.replay import Transitions, row_width

SMALL = {"hidden_sizes": (5,), "batch_size": 12, "buffer_size": 1000, "random_timesteps": 60, "steps_per_round": 30}
SHORT = {"updates_per_round": 7, "rounds_per_iteration": 2}


def make_learner(algorithm, kernel=None, **options):
    """Return a learner of an algorithm on the linear-quadratic toy."""
    config = algorithm.Config.from_values({**SMALL, **SHORT, **options})
    kernel = kernel or linear_quadratic.kernel()
    roller = KernelRoller(kernel, config.hidden_sizes, config.gamma, config.network_style(kernel))
    return algorithm.Learner(config, roller, Comm(), seed=1)


class Parameters(NamedTuple):
    """Flat parameters of all networks."""

    actor: Any
    critics: Any
    target_actor: Any
    target_critics: Any


class Problem:
    """Random parameters near a learner's and a random minibatch in single precision; networks in double precision."""

    def __init__(self, learner):
        rng = np.random.default_rng(0)
        O, *hidden, A = self.sizes = learner.networks.sizes
        actor, critics = (fitted.theta for fitted in learner.agent)
        drawn = (at + rng.normal(size=at.shape) for at in (actor, critics, actor, critics))
        self.parameters = Parameters(*map(np.float32, drawn))
        rows = rng.normal(size=(12, row_width(O, A))).astype(np.float32)
        rows[:, O + A + 1] = rng.random(12) < 0.3
        self.batch = Transitions.from_rows(rows, O, A)
        self.noise = np.clip(rng.normal(size=(12, A)), -0.5, 0.5).astype(np.float32)
        self._style, self._critic_style = (
            mlp.Style(learner.config.activation, squashed) for squashed in (learner.config.use_tanh_output, False)
        )
        self._critic_sizes = (O + A, *hidden, 1)

    def act(self, actor, observations):
        """Return the actor's actions, in TensorFlow."""
        return tf_mlp.apply(doubles(actor), doubles(observations), self.sizes, self._style)

    def values(self, critics, observations, actions) -> list:
        """Return the values of every critic, in TensorFlow."""
        tf, size = load_tensorflow(), mlp.num_parameters(self._critic_sizes)
        inputs = tf.concat([doubles(observations), doubles(actions)], axis=1)
        each = tf.reshape(doubles(critics), (-1, size))
        return [tf_mlp.apply(each[c], inputs, self._critic_sizes, self._critic_style)[:, 0] for c in range(len(each))]


def copies(agent) -> tuple:
    """Return copies of an agent's networks, which an update changes in place."""
    return tuple(fitted.copied() for fitted in agent)


def doubles(array):
    """Return a tensor in double precision."""
    return load_tensorflow().cast(array, "float64")


def gradient(loss, at) -> np.ndarray:
    """Return TensorFlow's gradient of a loss."""
    tf = load_tensorflow()
    at = doubles(at)
    with tf.GradientTape() as tape:
        tape.watch(at)
        total = loss(at)
    return tape.gradient(total, at).numpy()


def cost_of_learned_policy(learner) -> float:
    """Return the mean cost of the learner's policy from random starts."""
    starts = learner.roller.start_states(np.random.default_rng(5).random((400, 2)))
    return -learner.roller.rollouts(learner.theta, starts).rewards.sum(axis=1).mean()
