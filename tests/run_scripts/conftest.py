"""Fixtures for the scripts that publish results: their modules, and experiments small enough for a test."""

import sys
from dataclasses import replace
from importlib import import_module

import pytest
from programs import ROOT

PNG = b"\x89PNG"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script by its name."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "run_scripts"), *sys.path])
    return import_module


@pytest.fixture
def shrink():
    """Return a function that makes an experiment short: a few seeds, few timesteps, a small network."""

    def shrink_one(experiment, seeds, num_timesteps, *options):
        arguments = (*experiment.arguments, "--set", "hidden_sizes=8", *options)
        return replace(experiment, seeds=seeds, num_timesteps=num_timesteps, arguments=arguments)

    return shrink_one


@pytest.fixture
def folders(tmp_path):
    """Return folders for runs and for the report."""
    out = tmp_path / "out"
    out.mkdir()
    return tmp_path / "runs", out


@pytest.fixture
def pictures_in():
    """Return a function that lists the pictures of a folder; each must be a PNG file."""

    def list_pictures(folder):
        paths = sorted(folder.glob("*.png"))
        assert all(path.read_bytes().startswith(PNG) for path in paths)
        return [path.name for path in paths]

    return list_pictures
