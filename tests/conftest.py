"""Graphs and data that many tests share."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from psgnn import cli
from psgnn.graph._graph import Adjacency
from psgnn_lab import commands

Command = Callable[..., tuple[int, str, str]]
LAB_COMMANDS = [command.name for command in commands.app.registered_commands]

# Tests run side by side, one a core; more threads in each would only wait for one another.
torch.set_num_threads(1)

# Whether a kernel is compiled depends on what ran before; tests of notes must not.
logging.getLogger("psgnn.kernels").setLevel(logging.WARNING)

hypothesis.settings.register_profile("psgnn", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("psgnn")


def adjacency_of(graph: nx.Graph) -> Adjacency:
    """The adjacency of a networkx graph whose nodes are 0..N-1."""
    edges = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
    return Adjacency.from_edges(edges[:, 0], edges[:, 1], graph.number_of_nodes())


def data_of(graph: nx.Graph) -> Data:
    """A PyG Data of a networkx graph, nodes numbered in its own order."""
    adjacency = adjacency_of(nx.convert_node_labels_to_integers(graph))
    return Data(edge_index=torch.from_numpy(adjacency.edge_index()), num_nodes=adjacency.num_nodes)


@st.composite
def random_graphs(draw: st.DrawFn, min_nodes: int = 1, max_nodes: int = 40) -> nx.Graph:
    """Graphs of every density, often disconnected, with isolated nodes."""
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    density = draw(st.sampled_from([0.0, 0.02, 0.05, 0.1, 0.3, 0.9]))
    return nx.gnp_random_graph(num_nodes, density, seed=draw(st.integers(0, 10_000)))


@pytest.fixture(autouse=True)
def _unchanged_log() -> Iterator[None]:
    """Commands send the notes of the package elsewhere; the next test gets them as usual."""
    yield
    log = logging.getLogger("psgnn")
    log.handlers, log.propagate = [], True
    log.setLevel(logging.NOTSET)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run ``psgnn ARGS``, or ``psgnn-lab ARGS`` for its commands, in an empty folder; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> tuple[int, str, str]:
        program = "psgnn-lab" if args and args[0] in LAB_COMMANDS else "psgnn"
        monkeypatch.setattr(sys, "argv", [program, *map(str, args)])
        with pytest.raises(SystemExit) as exit_info:
            (commands if program == "psgnn-lab" else cli).main()
        captured = capsys.readouterr()
        return int(exit_info.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real datasets."""
    folder = os.environ.get("PSGNN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("PSGNN_DATA does not name a folder with the real datasets")
    return Path(folder).resolve()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
