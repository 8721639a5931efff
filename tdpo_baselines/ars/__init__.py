from .ars import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
