"""Shortest path lengths against scipy's, on graphs of every shape that decides how they are searched."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from conftest import adjacency_of, data_of, random_graphs
from psgnn import Graph, shortest_distances
from psgnn.distances import DistanceOracle
from psgnn.distances._lengths import LengthSearch
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, GraphBatch
from psgnn.kernels._compile import kernel_threads

Array = npt.NDArray[np.float64]


def scipy_lengths(
    edges: npt.NDArray[np.int64],
    lengths: Array,
    num_nodes: int,
    sources: npt.ArrayLike,
    directed: bool = False,
) -> Array:
    """Float64 ``[N, S]``, infinite where there is no path; of parallel edges the shortest counts."""
    order = np.argsort(-lengths, kind="stable")
    (tails, heads), lengths = edges[:, order], lengths[order]
    table = {}
    for u, v, length in zip(tails.tolist(), heads.tolist(), lengths.tolist(), strict=True):
        if u != v:
            table[u, v] = length
            if not directed:
                table[v, u] = length
    keys = np.array(list(table), np.int64).reshape(-1, 2).T
    matrix = coo_array((list(table.values()), tuple(keys)), shape=(num_nodes, num_nodes)).tocsr()
    found: Array = dijkstra(matrix, directed=True, indices=np.asarray(sources, np.int64))
    return found.reshape(-1, num_nodes).T


def rounded(lengths: Array) -> npt.NDArray[np.float32]:
    """As psgnn gives them."""
    return np.where(np.isinf(lengths), -1, lengths).astype(np.float32)


def assert_equal_but_for_a_bit(found: npt.NDArray[np.float32], expected: Array) -> None:
    """Float32 columns are float64 sums, whose additions may have another order."""
    assert found.dtype == np.float32
    assert np.array_equal(found < 0, np.isinf(expected))
    wanted = rounded(expected)
    assert (np.abs(found - wanted) <= np.spacing(np.abs(wanted))).all()


def subdivided(graph: nx.Graph, seed: int = 0) -> nx.Graph:
    """Bends on every edge and dead ends at some nodes: what is eliminated before a search."""
    rng = np.random.default_rng(seed)
    roads = nx.Graph()
    roads.add_nodes_from(graph)
    for u, v in graph.edges:
        bends = range(len(roads), len(roads) + int(rng.integers(0, 6)))
        nx.add_path(roads, [u, *bends, v])
    for v in list(roads):
        if rng.random() < 0.3:
            nx.add_path(roads, [v, *range(len(roads), len(roads) + int(rng.integers(1, 4)))])
    return nx.convert_node_labels_to_integers(roads)


GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(13, 17))
SHAPES = {
    "path": nx.path_graph(3000),
    "cycle": nx.cycle_graph(301),
    "tree": nx.random_labeled_tree(400, seed=1),
    "grid": GRID,
    "roads": subdivided(GRID),
    "complete": nx.complete_graph(70),
    "star": nx.star_graph(100),
    "theta": nx.Graph([(0, 1), (1, 2), (0, 3), (3, 2), (0, 4), (4, 2), (0, 2)]),
    "lollipop": nx.lollipop_graph(5, 40),
    "power law": nx.barabasi_albert_graph(300, 2, seed=1),
    "islands": nx.disjoint_union_all([nx.path_graph(90), nx.cycle_graph(20), nx.empty_graph(5), GRID]),
    "edgeless": nx.empty_graph(7),
}
KINDS = {
    "real": lambda rng, size: rng.uniform(0.1, 3, size),
    "ties": lambda rng, size: rng.integers(1, 4, size).astype(float),
    "equal": lambda rng, size: np.ones(size),
    "decimal": lambda rng, size: rng.integers(1, 9, size) / 10,
    "huge ratio": lambda rng, size: 10.0 ** rng.uniform(-9, 9, size),
    "six decades": lambda rng, size: 10.0 ** rng.uniform(0, 6, size),
    "motorways": lambda rng, size: np.where(rng.random(size) < 0.1, 1000, rng.uniform(0.01, 1, size)),
    "one very long": lambda rng, size: np.r_[1e9, rng.uniform(0.1, 3, size)][:size],
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_those_of_scipy(name: str, kind: str) -> None:
    adjacency = adjacency_of(SHAPES[name])
    edges, num_nodes = adjacency.edges(), adjacency.num_nodes
    rng = np.random.default_rng(0)
    lengths, sources = KINDS[kind](rng, edges.shape[1]), rng.integers(0, num_nodes, 21)
    found = shortest_distances(Graph(adjacency), sources, lengths=lengths)
    expected = scipy_lengths(edges, lengths, num_nodes, sources)
    assert_equal_but_for_a_bit(found, expected)
    if kind in ("ties", "equal"):  # sums of integers are exact
        assert np.array_equal(found, rounded(expected))


@given(random_graphs(), st.sampled_from(sorted(KINDS)), st.integers(0, 1000))
def test_any_graph_agrees_with_scipy(graph: nx.Graph, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    roads = subdivided(graph, seed) if seed % 2 else graph
    edges, num_nodes = adjacency_of(roads).edges(), roads.number_of_nodes()
    lengths = KINDS[kind](rng, edges.shape[1])
    found = shortest_distances(edges, num_nodes=num_nodes, lengths=lengths)
    assert_equal_but_for_a_bit(found, scipy_lengths(edges, lengths, num_nodes, range(num_nodes)))


@given(st.integers(1, 30), st.integers(0, 120), st.integers(0, 1000), st.booleans())
def test_parallel_edges_and_self_loops(num_nodes: int, num_edges: int, seed: int, directed: bool) -> None:
    rng = np.random.default_rng(seed)
    edges, lengths = rng.integers(0, num_nodes, (2, num_edges)), rng.uniform(0.1, 3, num_edges)
    expected = scipy_lengths(edges, lengths, num_nodes, range(num_nodes), directed)
    if directed:
        adjacency = Adjacency.from_edge_index(edges, num_nodes)
        found = LengthSearch(adjacency, edges, lengths, directed=True).columns(np.arange(num_nodes))
        assert np.array_equal(found, rounded(expected))  # nothing is eliminated: the same float64 sums
    else:
        found = shortest_distances(edges, num_nodes=num_nodes, lengths=lengths)
        assert_equal_but_for_a_bit(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_directed_graph_has_the_bits_of_scipy(kind: str) -> None:
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 500, (2, 1500))
    lengths = KINDS[kind](rng, 1500)
    search = LengthSearch(Adjacency.from_edge_index(edges, 500), edges, lengths, directed=True)
    expected = scipy_lengths(edges, lengths, 500, range(500), directed=True)
    assert np.array_equal(search.columns(np.arange(500)), rounded(expected))


@pytest.mark.parametrize("name", ["roads", "islands", "power law"])
@pytest.mark.parametrize("kind", ["real", "decimal", "huge ratio"])
def test_a_cutoff_leaves_out_what_is_longer(name: str, kind: str) -> None:
    graph = Graph(adjacency_of(SHAPES[name]))
    lengths = KINDS[kind](np.random.default_rng(0), graph.num_edges)
    whole = shortest_distances(graph, np.arange(20), lengths=lengths)
    for cutoff in (0, 0.3, float(np.median(whole[whole >= 0])), float(whole.max()), np.inf):
        cut = shortest_distances(graph, np.arange(20), lengths=lengths, cutoff=cutoff)
        assert np.array_equal(cut, np.where(whole <= np.float32(cutoff), whole, -1))


def test_lengths_of_one_are_hops() -> None:
    graph = Graph(adjacency_of(SHAPES["roads"]))
    hops = shortest_distances(graph, np.arange(70))
    assert np.array_equal(shortest_distances(graph, np.arange(70), lengths=np.ones(graph.num_edges)), hops)


def test_columns_depend_on_neither_threads_nor_other_sources() -> None:
    roads = subdivided(nx.convert_node_labels_to_integers(nx.grid_2d_graph(60, 60)))
    graph = Graph(adjacency_of(roads))
    lengths = np.random.default_rng(0).uniform(0.1, 3, graph.num_edges)
    sources = np.random.default_rng(1).integers(0, graph.num_nodes, 37)
    whole = shortest_distances(graph, sources, lengths=lengths)
    with kernel_threads(1):
        assert np.array_equal(shortest_distances(graph, sources, lengths=lengths), whole)
    for j in (0, 17, 36):
        assert np.array_equal(shortest_distances(graph, sources[j], lengths=lengths)[:, 0], whole[:, j])


def test_edges_may_come_in_any_order_and_direction() -> None:
    edges = adjacency_of(SHAPES["roads"]).edges()
    lengths = np.random.default_rng(0).integers(1, 50, edges.shape[1])
    expected = shortest_distances(edges, [0, 5], lengths=lengths)
    order = np.random.default_rng(1).permutation(edges.shape[1])
    mixed = edges[:, order]
    mixed[:, ::2] = mixed[::-1, ::2]
    assert np.array_equal(shortest_distances(mixed, [0, 5], lengths=lengths[order]), expected)
    data = data_of(SHAPES["roads"])  # has both directions of every edge
    both = {frozenset(edge): length for edge, length in zip(edges.T.tolist(), lengths.tolist(), strict=True)}
    per_arc = torch.tensor([both[frozenset(arc)] for arc in data.edge_index.T.tolist()])
    assert np.array_equal(shortest_distances(data, [0, 5], lengths=per_arc), expected)


@pytest.mark.parametrize("length", [0, -2.5, np.nan, np.inf, 1e-300, 1e300])
def test_a_wrong_length_names_its_edge(length: float) -> None:
    graph = Graph.from_edges([[0, 1, 1], [1, 2, 3]], names=["ann", "bob", "cy", "dan"])
    with pytest.raises(InputError, match=r"edge 'bob' - 'cy' has the length .*; lengths must be positive"):
        shortest_distances(graph, [0], lengths=[1, length, 1])
    with pytest.raises(InputError, match="edge 2 - 1 has the length"):
        shortest_distances([[0, 2], [1, 1]], [0], lengths=[1, length])


@pytest.mark.parametrize("lengths", [[1.0, 2.0], [[1.0], [1.0], [1.0]], ["a", "b", "c"], [True, True, True]])
def test_lengths_are_one_number_per_edge(lengths: object) -> None:
    with pytest.raises(InputError, match=r"lengths must be numbers of shape \[3\], one per edge"):
        shortest_distances([[0, 1, 2], [1, 2, 3]], [0], lengths=lengths)


def test_paths_that_float32_does_not_hold_are_an_error() -> None:
    with pytest.raises(InputError, match="use a larger unit"):
        shortest_distances([[0, 1], [1, 2]], [0], lengths=[3e38, 3e38])


@pytest.mark.parametrize("cutoff", [-1, np.nan, "2"])
def test_a_cutoff_is_a_length(cutoff: object) -> None:
    with pytest.raises(InputError, match="is not a length of 0 or more"):
        shortest_distances([[0], [1]], lengths=[1], cutoff=cutoff)


def test_an_oracle_measures_lengths_within_each_graph() -> None:
    graphs = [Graph(adjacency_of(SHAPES[name])) for name in ("roads", "theta")]
    rng = np.random.default_rng(0)
    lengths = [rng.uniform(0.1, 3, graph.num_edges) for graph in graphs]
    batch = GraphBatch.of(graphs)
    oracle = DistanceOracle(batch, lengths=np.concatenate(lengths))
    start = int(batch.ptr[1])
    found = oracle.lengths([[3, 8, 10], [start, start + 2, -1]])
    expected = [
        shortest_distances(graph, own, lengths=length)
        for graph, own, length in zip(graphs, ([3, 8, 10], [0, 2]), lengths, strict=True)
    ]
    assert np.array_equal(found[:start], expected[0])
    assert np.array_equal(found[start:, :2], expected[1])
    assert (found[start:, 2] == -1).all()
    with pytest.raises(InputError, match=r"pass DistanceOracle\(lengths"):
        DistanceOracle(batch).lengths([[3], [-1]])
    with pytest.raises(InputError, match="above the cap"):
        DistanceOracle(batch, lengths=np.concatenate(lengths), memory=100).lengths([[3], [-1]])
