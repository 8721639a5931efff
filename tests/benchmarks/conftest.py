"""Fixtures for the benchmarks: their modules. Tests run them at a tiny scale and never look at the times."""

import sys
from importlib import import_module

import pytest
from programs import ROOT


@pytest.fixture
def benchmark(monkeypatch):
    """Return a function that imports a benchmark by its name."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return import_module
