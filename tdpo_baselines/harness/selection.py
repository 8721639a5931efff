"""Choose the best parameters of a run.

From a single start, the payoffs of training are compared. From random starts they would favour easy starts: there the
policy with the best payoff in training since the last evaluation is evaluated without exploration, from the same starts
throughout the run. Evaluations take at most a tenth of the timesteps of training and are not counted. Until the first
one is due, payoffs of training choose.
"""

from typing import NamedTuple

import numpy as np

from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Component, Roller

NUM_STARTS = 20
TRAINING_PER_EVALUATION = 10  # timesteps


class Candidate(NamedTuple):
    """Parameters [P], their payoff, and the number of updates before them."""

    payoff: float
    iteration: int
    theta: np.ndarray


class Selection:
    """The best parameters so far, and the candidate that is compared with them next."""

    def __init__(self, comm: Comm, seed: int, theta: np.ndarray):
        self._comm, self._seed = comm, seed
        self.num_timesteps = 0  # of evaluations
        self.restart(theta)

    def restart(self, theta: np.ndarray) -> None:
        """Forget the best parameters and the candidate: payoffs of two stages cannot be compared."""
        self.best = self._next = Candidate(-np.inf, 0, theta.copy())
        self._last_total = 0  # timesteps of training before the last evaluation; 0: none yet

    @property
    def has_best(self) -> bool:
        """Return whether any parameters have been chosen."""
        return self.best.payoff > -np.inf

    def state(self) -> Component:
        """Return the values that a checkpoint must hold."""
        following = {f"next_{name}": value for name, value in self._next._asdict().items()}
        counters = {"num_timesteps": self.num_timesteps, "last_total": self._last_total}
        return {**self.best._asdict(), **following, **counters}

    def load_state(self, state: Component) -> None:
        """Continue from a checkpoint."""
        self.best, self._next = (
            Candidate(state[f"{head}payoff"].item(), state[f"{head}iteration"].item(), state[f"{head}theta"])
            for head in ("", "next_")
        )
        self.num_timesteps, self._last_total = state["num_timesteps"].item(), state["last_total"].item()

    def propose(self, payoff: float, iteration: int, theta: np.ndarray) -> None:
        """Note parameters with their payoff in training."""
        if payoff > self._next.payoff:
            self._next = Candidate(payoff, iteration, theta)

    def choose(self, roller: Roller, total_timesteps: int) -> None:
        """Compare the candidate with the best parameters, if an evaluation is due. All ranks call this together."""
        if self._next.payoff == -np.inf:
            return
        cost = NUM_STARTS * roller.horizon if roller.start_size > 0 else 0
        if cost == 0:
            self._compare(self._next.payoff)
        elif (self.num_timesteps + cost) * TRAINING_PER_EVALUATION <= total_timesteps:
            if self._last_total == 0:
                self.best = self.best._replace(payoff=-np.inf)  # it has a payoff of training
            self._last_total = total_timesteps
            self._compare(self._evaluate(roller))
        elif self._last_total == 0:
            self.best = self._next

    def _compare(self, payoff: float) -> None:
        """Choose between the best parameters and the candidate, which has this payoff."""
        if payoff > self.best.payoff:
            self.best = self._next._replace(payoff=payoff)
        self._next = self._next._replace(payoff=-np.inf)

    def _evaluate(self, roller: Roller) -> float:
        """Return the mean payoff of the candidate from the fixed starts; count the timesteps."""
        theta = self._comm.broadcast(self._next.theta)
        starts = generator(self._seed, "selection").random((NUM_STARTS, roller.start_size))
        states = roller.start_states(starts[self._comm.share(NUM_STARTS)])
        rollouts = roller.rollouts(theta, states, num_recorded=0)
        columns = np.stack([rollouts.discounted_returns, rollouts.lengths], axis=1)
        returns, lengths = self._comm.gather(columns, NUM_STARTS).T
        self.num_timesteps += int(lengths.sum())
        return float(returns.mean() / (roller.gamma ** np.arange(roller.horizon)).sum())

    def __str__(self) -> str:
        if not self.has_best:
            return ""
        cost = f" ({self.num_timesteps} more timesteps to choose it)" if self.num_timesteps else ""
        return f", best payoff {self.best.payoff:.6g}{cost}"
