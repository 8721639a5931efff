"""Twin Delayed Deep Deterministic Policy Gradient (arXiv 1802.09477): replay, two critics, action noise."""

from .td3 import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
