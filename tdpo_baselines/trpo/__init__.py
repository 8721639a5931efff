"""Trust Region Policy Optimization (arXiv 1502.05477): noisy actions, conjugate gradient, line search."""

from .trpo import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
