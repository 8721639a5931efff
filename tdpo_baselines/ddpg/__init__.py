"""Deep Deterministic Policy Gradient (arXiv 1509.02971): replay, one critic, action or parameter noise."""

from .ddpg import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
