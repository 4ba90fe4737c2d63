"""What graphs carry besides plain edges, and how a batch of them keeps it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psgnn.errors import InputError
from psgnn.graph import Graph, GraphBatch
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
