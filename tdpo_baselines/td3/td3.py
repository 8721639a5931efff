"""Twin Delayed Deep Deterministic Policy Gradient (Fujimoto et al. 2018, arXiv 1802.09477).

Differences from the paper
  1. Updates come in rounds: some steps of every stream, then some updates; see common/off_policy.py.
  2. Several streams, each with its part of the replay, share every minibatch; gradients are their mean.
  3. A time limit is not an end: only what the environment itself ended has no future.
  4. Exploration noise may be coloured, and the actor's output linear.

Formulas are in common/dpg.py, the loop in common/off_policy.py; TD3 is what they do with these tricks: targets
are the least of two critics' values, of actions with clipped noise; the actor and the targets change with every
second update of the critics.
"""

from dataclasses import dataclass

from ..common.learners.dpg import Tricks
from ..common.learners.replay_learner import OffPolicyLearner, OffPolicySettings, check_off_policy, coloured_exploration
from ..common.parallel.comm import Comm
from ..harness.config import option


@dataclass(frozen=True)
class Config(OffPolicySettings):
    policy_delay: int = option(2, "updates of the critics per update of the actor (paper)", low=1, high=10**6)
    target_noise_std: float = option(0.2, "noise on the targets' actions (paper)", low=0, high=1e3)
    target_noise_clip: float = option(0.5, "limit of that noise (paper)", low=0, high=1e3)


def check(config: Config, environment, num_ranks: int) -> None:
    check_off_policy(config, environment, num_ranks)


exploration = coloured_exploration


class Learner(OffPolicyLearner):
    def __init__(self, config: Config, roller, comm: Comm, seed: int):
        tricks = Tricks(2, config.policy_delay, config.target_noise_std, config.target_noise_clip)
        super().__init__(config, tricks, roller, comm, seed)
