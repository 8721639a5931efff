"""Small learners of TD3 and DDPG, and random minibatches for their formulas with networks in NumPy."""

from typing import Any, NamedTuple

import linear_quadratic
import numpy as np

from tdpo_baselines.common.networks import mlp
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
    """Random parameters near a learner's and a random minibatch, as arrays and as tensors."""

    def __init__(self, learner):
        tf, rng = load_tensorflow(), np.random.default_rng(0)
        O, *hidden, A = self.sizes = learner.networks.sizes
        actor, critics = (fitted.theta for fitted in learner.agent)
        self.parameters = Parameters(*(at + rng.normal(size=at.shape) for at in (actor, critics, actor, critics)))
        self.rows = rng.normal(size=(12, row_width(O, A)))
        self.rows[:, O + A + 1] = rng.random(12) < 0.3
        self.batch = Transitions.from_rows(self.rows, O, A)
        self.noise = np.clip(rng.normal(size=(12, A)), -0.5, 0.5)
        self.tensors = Parameters(*map(tf.constant, self.parameters))
        self.tensor_batch = Transitions.from_rows(tf.constant(self.rows), O, A)
        self.act = mlp.Forward((O, *hidden, A), mlp.Style("relu", learner.config.use_tanh_output))
        self._critic = mlp.Forward((O + A, *hidden, 1), mlp.Style("relu"))
        self._critic_size = mlp.num_parameters((O + A, *hidden, 1))

    def values(self, critics, observations, actions) -> list[np.ndarray]:
        """Return the values of every critic, in NumPy."""
        inputs = np.concatenate([observations, actions], axis=1)
        return [self._critic(critic, inputs)[:, 0] for critic in critics.reshape(-1, self._critic_size)]


def cost_of_learned_policy(learner) -> float:
    """Return the mean cost of the learner's policy from random starts."""
    starts = learner.roller.start_states(np.random.default_rng(5).random((400, 2)))
    return -learner.roller.rollouts(learner.theta, starts).rewards.sum(axis=1).mean()
