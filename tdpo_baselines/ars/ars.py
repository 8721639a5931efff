"""Augmented Random Search (Mania, Guy and Recht 2018, arXiv 1803.07055), Algorithm 2, and OpenAI-ES as an option of it.

Every update tries random directions in the space of the parameters, each with both signs, and steps along the
directions weighted by the differences of their payoffs. With `shaping=rank use_adam=true num_top=none` it is OpenAI-ES
(Salimans et al. 2017, arXiv 1703.03864) with antithetic pairs.

Differences from the paper
  1. Both signs of a direction start from the same states.
  2. Statistics of the observations come from episodes of the present policy, which are counted and logged. New
     statistics never change the policy: they change the coordinates in which directions are drawn (V2).
  3. Actions are in units of half their range, and payoffs are rewards per step. Both leave the step as it is.

Glossary (N directions, b of them used, P parameters)
  symbol    name in code            shape     meaning, where (arXiv 1803.07055, Algorithm 2)
  M_j       coordinates             [P]       the policy, for normalised observations in V2
  delta_k   directions              [N, P]    line 4
  nu        direction_std                     line 5
  r(pi)     payoffs                 [N, 2]    of both signs, line 5
  b         num_top                           line 6
  sigma_R   deviation                         standard deviation of the 2 b payoffs used, line 7
  alpha     learning_rate                     line 7
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..common.learners.parameter_search import ParameterSearch, SearchSettings, check_search
from ..common.learners.settings import no_exploration
from ..common.optim.adam import Adam
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from ..options.config import option, paper

exploration = no_exploration
es = partial(option, group="Options of OpenAI-ES")


@dataclass(frozen=True)
class Config(SearchSettings):
    """Options of ARS."""

    num_trajectories: int = paper(16, "N: directions per update, over all ranks, each in both signs", low=1, high=10**6)
    num_top: int | None = paper(8, "b: directions used, those of the best payoffs; none: all", low=1, high=10**6)
    direction_std: float = paper(0.03, "nu: standard deviation of a direction", above=0, high=1e3)
    learning_rate: float = paper(0.02, "alpha: step size", above=0, high=1e3)

    shaping: str = es("deviation", "weigh payoffs by their deviation (ARS) or rank", choices=("deviation", "rank"))
    use_adam: bool = es(False, "take Adam's step along the estimate instead of alpha times it")


def check(config: Config, environment, num_ranks: int) -> None:
    """Raise ValueError if the options cannot run."""
    check_search(config, environment, num_ranks)
    if config.num_top is not None and config.num_top > config.num_trajectories:
        raise ValueError(
            f"num_top must be at most num_trajectories ({config.num_trajectories}), got {config.num_top}; "
            f"pass --set num_top={config.num_trajectories}"
        )


def centred_ranks(payoffs: np.ndarray) -> np.ndarray:
    """Return the ranks of payoffs over -0.5 ... 0.5, equal for equal payoffs (arXiv 1703.03864, section 2.1)."""
    _, inverse, counts = np.unique(payoffs, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2  # the mean of the ranks of equal payoffs
    return (ranks[inverse] / max(payoffs.size - 1, 1) - 0.5).reshape(payoffs.shape)


def best_directions(payoffs: np.ndarray, num_top: int | None) -> np.ndarray:
    """Return the indices [b] of the directions whose better sign has the largest payoff, in their order (line 6)."""
    order = np.argsort(-payoffs.max(axis=1), kind="stable")
    return np.sort(order[:num_top])


def estimate_gradient(directions: np.ndarray, payoffs: np.ndarray, config: Config) -> np.ndarray:
    """Return the weighted mean of the directions (line 7 without alpha). [P]"""
    top = best_directions(payoffs, config.num_top)
    directions, payoffs = directions[top], payoffs[top]
    if config.shaping == "rank":
        weights, deviation = centred_ranks(payoffs), 1.0
    else:
        weights, deviation = payoffs, payoffs.std()
    differences = weights[:, 0] - weights[:, 1]
    return differences @ directions / (len(top) * deviation) if deviation > 0 else np.zeros(directions.shape[1])


class Learner(ParameterSearch):
    """Algorithm 2, one iteration at a time."""

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self.adam = Adam.of_size(len(self.theta))

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Measure the present policy, try directions, step, and return the row for the log."""
        config, N, E = self.config, self.config.num_trajectories, self.num_starts
        starts = self.draw_starts(iteration, (N + 1) * E).reshape(N + 1, E, self.roller.start_size)
        row = self.measure_centre(starts[N])
        centre = self.coordinates
        directions = generator(self.seed, "plan", iteration).standard_normal((N, len(centre)))
        signed = config.direction_std * np.stack([directions, -directions], axis=1)  # [N, 2, P]
        candidates = np.stack([self.to_theta(centre + change) for change in signed.reshape(2 * N, -1)])
        payoffs, num_steps = self.score(candidates, np.repeat(starts[:N], 2, axis=0))
        payoffs = payoffs.reshape(N, 2)
        gradient = estimate_gradient(directions, payoffs, config)
        change = config.learning_rate * gradient
        if config.use_adam:
            self.adam, change = self.adam.step(gradient, learning_rate=config.learning_rate)
        self.theta = self.to_theta(centre + change)
        row["num_timesteps"] += num_steps
        row["num_episodes"] += payoffs.size * E
        own = {"candidates_mean": payoffs.mean(), "candidates_best": payoffs.max(), "candidates_std": payoffs.std()}
        return row | own | {"step_norm": float(np.linalg.norm(change))}

    def state(self) -> State:
        """Return everything a checkpoint must hold."""
        return super().state() | {"adam": self.adam._asdict()}

    replicated = state

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        super().load_state(state)
        self.adam = Adam(**state["adam"])
