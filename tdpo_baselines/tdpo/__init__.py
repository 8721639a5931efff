"""Truly Deterministic Policy Optimization (arXiv 2205.15379): perturbs one action of a trajectory at a time."""

from .adaptive import AdaptiveLearner
from .config import Config, check
from .tdpo import PaperLearner, exploration


def Learner(config, roller, comm, seed):
    """Return the learner of the config's variant."""
    return (AdaptiveLearner if config.is_adaptive else PaperLearner)(config, roller, comm, seed)


__all__ = ["Config", "Learner", "check", "exploration"]
