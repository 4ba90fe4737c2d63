"""The example notebooks run from top to bottom, and are kept without outputs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOKS = ["own-graph.ipynb", "quick-start.ipynb"]


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_every_notebook_is_tested() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.ipynb")) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_without_outputs(name: str) -> None:
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    nbformat.validate(notebook)
    assert not outputs_of(notebook)
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize(
    ("name", "shown", "text"),
    [
        ("quick-start.ipynb", ["Anchor diagnostics", "psgnn (best), link task"], "1.0"),
        ("own-graph.ipynb", ["psgnn (best), link task"], "120 nodes, 805 edges"),
    ],
)
def test_notebooks_run(name: str, shown: list[str], text: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    folder = tmp_path / "examples"
    notebook = nbformat.read(folder / name, as_version=4)
    # One core for each test, as elsewhere in the suite.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path / "ipython")}
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    outputs = outputs_of(notebook)
    assert not [output for output in outputs if output.output_type == "error"]
    pages = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    for title in shown:
        assert title in pages
    texts = [output.get("data", {}).get("text/plain", "") for output in outputs]
    assert any(text in found for found in texts)
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == sum(
        cell.source.splitlines()[-1].startswith("plot.")
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    if name == "own-graph.ipynb":
        assert (folder / "report.html").stat().st_size > 1e6
        count = next(int(found.strip("'").split()[0]) for found in texts if "forgotten links" in found)
        assert count >= 10
