"""Rivals: a way out of local optima for tasks that are paid at their end.

When the trust region of the policy has collapsed, nothing more is to be gained nearby. A rival then begins from other
initial parameters, and both are updated in turn, from the same starts. Whichever has the higher payoff is the policy;
the other is given up when its own trust region has collapsed, and the next rival begins. So the policy has half of all
steps from then on.
"""

from typing import Any

import numpy as np

from ..common.networks import mlp
from ..common.parallel.comm import Comm
from ..common.parallel.seeding import generator
from ..contracts import Roller, State
from .config import Config
from .judged import JudgedLearner

COLLAPSED = 1e-3  # radius, in half ranges of the action


class RivalLearner(JudgedLearner):
    """The adaptive variant with judged steps and rivals."""

    def __init__(self, config: Config, roller: Roller, comm: Comm, seed: int):
        super().__init__(config, roller, comm, seed)
        self._newcomer = super().state()
        self.num_rivals = 0  # that have begun
        self.rival = self._newcomer

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Update the policy and its rival, if it has one, and return the row of the better."""
        row = super().iterate(iteration, total_timesteps)
        if self.num_rivals > 0:
            row = self._update_rival(row, iteration, total_timesteps)
        radius = self.rival["trial"]["radius"] if self.num_rivals > 0 else self.trial.radius
        if radius < COLLAPSED:
            self.begin_rival()
        return {**row, "num_rivals": self.num_rivals}

    def _update_rival(self, row: dict[str, Any], iteration: int, total_timesteps: int) -> dict[str, Any]:
        """Update the rival, put it in the place of the policy if it is better, and return the row of the better."""
        self._exchange()
        other = super().iterate(iteration, total_timesteps)
        is_better = other["is_after_update"] and other["payoff"] > row["payoff"]
        if not is_better:
            self._exchange()
        counts = {name: row[name] + other[name] for name in ("num_timesteps", "num_episodes")}
        return {**(other if is_better else row), **counts}

    def _exchange(self) -> None:
        policy = super().state()
        super().load_state(self.rival)
        self.rival = policy

    def begin_rival(self) -> None:
        """Begin another rival from initial parameters of its own."""
        self.num_rivals += 1
        rng, roller = generator(self.seed, "weights", self.num_rivals), self.roller
        theta = mlp.init_parameters(roller.layer_sizes, rng, self.config.output_gain, roller.style)
        trial = {**self._newcomer["trial"], "theta": theta}
        self.rival = {**self._newcomer, "policy": {"theta": theta}, "trial": trial}

    def state(self) -> State:
        """Return all that a checkpoint must hold."""
        rival = {f"rival_{name}": component for name, component in self.rival.items()}
        return {**super().state(), **rival, "rivals": {"num_rivals": np.array(self.num_rivals)}}

    def load_state(self, state: State) -> None:
        """Continue from a checkpoint."""
        super().load_state(state)
        self.rival = {name: state[f"rival_{name}"] for name in self._newcomer}
        self.num_rivals = int(state["rivals"]["num_rivals"])
