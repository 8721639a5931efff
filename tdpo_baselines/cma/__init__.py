"""CMA-ES (arXiv 1604.00772): a population of parameters; for policies of few parameters."""

from .cma import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
