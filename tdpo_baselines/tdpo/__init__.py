"""Truly Deterministic Policy Optimization (arXiv 2205.15379)."""

from .config import Config, check
from .tdpo import Learner, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
