"""The notebook runs from its first cell to its last."""

import nbformat
import pytest
from nbclient import NotebookClient
from programs import ROOT, mpi_environment

NOTEBOOK = ROOT / "examples/quickstart.ipynb"


@pytest.mark.slow
def test_notebook_trains_evaluates_plots_and_films(tmp_path, monkeypatch):
    for name, value in mpi_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    printed = "".join(output.get("text", "") for output in outputs)
    assert "finished: " in printed and "band_share" in printed
    assert "make_spring-" in outputs[-2]["data"]["text/plain"] and "array" in outputs[-1]["data"]["text/plain"]
    assert not list(tmp_path.iterdir())


def test_notebook_is_stored_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells) and len(notebook.cells) <= 15
