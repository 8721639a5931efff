"""A learner of two parameters that needs no environment, and trainings of it."""

from types import SimpleNamespace

import numpy as np

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.harness.stop_request import StopRequest
from tdpo_baselines.harness.training import Training
from tdpo_baselines.options.budget import Budget
from tdpo_baselines.storage.logger import Console
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder

TIMESTEPS = 10  # of an iteration


class ToyLearner:
    """Parameters that move by `rate` per update towards 2.5 and beyond; the payoff is the distance, negated."""

    replay_bytes = 0
    roller = SimpleNamespace(start_size=0)  # a single start: the payoffs of training choose the best parameters

    def __init__(self, rate: float = 1.0):
        self.theta, self.rate, self.count = np.zeros(2), rate, 0

    def iterate(self, iteration: int, total_timesteps: int) -> dict[str, float]:
        """Take a step."""
        payoff = -abs(float(self.theta[0]) - 2.5)
        self.theta, self.count = self.theta + self.rate, self.count + 1
        returns = {"return_mean": 20 * payoff, "discounted_return_mean": 10 * payoff, "payoff": payoff}
        return {"num_timesteps": TIMESTEPS, "num_episodes": 1, **returns, "count": self.count}

    def state(self) -> dict:
        """Return everything a checkpoint must hold."""
        return {"policy": {"theta": self.theta}, "counter": {"count": np.asarray(self.count)}}

    replicated = state

    def load_state(self, state: dict) -> None:
        """Continue from a checkpoint."""
        self.begin_from(state)
        self.count = int(state["counter"]["count"])

    def begin_from(self, state: dict) -> None:
        """Take over the policy."""
        self.theta = state["policy"]["theta"]


def toy_config(**changes) -> RunConfig:
    """Return the config of a run of the toy learner."""
    return RunConfig(
        **{"algorithm": "toy", "environment": "nowhere", "seed": 0, "options": {}, "env_options": {}} | changes
    )


def toy_training(
    path,
    *learners,
    num_iterations=6,
    is_resumed=False,
    is_quiet=True,
    max_walltime=None,
    checkpoint_every=2,
    config=None,
    stop=None,
    comm=None,
    track=(),
) -> Training:
    """Return a training that is ready to run, of one new toy learner or of the given ones as stages."""
    folder, comm, config = RunFolder(path), comm or Comm(), config or toy_config()
    folder.open(config, is_resumed=is_resumed)
    budget = Budget(10**9, num_iterations, checkpoint_every, checkpoint_minutes=1e9, max_walltime=max_walltime)
    makers = [(lambda learner=learner: learner) for learner in learners or (ToyLearner(),)]
    training = Training(makers, config, folder, comm, budget, Console(is_quiet), stop or StopRequest(), track)
    training.prepare(is_resumed=is_resumed)
    return training
