"""Looks at edges per pair, node and anchor stay below documented bounds (docs/security.md), on hostile graphs too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from psgnn.distances import shortest_distances
from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn.graph._graph import Adjacency, GraphBatch
from psgnn.kernels import _pairs, _scoring, _ways
from psgnn.models import build_model
from psgnn.positions._measure import Parts, positions_of
from psgnn.positions._statistics import FARTHEST, pair_statistics, statistic_names
from psgnn.positions._view import View
from psgnn.tasks import LinkPrediction

MOST_LOOKS_PER_COLUMN = 4  # at each entry of the adjacency, per anchor
LOOKS = 200  # small, so that small graphs are hostile


def small_world(nodes: int) -> nx.Graph:
    """A ring with long links and no hubs."""
    rng = np.random.default_rng(0)
    us = rng.integers(0, nodes, 6 * nodes)
    vs = (us + 1 + (3 * rng.pareto(1.1, us.size)).astype(np.int64)) % nodes
    graph = nx.cycle_graph(nodes)
    graph.add_edges_from((int(u), int(v)) for u, v in zip(us, vs, strict=True) if u != v)
    return graph


def two_hubs(leaves: int) -> nx.Graph:
    """Two linked hubs, the leaves of each, and every hundredth leaf at both."""
    graph = nx.Graph([(0, 1)])
    graph.add_edges_from((i % 2, i) for i in range(2, leaves + 2))
    graph.add_edges_from((1 - i % 2, i) for i in range(2, leaves + 2, 100))
    return graph


GRAPHS: dict[str, Callable[[], nx.Graph]] = {
    "star": lambda: nx.star_graph(3000),
    "clique": lambda: nx.complete_graph(120),
    "small world": lambda: small_world(1500),
    "long path": lambda: nx.path_graph(3000),
    "two hubs": lambda: two_hubs(3000),
    "complete bipartite": lambda: nx.complete_bipartite_graph(700, 8),
    "hubs among leaves": lambda: nx.disjoint_union(nx.complete_bipartite_graph(40, 300), nx.star_graph(500)),
}


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    return graph_of(request.param)


def graph_of(name: str) -> Graph:
    found = GRAPHS[name]()
    edges = np.array(found.edges, dtype=np.int64).reshape(-1, 2).T
    return Graph.from_edges(edges, found.number_of_nodes())


class Counted(np.ndarray):  # type: ignore[type-arg]
    """Neighbours that count how often one of them is looked at."""

    count = 0

    def __getitem__(self, place: Any) -> Any:
        Counted.count += 1
        return self.view(np.ndarray)[place]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as Python functions, which can be watched."""
    for module in (_pairs, _scoring, _ways):
        for name, kernel in vars(module).items():
            if hasattr(kernel, "py_func"):
                monkeypatch.setattr(module, name, kernel.py_func)


def some_pairs(adjacency: Adjacency, count: int = 60) -> npt.NDArray[np.int64]:
    """Pairs of any nodes, links, and pairs of the nodes of most neighbours."""
    rng = np.random.default_rng(1)
    hubs = np.argsort(-adjacency.degrees, kind="stable")[:6]
    links = adjacency.edges()
    pairs = [
        rng.integers(0, adjacency.num_nodes, (2, count)),
        links[:, rng.integers(0, links.shape[1], count)],
        np.stack([rng.choice(hubs, count // 2), rng.choice(hubs, count // 2)]),
        np.stack([rng.choice(hubs, count // 2), rng.integers(0, adjacency.num_nodes, count // 2)]),
    ]
    return np.concatenate(pairs, axis=1)


def most_looks(call: Callable[..., None], adjacency: Adjacency, pairs: npt.NDArray[np.int64]) -> int:
    """The most looks at edges that one of the pairs takes."""
    indices, most = adjacency.indices.view(Counted), 0
    for u, v in pairs.T:
        Counted.count = 0
        call(adjacency.indptr, indices, np.array([u]), np.array([v]))
        most = max(most, Counted.count)
    return most


@pytest.mark.usefixtures("plain")
def test_hops_of_a_pair_have_a_bounded_cost(graph: Graph) -> None:
    adjacency = graph.adjacency
    out = np.empty(1)
    most = most_looks(
        lambda *csr: _pairs.pair_hops(*csr, FARTHEST, out, looks=LOOKS), adjacency, some_pairs(adjacency)
    )
    assert 0 < most <= LOOKS


@pytest.mark.usefixtures("plain")
def test_walks_of_a_pair_have_a_bounded_cost(graph: Graph) -> None:
    adjacency = graph.adjacency
    out = np.empty((1, 6))
    most = most_looks(lambda *csr: _pairs.local_walks(*csr, LOOKS, out), adjacency, some_pairs(adjacency))
    # Looking up a node in a sorted row takes the logarithm of its length.
    assert 0 < most <= 8 * LOOKS * (1 + np.log2(adjacency.degrees.max()))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("hubs", [1, 2, 8])
def test_pairs_of_hubs_cost_as_much_whatever_the_size_of_the_hubs(hubs: int) -> None:
    out, costs = np.empty((1, 6)), list[list[int]]()
    for leaves in (2000, 8000):
        found = nx.complete_bipartite_graph(hubs, leaves)
        adjacency = Graph.from_edges(np.array(found.edges).T, hubs + leaves).adjacency
        arcs = adjacency.indptr, adjacency.indices.view(Counted), np.ones(adjacency.indices.size)
        sums, pair = adjacency.degrees.astype(float), np.array([[hubs - 1], [hubs]])
        costs.append([most_looks(lambda *csr: _pairs.local_walks(*csr, LOOKS, out), adjacency, pair)])
        for us, vs in (pair, pair[::-1]):
            Counted.count = 0
            _ways.weighted_ways(*arcs, *arcs, *arcs, sums, sums, us, vs, LOOKS, out)
            shared = 2 * int(adjacency.degrees[us[0]])  # by the pairs of a node
            costs[-1].append(Counted.count - shared)
    small, large = np.array(costs)
    assert np.all(large <= 1.5 * small + 20)
    assert np.all(large <= 4 * LOOKS)


def test_walks_of_a_pair_do_not_depend_on_the_others(graph: Graph) -> None:
    adjacency, pairs = graph.adjacency, some_pairs(graph.adjacency)
    pairs = np.concatenate([pairs, np.sort(pairs, axis=0)], axis=1)
    out, alone = np.empty((pairs.shape[1], 6)), np.empty((pairs.shape[1], 6))
    _pairs.local_walks(adjacency.indptr, adjacency.indices, *pairs, 5, out)
    for i, (u, v) in enumerate(pairs.T):
        _pairs.local_walks(
            adjacency.indptr, adjacency.indices, np.array([u]), np.array([v]), 5, alone[i : i + 1]
        )
    assert np.array_equal(out, alone)


@pytest.mark.usefixtures("plain")
def test_weighted_walks_of_a_pair_have_a_bounded_cost(graph: Graph) -> None:
    adjacency = graph.adjacency
    indptr, weights = adjacency.indptr, np.ones(adjacency.indices.size)
    arcs, sums = (indptr, adjacency.indices.view(Counted), weights), np.ones(graph.num_nodes)
    for pair in some_pairs(adjacency).T:
        Counted.count = 0
        us, vs = pair[:, None]
        _ways.weighted_ways(*arcs, *arcs, *arcs, sums, sums, us, vs, LOOKS, np.empty((1, 6)))
        assert 0 < Counted.count <= 2 * adjacency.degrees[pair[0]] + 2 * LOOKS + 4


@pytest.mark.parametrize("name", ["star", "two hubs", "hubs among leaves"])
def test_sampled_weighted_walks_are_near_to_all_of_them(name: str) -> None:
    adjacency = graph_of(name).adjacency
    arcs = (adjacency.indptr, adjacency.indices, np.ones(adjacency.indices.size))
    degrees = adjacency.degrees.astype(float)
    us, vs = some_pairs(adjacency)
    order = np.argsort(us, kind="stable")
    found = [np.empty((us.size, 6)) for _ in range(2)]
    for most, out in zip((10**9, 1600), found, strict=True):
        _ways.weighted_ways(*arcs, *arcs, *arcs, degrees, degrees, us[order], vs[order], most, out)
    exact, some = (out.sum(axis=0) for out in found)
    assert np.all(np.abs(some - exact) <= 0.5 * exact + 1)


@pytest.mark.usefixtures("plain")
def test_common_neighbours_cost_no_more_than_those_of_the_smaller_end(graph: Graph) -> None:
    adjacency = graph.adjacency
    ones, out = np.ones(graph.num_nodes), np.empty(1)
    indices = adjacency.indices.view(Counted)
    for u, v in some_pairs(adjacency).T:
        Counted.count = 0
        _pairs.shared_neighbours(adjacency.indptr, indices, np.array([u]), np.array([v]), ones, out)
        fewer, more = np.sort(adjacency.degrees[[u, v]])
        assert Counted.count <= 5 * (fewer + 1) * (2 + np.log2(more + 1))


@pytest.mark.usefixtures("plain")
def test_partners_of_a_node_have_a_bounded_cost(graph: Graph) -> None:
    adjacency = graph.adjacency
    indices = adjacency.indices.view(Counted)
    hubs = np.argsort(-adjacency.degrees, kind="stable")[:3]
    for node in (*hubs, *range(0, graph.num_nodes, graph.num_nodes // 5)):
        Counted.count = 0
        out = np.full((1, 8), -1, np.int32)
        _scoring.walk_partners(adjacency.indptr, indices, node, LOOKS, out)
        assert Counted.count <= 4 * adjacency.degrees[node] + 3 * LOOKS


LOOKS_PER_COLUMN = """
import sys
import networkx as nx
import numpy as np
from test_costs import GRAPHS, Counted, graph_of
from psgnn.distances import shortest_distances
from psgnn.errors import InputError
for name in GRAPHS:
    graph = graph_of(name)
    expected = graph.adjacency.indices.size
    indices = graph.adjacency.indices
    object.__setattr__(graph.adjacency, "indices", indices.view(Counted))
    for anchors in (1, 20):
        Counted.count = 0
        shortest_distances(graph, list(range(anchors)))
        print(name, anchors, Counted.count / (anchors * expected), sep="\\t")
"""


@pytest.mark.slow
def test_a_column_of_hops_looks_at_each_edge_a_few_times() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LOOKS_PER_COLUMN], capture_output=True, text=True, env=environment, check=True
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 2 * len(GRAPHS)
    for name, anchors, looks in rows:
        assert 0 < float(looks) <= MOST_LOOKS_PER_COLUMN, (name, anchors)


def statistics(graph: Graph, pairs: npt.NDArray[np.int64], looks: int) -> dict[str, Any]:
    view = View(GraphBatch.of([graph]))
    anchors = np.argsort(-graph.adjacency.degrees, kind="stable")[None, :4].astype(np.int64)
    parts = Parts(pair_looks=looks)
    found = pair_statistics(positions_of(view, anchors, parts), pairs)
    return dict(zip(statistic_names(parts), found.T, strict=True))


def test_hops_beyond_the_looks_lie_between_the_bounds_of_the_anchors(graph: Graph) -> None:
    pairs = some_pairs(graph.adjacency)
    exact, some = (statistics(graph, pairs, looks) for looks in (10**9, 20))
    far, estimated = exact["hops"], some["hops"]
    hops = shortest_distances(graph, np.argsort(-graph.adjacency.degrees, kind="stable")[:4]).astype(float)
    a, b = hops[pairs[0]], hops[pairs[1]]
    both = (a >= 0) & (b >= 0)
    lower = np.where(both, np.abs(a - b), 0).max(axis=1)
    upper = np.where(both, a + b, FARTHEST + 1).min(axis=1)
    known = far <= FARTHEST
    assert (estimated[known] >= np.minimum(lower, FARTHEST + 1)[known]).all()
    assert (estimated[known] <= np.maximum(upper, far)[known]).all()
    apart = ((a >= 0) != (b >= 0)).any(axis=1)
    assert (estimated[apart] == FARTHEST + 1).all()
    near = far <= 1
    assert np.array_equal(estimated[near & (lower == upper)], far[near & (lower == upper)])


def test_enough_looks_change_nothing() -> None:
    graph = graph_of("small world")
    pairs = some_pairs(graph.adjacency)
    one, other = (statistics(graph, pairs, looks) for looks in (10**6, 10**9))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_estimates_do_not_depend_on_the_order_of_the_nodes() -> None:
    graph = graph_of("small world")
    pairs = some_pairs(graph.adjacency)
    there, back = statistics(graph, pairs, 300)["hops"], statistics(graph, pairs[::-1].copy(), 300)["hops"]
    assert np.array_equal(there, back)


def test_the_looks_of_a_model_are_a_setting() -> None:
    task = LinkPrediction([graph_of("small world")], seed=0)
    assert build_model("psgnn", task).config.pair_looks == 20_000
    assert build_model("psgnn", task, pair_looks=50).config.pair_looks == 50
    with pytest.raises(InputError, match="pair_looks"):
        build_model("psgnn", task, pair_looks=0)
