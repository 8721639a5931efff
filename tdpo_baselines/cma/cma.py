"""CMA-ES (Hansen 2016, arXiv 1604.00772) by the `cma` package, with restarts and growing populations (IPOP).

Every update draws a population of parameter vectors from a normal distribution, ranks their payoffs, and moves and
shapes the distribution. It suits policies of few parameters: linear ones, small networks, or controllers in which each
action sees only some observations (`action_inputs`), such as PD controllers with targets.

Differences from the paper
  1. The population's episodes start from the same states, which are new in every update.
  2. When the search has converged, it starts again with a doubled population, at most 32 times the first. Its result
     is kept, compared with the new search's mean in every update, and remains the policy while it is better.
  3. The distribution is in units of half the action's range per unit of observation. Observations that deviate by more
     than one in the first update are scaled down to one.

A checkpoint holds the payoffs of all updates. To resume, the search is repeated from them without simulating; nothing
is unpickled.

Glossary (lambda candidates, n coordinates searched)
  symbol    name in code                shape         meaning, where (arXiv 1604.00772)
  lambda    num_trajectories                          population size, table 1
  x_k       points                      [lambda, n]   candidates, eq. 5
  f(x_k)    -payoffs                    [lambda]      objective
  m         mean                        [n]           mean of the distribution, eq. 6
  sigma     step_size                                 step size; its initial value is initial_std
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.learners.parameter_search import ParameterSearch, SearchSettings, check_search
from ..common.learners.settings import no_exploration
from ..common.networks import mlp
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from ..options.config import ours, paper

exploration = no_exploration
MAX_DOUBLINGS = 5  # of the population
SMALLEST_STEP = 1e-4  # the search has converged when no coordinate moves by more


@dataclass(frozen=True)
class Config(SearchSettings):
    """Options of CMA-ES."""

    num_trajectories: int = paper(16, "lambda: population of the first search, over all ranks", low=4, high=10**6)
    num_starts: int = ours(4, "episodes of each candidate", low=1, high=10**6)
    initial_std: float = paper(0.5, "sigma: initial standard deviation of every coordinate", above=0, high=1e6)
    covariance: str = paper(
        "full", "covariance matrix; separable: its diagonal, for many parameters", choices=("full", "separable")
    )
    use_observation_normalisation: bool = ours(
        True, "scale down observations that deviate by more than 1 in the first update"
    )
    action_inputs: str | None = ours(
        None, "observations that each action of a linear policy sees, as 0,2;1,3 for two PD controllers; none: all"
    )


def parse_action_inputs(text: str, observation_size: int, action_size: int) -> list[list[int]]:
    """Return the indices of the observations that each action sees, or raise ValueError."""
    try:
        inputs = [[int(index) for index in part.split(",")] for part in text.split(";")]
    except ValueError:
        inputs = []
    if len(inputs) != action_size or any(not 0 <= index < observation_size for part in inputs for index in part):
        raise ValueError(
            f"action_inputs must be {action_size} lists, separated by semicolons, of observations from 0 to "
            f"{observation_size - 1}, separated by commas, got {text!r}"
        )
    return inputs


def free_parameters(config: Config, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the indices [n] of the parameters that are searched; the others stay zero."""
    O, A = sizes[0], sizes[-1]
    if config.action_inputs is None:
        return np.arange(mlp.num_parameters(sizes))
    is_free = np.zeros((O + 1, A), dtype=bool)  # weights, and the biases as the last row
    is_free[O] = True
    for action, inputs in enumerate(parse_action_inputs(config.action_inputs, O, A)):
        is_free[inputs, action] = True
    return np.flatnonzero(is_free)


def check(config: Config, environment, num_ranks: int) -> None:
    """Raise ValueError if the options cannot run."""
    check_search(config, environment, num_ranks)
    sizes = (environment.observation_size, *config.hidden_sizes, environment.action_size)
    if config.action_inputs is not None and config.hidden_sizes:
        raise ValueError("action_inputs needs a linear policy; pass --set hidden_sizes=")
    num = len(free_parameters(config, sizes))
    if config.covariance == "full" and num > 1000:
        raise ValueError(
            f"covariance=full is too slow for {num} parameters; pass --set covariance=separable, or fewer hidden units"
        )


class Search:
    """The searches so far and the present one. Exists on rank 0 alone."""

    def __init__(self, config: Config, num_coordinates: int, seed: int):
        self._config, self._num_coordinates, self._seed = config, num_coordinates, seed
        self.num_restarts = -1
        self.payoffs: list[np.ndarray] = []  # of every update
        self._restart()

    def _restart(self) -> None:
        import cma

        self.num_restarts += 1
        config, rng = self._config, generator(self._seed, "plan", len(self.payoffs))
        start = np.zeros(self._num_coordinates)
        if self.num_restarts > 0:
            start = rng.normal(0.0, config.initial_std, self._num_coordinates)
        options = {
            "popsize": config.num_trajectories * 2 ** min(self.num_restarts, MAX_DOUBLINGS),
            "CMA_diagonal": config.covariance == "separable",
            "randn": lambda *shape: rng.standard_normal(shape),
            "seed": np.nan,  # the package must not touch NumPy's global generator
            "tolx": SMALLEST_STEP,
            "verbose": -9,
        }
        self._strategy = cma.CMAEvolutionStrategy(start, config.initial_std, options)

    @property
    def mean(self) -> np.ndarray:
        return np.array(self._strategy.mean)

    @property
    def step_size(self) -> float:
        return float(self._strategy.sigma)

    def ask(self) -> np.ndarray:
        """Draw the next population, [lambda, n]."""
        self._points = self._strategy.ask()
        return np.array(self._points)

    def tell(self, payoffs: np.ndarray) -> bool:
        """Move the distribution by the payoffs [lambda] of the last population; return whether a new search began."""
        self._strategy.tell(self._points, (-payoffs).tolist())
        self.payoffs.append(payoffs)
        if not self._strategy.stop():
            return False
        self._restart()
        return True

    def repeat(self, payoffs: np.ndarray) -> None:
        """Repeat all updates from their payoffs, one after the other in a flat array."""
        while len(payoffs):
            num = len(self.ask())
            self.tell(payoffs[:num])
            payoffs = payoffs[num:]


class Learner(ParameterSearch):
    """CMA-ES, one update at a time."""

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self._free = free_parameters(config, roller.layer_sizes)
        self._origin = self.theta  # of the first search
        self._search: Any = Search(config, len(self._free), seed) if comm.rank == 0 else None
        self.kept: np.ndarray | None = None  # [P] result of earlier searches

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Measure the present policy, try a population, move the distribution, and return the row for the log."""
        starts, is_first = self.draw_starts(iteration, self.num_starts), self.observation_stats.count == 0
        row = self.measure_centre(starts, is_noted=is_first)
        if is_first:
            self.observation_stats = self.observation_stats.limited()
        mean, points, own = self.comm.on_root(self._ask)
        candidates = np.stack([self._to_policy(point) for point in (*points, mean)])
        if self.kept is not None:
            candidates = np.concatenate([candidates, self.kept[None]])
        payoffs, num_steps = self.score(candidates, np.broadcast_to(starts, (len(candidates), *starts.shape)))
        population = payoffs[: len(points)]
        mean, is_new = self.comm.on_root(lambda: self._tell(population))
        best = candidates[len(points) + np.argmax(payoffs[len(points) :])]  # the mean, or what was kept
        if is_new:
            self.kept = best
        self.theta = self._to_policy(mean) if self.kept is None else best
        row["num_timesteps"] += num_steps
        row["num_episodes"] += len(candidates) * len(starts)
        return row | own | {"candidates_mean": population.mean(), "candidates_best": population.max()}

    def _ask(self) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        search = self._search
        own = {"step_size": search.step_size, "num_restarts": search.num_restarts}
        return search.mean, search.ask(), own

    def _tell(self, payoffs: np.ndarray) -> tuple[np.ndarray, bool]:
        is_new = self._search.tell(payoffs)
        return self._search.mean, is_new

    def _to_policy(self, point: np.ndarray) -> np.ndarray:
        """Return the policy's parameters [P] at a point [n] of the search."""
        coordinates = np.array(self._origin)
        coordinates[self._free] += point
        return self.to_theta(coordinates)

    def state(self) -> State:
        """Return everything a checkpoint must hold, on rank 0."""
        payoffs = [] if self._search is None else self._search.payoffs
        search = {"origin": self._origin, "payoffs": np.concatenate([np.zeros(0), *payoffs])}
        return self.replicated() | {"search": search}

    def replicated(self) -> State:
        """Return the part of the state that is the same on all ranks."""
        kept = np.zeros(0) if self.kept is None else self.kept
        return super().state() | {"kept": {"theta": kept}}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        super().load_state(state)
        self._origin = state["search"]["origin"]
        self.kept = state["kept"]["theta"] if len(state["kept"]["theta"]) else None
        if self._search is not None:
            self._search.repeat(state["search"]["payoffs"])

    def begin_from(self, state: State) -> None:
        """Begin the first search at the policy of the stage before."""
        super().begin_from(state)
        self._origin = self.coordinates
