from .td3 import Config, Learner, check, exploration

__all__ = ["Config", "Learner", "check", "exploration"]
