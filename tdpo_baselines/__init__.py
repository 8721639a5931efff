"""Truly Deterministic Policy Optimization and its rivals, over MPI. Start with `python -m tdpo_baselines.run --help`."""

__version__ = "0.1.0"
