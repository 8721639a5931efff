"""Augmented Random Search (arXiv 1803.07055) and OpenAI-ES: random directions in the space of the parameters."""

from .ars import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
