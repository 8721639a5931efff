"""Truly Deterministic Policy Optimization (arXiv 2205.15379): perturbs one action of a trajectory at a time."""

from .config import Config, check
from .rivals import RivalLearner
from .search import SearchLearner
from .tdpo import PaperLearner, exploration


def Learner(config, roller, comm, seed):
    """Return the learner of the config's variant, the adaptive one's according to when the task pays."""
    adaptive = RivalLearner if roller.is_horizon_terminal else SearchLearner
    return (adaptive if config.is_adaptive else PaperLearner)(config, roller, comm, seed)


__all__ = ["Config", "Learner", "check", "exploration"]
