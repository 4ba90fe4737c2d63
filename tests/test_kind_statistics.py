"""Statistics of pairs in graphs that have more than plain edges, against oracles, and the rules for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from psgnn.anchors._rules import batch_anchors
from psgnn.distances._engine import arc_columns
from psgnn.distances._propagation import arc_pagerank
from psgnn.errors import InputError
from psgnn.graph import Graph, GraphBatch
from psgnn.graph._kinds import merged_graph
from psgnn.graph._pair_space import pair_space
from psgnn.positions import Parts, Positions, View, pair_statistics, positions_of, statistic_names
from psgnn.positions._kinds import KindMeasures, ways_between
from psgnn.positions._statistics import statistic_groups
from psgnn.scoring import pretrained, score_pairs
from psgnn.scoring._rules import KIND_RULES, kind_rules
from psgnn.tasks import LinkPrediction
from psgnn.tasks._metrics import roc_auc

NODES = 40


def random_graph(seed: int = 0, *, directed: bool = True, links: int = 260, **given: Any) -> Graph:
    """A graph with repeated links, and a strength, length and time for each of them if `given` asks for it."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, NODES, (2, links))
    columns = {name: rng.integers(1, 9, links).astype(float) for name, wanted in given.items() if wanted}
    return merged_graph(ends, NODES, directed=directed, **columns)


def two_sided(seed: int = 0, *, directed: bool = False, times: bool = False) -> Graph:
    rng = np.random.default_rng(seed)
    ends = np.stack([rng.integers(0, 15, 200), rng.integers(15, NODES, 200)])
    sides = np.repeat(np.array([0, 1], np.int8), [15, NODES - 15])
    when = rng.integers(0, 100, 200) if times else None
    return merged_graph(ends, NODES, directed=directed, sides=sides, times=when)


KINDS: dict[str, Graph] = {
    "directed": random_graph(),
    "directed, strengths, times": random_graph(1, strengths=True, times=True),
    "directed, lengths, strengths": random_graph(2, lengths=True, strengths=True),
    "lengths": random_graph(3, directed=False, lengths=True),
    "strengths": random_graph(4, directed=False, strengths=True),
    "times": random_graph(5, directed=False, times=True),
    "sides": two_sided(),
    "sides, times": two_sided(1, times=True),
    "directed, sides": two_sided(2, directed=True),
}
each_kind = pytest.mark.parametrize("graph", KINDS.values(), ids=KINDS)


def measures(graph: Graph) -> KindMeasures:
    batch = GraphBatch.of([graph])
    assert batch.kinds is not None
    return KindMeasures(batch, np.zeros((1, 0), np.int64), batch.kinds.names)


def positions(graph: Graph) -> Positions:
    batch = GraphBatch.of([graph])
    assert batch.kinds is not None
    return positions_of(View(batch), batch_anchors(batch, "mixed", 6, 0), Parts(kinds=batch.kinds.names))


def some_pairs(graph: Graph, count: int = 300) -> np.ndarray:
    space = pair_space(GraphBatch.of([graph]))
    ranks = np.random.default_rng(9).integers(space.sizes.sum(), size=count)
    return space.unrank(np.unique(ranks))


def matrix(graph: Graph, values: np.ndarray | None = None) -> np.ndarray:
    dense = np.zeros((NODES, NODES))
    u, v = graph.edges
    dense[u, v] = 1.0 if values is None else values
    return dense if graph.directed else np.maximum(dense, dense.T)


def test_parallel_links_are_merged() -> None:
    ends = np.array([[0, 1, 0, 2, 0], [1, 0, 1, 2, 2]])
    columns: dict[str, Any] = {
        "strengths": [1, 2, 4, 9, 8],
        "lengths": [5, 3, 4, 1, 7],
        "times": [30, 20, 10, 1, 40],
    }
    plain = merged_graph(ends, 3, directed=False, **columns)
    assert plain.edges.T.tolist() == [[0, 1], [0, 2]]
    assert plain.strengths is not None
    assert plain.lengths is not None
    assert plain.times is not None
    assert plain.last_times is not None
    assert plain.strengths.tolist() == [7, 8]
    assert plain.lengths.tolist() == [3, 7]
    assert plain.times.tolist() == [10, 40]
    assert plain.last_times.tolist() == [30, 40]
    arcs = merged_graph(ends, 3, directed=True, **columns)
    assert arcs.edges.T.tolist() == [[0, 1], [0, 2], [1, 0]]
    assert arcs.strengths is not None
    assert arcs.strengths.tolist() == [5, 8, 2]


@each_kind
def test_every_statistic_has_a_name_and_a_number(graph: Graph) -> None:
    found = positions(graph)
    table = pair_statistics(found, some_pairs(graph))
    names = statistic_names(found.parts)
    assert table.shape[1] == len(names) == len(set(names)) == len(statistic_groups(found.parts))
    assert np.isfinite(table).all()
    assert table[:, len(statistic_names(Parts())) :].std(axis=0).max() > 0


@each_kind
def test_what_any_graph_has_is_as_without_kinds(graph: Graph) -> None:
    found, pairs = positions(graph), some_pairs(graph)
    plain = positions_of(View(GraphBatch.of([graph])), found.nodes, Parts())
    width = len(statistic_names(Parts()))
    assert np.array_equal(pair_statistics(found, pairs)[:, :width], pair_statistics(plain, pairs))


@each_kind
def test_the_order_of_a_pair_counts_where_it_is_part_of_it(graph: Graph) -> None:
    found, pairs = positions(graph), some_pairs(graph)
    there, back = (pair_statistics(found, some) for some in (pairs, np.ascontiguousarray(pairs[::-1])))
    own = slice(len(statistic_names(Parts())), None)
    assert np.array_equal(there[:, own], back[:, own]) is not graph.directed


@pytest.mark.parametrize("route", ["out in", "out out", "in out", "in in"])
def test_ways_are_products_of_matrices(route: str) -> None:
    graph = random_graph(7, strengths=True)
    found = measures(graph)
    lens = found.lens("strength")
    assert graph.strengths is not None
    along = matrix(graph, graph.strengths / graph.strengths.mean())
    first, second = (along if step == "out" else along.T for step in route.split())
    inner = np.maximum(second.sum(axis=1), 1e-9)
    outer = np.maximum(along.sum(axis=1), 1e-9)
    two = first @ second
    us, vs = np.divmod(np.arange(NODES**2), NODES)
    ways = ways_between(found.known, lens, route, us, vs)
    assert np.allclose(ways[:, 0], two[us, vs])
    assert np.allclose(ways[:, 1], (first / inner @ second)[us, vs])

    def onward(steps: np.ndarray, last: np.ndarray) -> np.ndarray:
        steps = steps.copy()
        np.fill_diagonal(steps, 0)  # a walk does not come back to where it began
        return (steps @ last)[us, vs]

    rooted, shared = first / np.sqrt(inner) @ second, first / inner @ second
    assert np.allclose(ways[:, 2], onward(two, along / np.sqrt(outer)[:, None]))
    assert np.allclose(ways[:, 3], onward(rooted, along))
    assert np.allclose(ways[:, 4], onward(rooted, along / np.sqrt(outer)[:, None]))
    assert np.allclose(ways[:, 5], onward(shared, along / outer[:, None]))


def test_hops_and_pagerank_follow_the_links() -> None:
    graph = random_graph(8, strengths=True, links=90)
    known = measures(graph).known
    net = nx.DiGraph()
    net.add_nodes_from(range(NODES))
    assert graph.strengths is not None
    net.add_weighted_edges_from(zip(*graph.edges.tolist(), graph.strengths.tolist(), strict=True))
    nodes = np.array([0, 5, 9])
    hops = arc_columns(known.outgoing, nodes, np.arange(4))
    for column, node in zip(hops.T, nodes.tolist(), strict=True):
        expected = nx.single_source_shortest_path_length(net, node)
        assert column.tolist() == [expected.get(v, -1) for v in range(NODES)]
    strong = list(max(nx.strongly_connected_components(net), key=len))
    inside = net.subgraph(strong)
    lens = measures(graph).lens("strength")
    found = arc_pagerank(known.outgoing, lens.along, lens.out_sum, nodes, np.arange(4), steps=100)
    if set(nx.descendants(net, 5)) <= set(inside):
        expected = nx.pagerank(inside, 0.85, personalization={5: 1.0}, tol=1e-12)
        assert np.allclose(found[strong, 1], [expected[v] for v in strong], atol=1e-5)
    dense = matrix(graph, graph.strengths)
    shares = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1)
    exact = 0.15 * np.linalg.inv(np.eye(NODES) - 0.85 * shares.T)
    assert np.allclose(found, exact[:, nodes], atol=1e-5)


def test_ages_and_activity() -> None:
    ends = np.array([[0, 1, 2, 0], [1, 2, 3, 3]])
    graph = merged_graph(ends, 4, directed=True, times=[10, 20, 30, 40])
    found = measures(graph)
    out_last, in_last = (np.exp(part) - 1e-4 for part in found.ages[0])
    assert np.allclose(out_last, [0, 0.5, 0.25, 2])
    assert np.allclose(in_last, [2, 0.75, 0.5, 0])
    out_first, _ = (np.exp(part) - 1e-4 for part in found.ages[1])
    assert np.allclose(out_first, [0.75, 0.5, 0.25, 0])
    weights = np.exp(-np.array([0.75, 0.5, 0.25, 0]) / 0.05)
    out, inward = found.activity[1]
    assert np.allclose(out, [weights[0] + weights[3], weights[1], weights[2], 0])
    assert np.allclose(inward, [0, weights[0], weights[1], weights[2] + weights[3]])


@pytest.mark.parametrize("kind", [name for name in KINDS if "times" in name])
def test_the_future_changes_nothing(kind: str) -> None:
    """A fold and the visible graph measure the same pairs alike, whatever comes later."""
    graph = KINDS[kind]
    assert graph.times is not None
    early = float(np.quantile(graph.times, 0.5))
    before = graph.times <= early
    last = None if graph.last_times is None else np.minimum(graph.last_times, early)
    kept: dict[str, Any] = {"times": graph.times[before], "last_times": None}
    if graph.strengths is not None:
        kept["strengths"] = np.ones(int(before.sum()))
        graph = replace(graph, strengths=np.ones(graph.num_edges))
    assert last is not None
    small = replace(
        Graph.from_edges(graph.edges[:, before], NODES), sides=graph.sides, **kept,
        arcs=graph.edges[:, before] if graph.directed else None,
    )  # fmt: skip
    pairs = some_pairs(graph)
    whole = replace(graph, last_times=None)
    task = LinkPrediction(whole, seed=0)
    assert task.split == "time"
    links = task._links
    shown = links.pairs[:, links.times <= early]  # type: ignore[operator]
    seen = links.visible(shown, np.array([early]))
    nodes = np.array([[0, 3, 20, 30]])
    assert seen.kinds is not None
    parts = Parts(kinds=seen.kinds.names)
    found, expected = (
        pair_statistics(positions_of(View(batch), nodes, parts), pairs)
        for batch in (seen, GraphBatch.of([small]))
    )
    assert np.array_equal(found, expected)


def test_folds_of_a_timed_task_ask_for_what_came_next() -> None:
    graph = random_graph(11, times=True, links=1200)
    task = LinkPrediction(graph, seed=0)
    times = dict(zip(map(tuple, graph.edges.T.tolist()), graph.times.tolist(), strict=True))  # type: ignore[union-attr]
    trained = {tuple(pair) for pair in task.train.pairs[:, task.train.labels == 1].T.tolist()}
    for f in (0, 5, 9):
        fold = task.fold(f)
        asked = {tuple(pair) for pair in fold.positives.T.tolist()}
        assert fold.union.kinds is not None
        seen = {tuple(pair) for pair in fold.union.kinds.edges.T.tolist()}
        assert asked
        assert asked <= trained
        assert not asked & seen
        assert seen <= trained
        assert max(times[pair] for pair in seen) <= min(times[pair] for pair in asked)
        assert abs(len(seen) - (0.8 - 0.015 * f) * len(trained)) <= 1
    assert len(task.fold(9).union.kinds.edges.T) < len(task.fold(0).union.kinds.edges.T)  # type: ignore[union-attr]


@each_kind
def test_rules_fit_the_kind(graph: Graph) -> None:
    batch, pairs = GraphBatch.of([graph]), some_pairs(graph)
    names = kind_rules(graph.kind)
    assert names
    for name in names:
        scores = score_pairs(name, batch, pairs)
        assert scores.shape == pairs.shape[1:]
        assert np.isfinite(scores).all()
        if (
            graph.sides is None or not graph.directed
        ):  # where all links go from one side to the other, no two meet
            assert np.ptp(scores) > 0
    for name in KIND_RULES.keys() - set(names):
        with pytest.raises(InputError, match=f"{name}.* needs a graph with"):
            score_pairs(name, batch, pairs)


def test_rules_have_the_values_of_their_formulas() -> None:
    graph = two_sided(3)
    dense, pairs = matrix(graph), some_pairs(graph)
    u, v = pairs
    films = dense[:15, 15:]
    norms = np.maximum(np.linalg.norm(films, axis=0), 1e-9)
    cosine = (films.T @ films) / np.outer(norms, norms)
    expected = films @ cosine
    batch = GraphBatch.of([graph])
    linked = films[u, v - 15]
    found = score_pairs("item-knn", batch, pairs)
    # Walks that come back to the user are left out, one over the roots of the degrees for each film on the way.
    back = np.array([(films[a] / norms).sum() / norms[b - 15] for a, b in pairs.T]) * linked
    assert np.allclose(found, expected[u, v - 15] - back)
    people = np.maximum(np.linalg.norm(films, axis=1), 1e-9)
    alike = (films @ films.T) / np.outer(people, people)
    np.fill_diagonal(alike, 0)
    assert np.allclose(score_pairs("user-knn", batch, pairs), (alike @ films)[u, v - 15])

    arcs = random_graph(12)
    dense = matrix(arcs)
    pairs = some_pairs(arcs)
    u, v = pairs
    batch = GraphBatch.of([arcs])
    assert np.array_equal(score_pairs("reciprocity", batch, pairs) > 0, dense[v, u] > 0)
    assert np.allclose(score_pairs("directed-common-neighbours", batch, pairs), (dense @ dense)[u, v])
    assert np.allclose(
        score_pairs("directed-attachment", batch, pairs), (dense.sum(1) + 1)[u] * (dense.sum(0) + 1)[v]
    )

    roads = random_graph(13, directed=False, links=60, lengths=True)
    net = nx.Graph()
    net.add_nodes_from(range(NODES))
    assert roads.lengths is not None
    net.add_weighted_edges_from(zip(*roads.edges.tolist(), roads.lengths.tolist(), strict=True))
    far = dict(nx.all_pairs_dijkstra_path_length(net))
    pairs = some_pairs(roads)
    found = score_pairs("shortest-length", GraphBatch.of([roads]), pairs)
    total = roads.lengths.sum() + 1
    assert np.allclose(found, [-far[a].get(b, total) for a, b in pairs.T.tolist()])


def test_ready_made_weights_learn_which_way_links_go() -> None:
    """Half of the nodes point to the other half: without directions, nothing shows who is who."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(120).reshape(2, 60)
    ends = np.stack([rng.choice(groups[0], 1000), rng.choice(groups[1], 1000)])
    task = LinkPrediction(merged_graph(ends, 120, directed=True), seed=0)
    names = [graph.names for graph in task.graphs]
    auc = [
        roc_auc(
            task.test.labels, pretrained().on_union(task.union, names, strict=strict).score(task.test.pairs)
        )
        for strict in (False, True)
    ]
    assert auc[0] > 0.7
    assert auc[0] > auc[1] + 0.1
