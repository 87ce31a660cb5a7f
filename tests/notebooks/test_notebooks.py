"""Every notebook runs from top to bottom and is committed without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


LONG = {"04_compare_methods"}  # trains a grid


def marked(path):
    return pytest.param(path, marks=pytest.mark.slow if path.stem in LONG else (), id=path.stem)


@pytest.mark.parametrize("path", map(marked, NOTEBOOKS))
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=500, resources={"metadata": {"path": str(path.parent)}}).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path):
    cells = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") for cell in cells if cell.cell_type == "code")
