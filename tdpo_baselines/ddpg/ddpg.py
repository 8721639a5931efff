"""Deep Deterministic Policy Gradient (Lillicrap et al. 2015, arXiv 1509.02971), with parameter noise on request
(Plappert et al. 2017, arXiv 1706.01905).

Differences from the papers
  1. Updates come in rounds: some steps of every stream, then some updates; see common/off_policy.py.
  2. Several streams, each with its part of the replay, share every minibatch; gradients are their mean.
  3. A time limit is not an end: only what the environment itself ended has no future.
  4. Actions enter the critic with the observation, not in its second layer; there is no batch normalisation.
  5. Parameter noise is drawn anew for every segment and is the same for all streams; there is no layer
     normalisation, the noise being scaled by the r.m.s. of each layer's parameters instead.

Formulas are in common/dpg.py, the loop in common/off_policy.py: DDPG is TD3 with one critic and without its tricks.
"""

from dataclasses import dataclass

import numpy as np

from ..common.learners.dpg import Tricks
from ..common.learners.replay_learner import OffPolicyLearner, OffPolicySettings, check_off_policy, coloured_exploration
from ..common.networks import mlp
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..harness.config import option

ADAPTION = 1.01  # of the parameter noise's scale, per segment (openai/baselines)


@dataclass(frozen=True)
class Config(OffPolicySettings):
    critic_l2: float = option(
        0.0,
        "weight of the critic's squared parameters (openai/baselines: .01 of weights)",
        low=0,
        high=1e6,
    )
    parameter_noise_std: float | None = option(
        None,
        "explore with noise on the actor's parameters that changes actions by this much, in units of half their range, "
        "instead of noise on actions (openai/baselines: 0.2); none: noise on actions",
        above=0,
        high=1e3,
    )


def check(config: Config, environment, num_ranks: int) -> None:
    check_off_policy(config, environment, num_ranks)


def exploration(config: Config, environment, state, rng: np.random.Generator, shape):
    """The noise [E, T, A] on actions; None with noise on parameters, which `evaluate` does not draw."""
    if config.parameter_noise_std is not None:
        return None
    return coloured_exploration(config, environment, state, rng, shape)


def layer_scales(theta: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """For every parameter the r.m.s. of those of its layer. [P]"""
    ends = [mlp.num_parameters(sizes[: k + 1]) for k in range(1, len(sizes))]
    layers = np.split(theta, ends[:-1])
    return np.concatenate([np.full(len(layer), np.sqrt(np.mean(layer**2))) for layer in layers])


class Learner(OffPolicyLearner):
    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        super().__init__(config, Tricks(critic_l2=config.critic_l2), roller, comm, seed)
        self._parameter_scale = 0.1  # of the noise, relative to each layer's parameters; adapts itself
        self._forward = comm.first_on_each_host(lambda: mlp.Forward(roller.layer_sizes, roller.style))

    def replicated(self) -> dict[str, np.ndarray]:
        return {**super().replicated(), "parameter_scale": np.asarray(self._parameter_scale)}

    def begin_from(self, state: dict[str, np.ndarray]) -> None:
        super().begin_from(state)
        self._parameter_scale = float(state["parameter_scale"])

    def _exploration(self, number: int, is_random: bool) -> tuple[np.ndarray, np.ndarray]:
        theta, offsets = super()._exploration(number, is_random)
        if is_random or self.config.parameter_noise_std is None:
            return theta, offsets
        white = generator(self._seed, "noise", 1 + number).standard_normal(len(theta))
        perturbed = theta + self._parameter_scale * layer_scales(theta, self._roller.layer_sizes) * white
        if self._replay.num_filled:
            self._adapt(theta, perturbed)
        return perturbed, np.zeros_like(offsets)

    def _adapt(self, theta: np.ndarray, perturbed: np.ndarray) -> None:
        """A larger scale if the actions on the latest observations differ by less than asked for, else a smaller."""
        observations = self._replay.latest(self.config.steps_per_round)[..., self._columns.observation].astype(
            np.float64
        )
        scale = np.array(self._roller.style.scale)
        change = (self._forward(perturbed, observations) - self._forward(theta, observations)) / scale
        squares = self._comm.sum(np.mean(change**2, axis=(1, 2)), self.config.num_trajectories)
        distance = np.sqrt(squares / self.config.num_trajectories)
        self._parameter_scale *= ADAPTION if distance < self.config.parameter_noise_std else 1 / ADAPTION
