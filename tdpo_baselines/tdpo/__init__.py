"""Truly Deterministic Policy Optimization (arXiv 2205.15379): perturbs one action of a trajectory at a time."""

from .config import Config, check
from .rivals import RivalLearner
from .tdpo import PaperLearner, exploration


def Learner(config, roller, comm, seed):
    """Return the learner of the config's variant."""
    return (RivalLearner if config.is_adaptive else PaperLearner)(config, roller, comm, seed)


__all__ = ["Config", "Learner", "check", "exploration"]
