"""Proximal Policy Optimization (arXiv 1707.06347): noisy actions, clipped surrogate, Adam."""

from .ppo1 import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
