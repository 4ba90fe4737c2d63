"""The documentation is true: its examples run, its tables are those of the results."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import networkx as nx
import pytest

import psgnn
from psgnn import cli

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def own_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the examples call my-edges.csv."""
    monkeypatch.chdir(tmp_path)
    graph = nx.connected_caveman_graph(8, 6)
    (tmp_path / "my-edges.csv").write_text("".join(f"n{u},n{v}\n" for u, v in graph.edges))


@pytest.mark.parametrize("code", blocks("README.md", "python"))
def test_python_examples_of_the_readme_run(code: str, own_graph: None) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize(
    "command", [line for block in blocks("README.md", "console") for line in block.splitlines()]
)
def test_commands_of_the_readme_run(
    command: str, own_graph: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    words = shlex.split(command, comments=True)
    if "email" in words:
        request.getfixturevalue("shared_data")
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as exit_info:
        cli.main()
    assert not exit_info.value.code


def test_tables_are_those_of_the_results() -> None:
    command = [sys.executable, "docs/build.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_public_names_are_those_of_the_contract() -> None:
    for name in psgnn.__all__:
        assert getattr(psgnn, name) is not None
    contract = {
        "load_dataset", "read_graph", "shortest_distances", "select_anchors", "anchor_diagnostics",
        "LinkPrediction", "PairClassification", "build_model", "fit", "load",
    }  # fmt: skip
    assert contract <= set(psgnn.__all__)
    assert set(psgnn._MODULE_OF) == set(psgnn.__all__) - {"__version__"}
    assert dir(psgnn) == sorted(psgnn.__all__)
    assert psgnn.__version__ == version("psgnn")


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z ]+):", makefile, re.MULTILINE))
    known = {word for target in targets for word in target.split()}
    assert set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text())) <= known
