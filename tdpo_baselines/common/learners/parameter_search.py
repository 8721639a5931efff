"""Search in the space of parameters: the part that ARS and CMA share.

A search tries candidates, whole vectors of parameters, and compares the payoffs of noise-free episodes. The ranks share
the candidates and gather numbers only.

Shapes: C candidates, E episodes of each, U start, O observation, P parameters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...contracts import Roller, State
from ...options.config import Settings, ours, paper
from ..networks import mlp
from ..networks.normalisation import RunningStats, fold_normalisation, unfold_normalisation
from ..parallel.checks import NotFinite, require_finite, require_memory, require_trajectories
from ..parallel.comm import Comm
from ..parallel.seeding import generator, stratified
from .settings import action_range


@dataclass(frozen=True)
class SearchSettings(Settings):
    """Options of ARS and CMA."""

    num_trajectories: int = paper(16, "candidates per update, over all ranks", low=2, high=10**6)
    num_starts: int = ours(1, "episodes of each candidate", low=1, high=10**6)
    gamma: float = ours(1.0, "discount per step; 1: the return itself", above=0, high=1)
    hidden_sizes: tuple[int, ...] = paper((), "hidden layers, tanh; none: a linear policy", low=1, high=4096, longest=8)
    use_observation_normalisation: bool = paper(
        True, "search parameters of a policy that sees observations of mean 0 and deviation 1"
    )

    def network_style(self, environment) -> mlp.Style:
        """Return a network whose outputs are in units of half the action's range, so that no scale is tuned."""
        centre, scale = action_range(environment)
        return mlp.Style(centre=tuple(centre.tolist()), scale=tuple(scale.tolist()))


def check_search(config: SearchSettings, environment, num_ranks: int) -> None:
    """Raise ValueError if a rank would have no candidate, or memory does not suffice."""
    require_trajectories(config.num_trajectories, num_ranks)
    O, A = environment.observation_size, environment.action_size
    num_parameters = mlp.num_parameters((O, *config.hidden_sizes, A))
    episodes = config.num_starts * environment.horizon * (O + A + 1)
    require_memory("num_trajectories and hidden_sizes", 8 * (4 * config.num_trajectories * num_parameters + episodes))


class ParameterSearch:
    """The present policy, the statistics of its observations, and the scores of candidates around it."""

    replay_bytes = 0

    def __init__(self, config: Any, roller: Roller, comm: Comm, seed: int):
        self.config, self.roller, self.comm, self.seed = config, roller, comm, seed
        self.num_starts = config.num_starts if roller.start_size > 0 else 1  # from a single start all are the same
        self.theta = mlp.init_parameters(roller.layer_sizes, generator(seed, "weights"), output_gain=0.0)
        self.observation_stats = RunningStats.of_size(roller.layer_sizes[0])
        powers = config.gamma ** np.arange(roller.horizon)
        self._payoff_scale = 1 / powers.sum()

    @property
    def coordinates(self) -> np.ndarray:
        """The parameters [P] in which the search takes place: theta, or theta for normalised observations."""
        if not self.config.use_observation_normalisation:
            return self.theta
        return unfold_normalisation(self.theta, self.roller.layer_sizes, self.observation_stats)

    def to_theta(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the policy's parameters [P] at coordinates of the search."""
        if not self.config.use_observation_normalisation:
            return coordinates
        return fold_normalisation(coordinates, self.roller.layer_sizes, self.observation_stats)

    def draw_starts(self, iteration: int, num: int) -> np.ndarray:
        """Draw points [num, U] of the unit cube, where episodes start."""
        return stratified(generator(self.seed, "starts", iteration), num, self.roller.start_size)

    def score(self, candidates: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the payoff [C] of candidates [C, P] from starts [C, E, U], and the number of steps simulated.

        A candidate with which the simulation diverges counts as the worst of the others.
        """
        C, E = starts.shape[:2]
        mine = self.comm.share(C)
        states = self.roller.start_states(np.concatenate(starts[mine]))
        rollouts = self.roller.rollouts(candidates[mine], states, num_recorded=0)
        payoffs = rollouts.discounted_returns.reshape(-1, E).mean(axis=1) * self._payoff_scale
        num_steps = (rollouts.lengths + rollouts.replayed_steps).reshape(-1, E).sum(axis=1)
        everyone = self.comm.gather(np.stack([payoffs, num_steps], axis=1), C)
        payoffs, is_finite = everyone[:, 0], np.isfinite(everyone[:, 0])
        if not is_finite.any():
            raise NotFinite("the payoffs of all candidates are not finite")
        return np.where(is_finite, payoffs, payoffs[is_finite].min()), int(everyone[:, 1].sum())

    def measure_centre(self, starts: np.ndarray, is_noted: bool = True) -> dict[str, Any]:
        """Roll out the present policy from starts [E, U], note its observations, and return its part of the row."""
        num = len(starts)
        mine = self.roller.start_states(starts[self.comm.share(num)])
        rollouts = self.roller.rollouts(self.theta, mine)
        observations = rollouts.observations
        parts = (
            rollouts.rewards.sum(axis=1, keepdims=True),
            rollouts.discounted_returns[:, None],
            (rollouts.lengths + rollouts.replayed_steps)[:, None],
            rollouts.lengths[:, None],
            observations.sum(axis=1),
            np.square(observations).sum(axis=1),
        )
        everyone = self.comm.gather(np.concatenate(parts, axis=1), num)
        require_finite("return", everyone[:, 0])
        O = observations.shape[2]
        lengths, sums, squares = everyone[:, 3], everyone[:, 4 : 4 + O], everyone[:, 4 + O :]
        if is_noted:
            self.observation_stats = self.observation_stats.merged(lengths, sums, squares)
        discounted = everyone[:, 1].mean()
        return {
            "num_timesteps": int(everyone[:, 2].sum()),
            "num_episodes": num,
            "return_mean": everyone[:, 0].mean(),
            "discounted_return_mean": discounted,
            "payoff": discounted * self._payoff_scale,
        }

    def state(self) -> State:
        """Return what every search must save."""
        return {"policy": {"theta": self.theta}, "observation_stats": self.observation_stats._asdict()}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)

    def begin_from(self, state: State) -> None:
        """Take over the policy of the stage before."""
        self.theta = state["policy"]["theta"]
        self.observation_stats = RunningStats(**state["observation_stats"])
