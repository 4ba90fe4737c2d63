"""What graphs carry besides plain edges, and how a batch of them keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.errors import InputError
from psgnn.graph import Graph, GraphBatch, read_graph
from psgnn.graph._kinds import Kinds


@pytest.fixture
def messages() -> Graph:
    """Directed, with strengths: 0 -> 1, 1 -> 0, 1 -> 2, 3 -> 0."""
    arcs = np.array([[0, 1, 1, 3], [1, 0, 2, 0]])
    plain = Graph.from_edges(arcs, 4)
    return replace(plain, arcs=arcs, strengths=np.array([5.0, 7.0, 1.0, 2.0]))


def kinds_of(*graphs: Graph) -> Kinds:
    kinds = GraphBatch.of(graphs).kinds
    assert kinds is not None
    return kinds


def test_a_plain_graph_has_no_kind() -> None:
    plain = Graph.from_edges([[0, 1], [1, 2]])
    assert plain.kind == frozenset()
    assert not plain.directed
    assert GraphBatch.of([plain, plain]).kinds is None


def test_a_directed_graph_counts_its_arcs(messages: Graph) -> None:
    assert messages.directed
    assert messages.kind == {"directed", "strengths"}
    assert messages.num_edges == 4
    assert messages.adjacency.num_edges == 3
    assert messages.edges.tolist() == [[0, 1, 1, 3], [1, 0, 2, 0]]


def test_arcs_go_along_and_against_the_edges(messages: Graph) -> None:
    kinds = kinds_of(messages)
    dense = np.zeros((4, 4))
    dense[tuple(messages.edges)] = messages.strengths
    for arcs, matrix in ((kinds.outgoing, dense), (kinds.incoming, dense.T)):
        assert messages.strengths is not None
        weights = kinds.along(messages.strengths, arcs)
        for node in range(4):
            entries = slice(arcs.indptr[node], arcs.indptr[node + 1])
            assert arcs.indices[entries].tolist() == np.flatnonzero(matrix[node]).tolist()
            assert weights[entries].tolist() == matrix[node][matrix[node] > 0].tolist()


def test_opposite_arcs_add_up_in_the_adjacency(messages: Graph) -> None:
    kinds = kinds_of(messages)
    assert messages.strengths is not None
    weights = kinds.of_adjacency(messages.strengths, messages.adjacency)
    found = dict(
        zip(zip(*messages.adjacency.edge_index().tolist(), strict=True), weights.tolist(), strict=True)
    )
    assert found == {(0, 1): 12, (1, 0): 12, (1, 2): 1, (2, 1): 1, (0, 3): 2, (3, 0): 2}


def test_a_batch_shifts_nodes_and_joins_columns(messages: Graph) -> None:
    kinds = kinds_of(messages, messages)
    assert kinds.edges[:, 4:].tolist() == (messages.edges + 4).tolist()
    assert kinds.strengths is not None
    assert kinds.strengths.tolist() == [5, 7, 1, 2] * 2


def test_kept_edges_keep_their_columns(messages: Graph) -> None:
    kinds = kinds_of(messages).keep(np.array([True, False, False, True]))
    assert kinds.edges.tolist() == [[0, 3], [1, 0]]
    assert kinds.strengths is not None
    assert kinds.strengths.tolist() == [5, 2]
    assert kinds.outgoing.degrees.tolist() == [1, 0, 0, 1]


def test_graphs_of_two_kinds_are_refused(messages: Graph) -> None:
    with pytest.raises(InputError, match="directed and strengths, plain"):
        GraphBatch.of([messages, Graph.from_edges([[0], [1]])])


@pytest.mark.parametrize("lengths", [False, True])
def test_distances_in_a_directed_graph_follow_its_links(lengths: bool, run: Command) -> None:
    rng = np.random.default_rng(5)
    rows = [
        (f"n{u}", f"n{v}", rng.integers(1, 9)) for u, v in rng.integers(0, 40, (90, 2)).tolist() if u != v
    ]
    table = pl.DataFrame(rows, schema=["source", "target", "km"], orient="row")
    how: dict[str, Any] = {"weight": "km", "weight_is": "length"} if lengths else {}
    graph = read_graph(table, directed=True, **how)
    truth = nx.DiGraph()
    for u, v, km in rows:
        known = truth.get_edge_data(u, v, {"km": np.inf})["km"]
        truth.add_edge(u, v, km=min(known, km))
    wanted = np.full((graph.num_nodes,) * 2, -1.0)
    place = {name: v for v, name in enumerate(graph.names)}
    for u, row in nx.all_pairs_dijkstra_path_length(truth, weight="km" if lengths else None):
        for v, far in row.items():
            wanted[place[u], place[v]] = far
    assert ((wanted < 0) != (wanted.T < 0)).any()  # some ways lead there, and not back
    assert np.array_equal(psgnn.shortest_distances(graph), wanted)
    some = [3, 11]
    assert np.array_equal(psgnn.shortest_distances(graph, some, reverse=True), wanted.T[:, some])
    near = psgnn.shortest_distances(graph, some, cutoff=4)
    assert np.array_equal(near, np.where(wanted <= 4, wanted, -1)[:, some])

    table.write_csv("g.csv")
    options = ["--directed", *(("--weight", "km", "--weight-is", "length") if lengths else ())]
    Path("pairs.csv").write_text("n1,n2\nn2,n1\n")
    code, out, _ = run("distances", "g.csv", *options, "--pairs", "pairs.csv", "--json", "--quiet")
    assert code == 0
    found = [row["length" if lengths else "hops"] for row in json.loads(out)["rows"]]
    ends = place["n1"], place["n2"]
    assert found == [None if far < 0 else far for far in (wanted[ends], wanted[ends[::-1]])]
    command = ["distances", "g.csv", *options, "--anchors", "2", "--out", "far.csv"]
    assert run(*command)[0] == 0
    columns = pl.read_csv("far.csv")
    assert columns["node"].to_list() == graph.names
    assert [name.split("_")[0] for name in columns.columns[1:]] == ["to", "to", "from", "from"]
    for name in columns.columns[1:]:
        way, anchor = name.split("_")
        line = wanted[:, place[anchor]] if way == "to" else wanted[place[anchor]]
        assert np.array_equal(columns[name].to_numpy(), line)
