from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import adjacency_of, data_of, random_graphs
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, GraphBatch
from psgnn.kernels._csr import edges_below, in_order, is_symmetric, mirror


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=60))
def test_any_edge_list_gives_the_simple_undirected_graph(edges: list[tuple[int, int]]) -> None:
    rows, cols = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    adjacency = Adjacency.from_edges(rows, cols, 9)
    expected = nx.empty_graph(9)
    expected.add_edges_from((u, v) for u, v in edges if u != v)
    assert adjacency.num_edges == expected.number_of_edges()
    for v in range(9):
        row = adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]]
        assert row.tolist() == sorted(expected[v])
    assert adjacency.edges().T.tolist() == sorted(sorted(edge) for edge in expected.edges)


@given(random_graphs())
def test_edge_index_goes_both_ways_and_comes_back(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    edge_index = adjacency.edge_index()
    assert edge_index.shape == (2, 2 * graph.number_of_edges())
    again = Adjacency.from_edge_index(edge_index[:, edge_index[0] < edge_index[1]], graph.number_of_nodes())
    assert np.array_equal(again.indptr, adjacency.indptr)
    assert np.array_equal(again.indices, adjacency.indices)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_edges_that_come_sorted_are_a_graph_only_if_both_directions_are_there(
    edges: set[tuple[int, int]],
) -> None:
    edges = {(u, v) for u, v in edges if u != v}
    rows, cols = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2).T.copy()
    assert in_order(rows, cols)
    indptr = np.searchsorted(rows, np.arange(7))
    assert is_symmetric(indptr, cols.astype(np.int32)) == all((v, u) in edges for u, v in edges)
    adjacency = Adjacency.from_edges(rows, cols, 6)
    assert set(map(tuple, adjacency.edges().T.tolist())) == {(min(edge), max(edge)) for edge in edges}


@pytest.mark.parametrize("edges", [[(0, 1), (0, 1)], [(1, 0), (0, 1)], [(0, 2), (0, 1)], [(0, 1), (1, 1)]])
def test_repeats_loops_and_other_orders_are_no_csr(edges: list[tuple[int, int]]) -> None:
    assert not in_order(*np.array(edges).T.copy())


@given(random_graphs())
def test_a_graph_is_its_half_mirrored(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    u, v = edges_below(adjacency.indptr, adjacency.indices)
    assert list(zip(v, u, strict=True)) == sorted((max(edge), min(edge)) for edge in graph.edges)
    indptr, indices = mirror(np.searchsorted(v, np.arange(len(graph) + 1)), u.astype(np.int32))
    assert np.array_equal(indptr, adjacency.indptr)
    assert np.array_equal(indices, adjacency.indices)


def test_union_shifts_each_graph_to_its_own_nodes() -> None:
    union = GraphBatch.of([data_of(nx.path_graph(3)), data_of(nx.empty_graph(2)), data_of(nx.cycle_graph(3))])
    assert union.ptr.tolist() == [0, 3, 5, 8]
    assert union.sizes.tolist() == [3, 2, 3]
    assert union.graph_of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert union.adjacency.edges().T.tolist() == [[0, 1], [1, 2], [5, 6], [5, 7], [6, 7]]


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (np.array([[0, 7], [1, 1]]), "edges name nodes 0..7, but the graph has 3 nodes"),
        (torch.tensor([[0, 7], [1, 1]]), "edges name nodes 0..7, but the graph has 3 nodes"),
        (torch.tensor([[0, -1], [1, 1]]), "edges name nodes -1..1"),
        (
            torch.tensor([[0.0], [1.0]]),
            r"must be integers of shape \[2, E\], found float32 of shape \[2, 1\]",
        ),
        (torch.tensor([0, 1]), r"found int64 of shape \[2\]"),
    ],
)
def test_edges_that_do_not_fit_are_refused(edge_index: npt.ArrayLike, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Adjacency.from_edge_index(edge_index, 3)


def test_no_graphs_are_refused() -> None:
    with pytest.raises(InputError, match="no graph was given"):
        GraphBatch.of([])


def test_an_edge_beyond_its_own_graph_does_not_land_in_the_next() -> None:
    wrong = data_of(nx.path_graph(3))
    wrong.edge_index[0, 0] = 4
    with pytest.raises(InputError, match="but the graph has 3 nodes"):
        GraphBatch.of([wrong, data_of(nx.path_graph(3))])
