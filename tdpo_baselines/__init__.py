"""Truly Deterministic Policy Optimization and its rivals, over MPI."""

__version__ = "0.1.0"
