"""Fixtures for the scripts that make results: their smallest scale, and the pictures that they write."""

from importlib import import_module

import pytest

from run_scripts import results

PNG = b"\x89PNG"


@pytest.fixture
def smoke(tmp_path):
    """Return a function that makes a result at the scale smoke with one seed and returns its folder."""

    def make(name, *arguments):
        result = import_module(f"run_scripts.{name}").RESULT
        own = ["--scale", "smoke", "--seeds", "1", "--runs", str(tmp_path / name)]
        assert results.main(result, [*own, *arguments]) == 0
        return tmp_path / name

    return make


@pytest.fixture
def pictures_in():
    """Return a function that lists the pictures of a folder; each must be a PNG file."""

    def list_pictures(folder):
        paths = sorted(folder.glob("*.png"))
        assert all(path.read_bytes().startswith(PNG) for path in paths)
        return [path.name for path in paths]

    return list_pictures


@pytest.fixture
def cells_of():
    """Return a function that reads the cells of a Markdown table, without its header."""

    def read_cells(path):
        return [line.strip("| \n").split(" | ") for line in path.read_text().splitlines()[2:]]

    return read_cells
