"""Pairs that links can be: ordered, between two sides, split by time; in tasks, negatives and metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psgnn.errors import InputError
from psgnn.graph import Graph, GraphBatch
from psgnn.graph._pair_space import Ordered, TwoSided, Unordered, asked, pair_space
from psgnn.graph._sampling import NonEdges
from psgnn.tasks import LinkPrediction
from psgnn.tasks._per_node import metrics_per_node, ranking_of


def directed(seed: int = 0, nodes: int = 30, arcs: int = 200, **fields: Any) -> Graph:
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.choice(nodes * nodes, arcs, replace=False))
    pairs = np.stack(np.divmod(codes, nodes))
    pairs = pairs[:, pairs[0] != pairs[1]]
    return replace(Graph.from_edges(pairs, nodes), arcs=pairs, **fields)


def two_sided(seed: int = 0) -> Graph:
    """Sides in no order, links inside a side, and a node on no side."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 30, (2, 220))
    plain = Graph.from_edges(edges[:, edges[0] != edges[1]], 30)
    sides = rng.permutation(np.repeat([0, 1, -1], [12, 17, 1])).astype(np.int8)
    return replace(plain, sides=sides)


def timed(graph: Graph, seed: int = 0, values: int = 1000) -> Graph:
    times = np.random.default_rng(seed).integers(0, values, graph.num_edges).astype(float)
    return replace(graph, times=times)


def as_set(pairs: np.ndarray) -> set[tuple[int, int]]:
    return set(map(tuple, pairs.T.tolist()))


GRAPHS = {
    "directed": directed(),
    "sides": two_sided(),
    "directed sides": replace(directed(3), sides=two_sided().sides),
}


def allowed(graph: Graph) -> set[tuple[int, int]]:
    """All pairs by brute force."""
    found = set()
    for u in range(graph.num_nodes):
        for v in range(graph.num_nodes):
            if u == v or (not graph.directed and u > v):
                continue
            ends = None if graph.sides is None else (graph.sides[u], graph.sides[v])
            if ends is None or ends == (0, 1) or (ends == (1, 0) and not graph.directed):
                found.add((u, v))
    return found


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_space_numbers_every_pair_once(graph: Graph) -> None:
    batch = GraphBatch.of([graph, graph])
    space = pair_space(batch)
    pairs = space.unrank(np.arange(space.starts[-1]))
    assert np.array_equal(space.rank(pairs), np.arange(space.starts[-1]))
    first, second = np.split(pairs, [space.sizes[0]], axis=1)
    assert as_set(first) == allowed(graph)
    assert as_set(second - graph.num_nodes) == allowed(graph)
    assert space.holds(pairs).all()


def test_the_space_follows_from_the_kind() -> None:
    kinds = [Graph.from_edges([[0], [1]], 2), *GRAPHS.values()]
    assert [type(pair_space(GraphBatch.of([graph]))) for graph in kinds] == [
        Unordered,
        Ordered,
        TwoSided,
        TwoSided,
    ]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_non_links_are_the_other_pairs(graph: Graph) -> None:
    batch = GraphBatch.of([graph])
    space = pair_space(batch)
    links = graph.edges[:, space.holds(graph.edges)]
    pool = NonEdges(space, links)
    found = pool.unrank(np.arange(pool.sizes[0]))
    assert found.shape[1] == pool.sizes[0]
    assert as_set(found) == allowed(graph) - as_set(links)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_task_asks_about_pairs_of_its_space(graph: Graph) -> None:
    weighted = replace(graph, strengths=np.arange(1.0, graph.num_edges + 1))
    task = LinkPrediction(weighted, seed=1)
    positives, negatives = [], []
    for part in (task.train, task.val, task.test):
        positives.append(as_set(part.pairs[:, part.labels == 1]))
        negatives.append(as_set(part.pairs[:, part.labels == 0]))
        assert np.array_equal(task.true_labels(part.pairs), part.labels)
    links = as_set(graph.edges) & allowed(graph)
    assert set.union(*positives) == links
    assert sum(map(len, positives)) == len(links)
    assert set.union(*negatives) <= allowed(graph) - links
    assert sum(map(len, negatives)) == len(set.union(*negatives))
    # Hidden links are gone with all they carry; what is not a pair stays.
    visible = task.graphs[0]
    structure = as_set(graph.edges) - allowed(graph)
    assert as_set(visible.edges) == positives[0] | structure
    strength = dict(zip(map(tuple, graph.edges.T.tolist()), weighted.strengths, strict=True))
    assert visible.strengths is not None
    assert [strength[tuple(edge)] for edge in visible.edges.T.tolist()] == visible.strengths.tolist()
    assert as_set(visible.adjacency.edges()) == {tuple(sorted(edge)) for edge in as_set(visible.edges)}
    fresh = as_set(task.sample_negatives(500, np.random.default_rng(0)))
    assert not fresh & (links | negatives[1] | negatives[2])
    assert fresh <= allowed(graph)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_folds_hide_their_positives(graph: Graph) -> None:
    task = LinkPrediction(graph, seed=1, folds=3)
    train = as_set(task.train.pairs[:, task.train.labels == 1])
    seen = set()
    for fold in map(task.fold, range(3)):
        hidden = as_set(fold.positives)
        assert fold.union.kinds is not None
        visible = as_set(fold.union.kinds.edges)
        assert not hidden & visible
        assert visible & allowed(graph) == train - hidden
        seen |= hidden
    assert seen == train


@pytest.mark.parametrize("name", GRAPHS)
def test_a_rival_has_the_first_node_of_its_link_and_is_no_link(name: str) -> None:
    """In a batch of two graphs, whose nodes meet those of their own graph alone."""
    task = LinkPrediction([GRAPHS[name], GRAPHS[name]], seed=3)
    links = task.train.pairs[:, task.train.labels == 1]
    rivals = task.rivals(links, np.random.default_rng(0))
    assert rivals.shape == links.shape
    assert task.space.holds(rivals).all()
    graph_of = task.union.graph_of
    assert (graph_of[rivals[0]] == graph_of[rivals[1]]).all()
    known = [split.pairs[:, split.labels == 1] for split in (task.train, task.val, task.test)]
    known += [split.pairs[:, split.labels == 0] for split in (task.val, task.test)]
    assert not as_set(task.space.oriented(rivals)) & as_set(np.concatenate(known, axis=1))
    same = rivals[0] == asked(task.space, links)[0]
    assert same.mean() > 0.3  # half of the pairs of these graphs are known, and stand for themselves
    assert np.unique(rivals[1][same]).size > 8


@pytest.mark.parametrize(
    "graph", [timed(directed()), timed(two_sided()), timed(directed(), values=4)], ids=str
)
def test_the_newest_links_are_the_test(graph: Graph) -> None:
    task = LinkPrediction(graph, seed=2)
    assert graph.times is not None
    when = dict(zip(map(tuple, graph.edges.T.tolist()), graph.times.tolist(), strict=True))
    train, val, test = (
        [when[pair] for pair in as_set(part.pairs[:, part.labels == 1])]
        for part in (task.train, task.val, task.test)
    )
    assert max(train) <= min(val) <= max(val) <= min(test)
    visible = task.graphs[0].times
    assert visible is not None
    assert visible.max() == max(train)
    assert LinkPrediction(graph, seed=2, split="random").digest != task.digest


def test_what_repeats_told_later_is_not_seen() -> None:
    graph = timed(directed())
    assert graph.times is not None
    strengths = np.arange(2.0, graph.num_edges + 2)
    late = replace(graph, last_times=graph.times + 300, strengths=strengths)
    task = LinkPrediction(late)
    seen = task.graphs[0]
    assert seen.times is not None
    assert seen.last_times is not None
    assert seen.strengths is not None
    again = seen.times + 300 > seen.times.max()
    assert again.any()
    assert not again.all()
    assert np.array_equal(seen.last_times, np.where(again, seen.times, seen.times + 300))
    assert (seen.strengths[again] == 2.0).all()
    assert (seen.strengths[~again] > 2.0).any()


def test_a_split_by_time_needs_times() -> None:
    with pytest.raises(InputError, match="needs edges with times"):
        LinkPrediction(directed(), split="time")
    with pytest.raises(InputError, match="split"):
        LinkPrediction(directed(), split="tim")


@pytest.mark.parametrize("graph", [Graph.from_edges(directed().edges, 30), *GRAPHS.values()], ids=str)
def test_a_split_of_ones_own(graph: Graph) -> None:
    pairs = np.array(sorted(allowed(graph) - as_set(graph.edges))).T
    val, test, nonlinks = pairs[:, :5], pairs[:, 5:12], pairs[:, 12:20]
    task = LinkPrediction(graph, val_links=val, test_links=test, test_nonlinks=nonlinks)
    assert as_set(task.train.pairs[:, task.train.labels == 1]) == as_set(graph.edges) & allowed(graph)
    assert as_set(task.graphs[0].edges) == as_set(graph.edges)
    assert as_set(task.val.pairs[:, task.val.labels == 1]) == as_set(val)
    assert as_set(task.test.pairs[:, task.test.labels == 0]) == as_set(nonlinks)
    assert (task.val.labels == 0).sum() == 5
    drawn = LinkPrediction(graph, test_links=test)
    assert as_set(drawn.test.pairs[:, drawn.test.labels == 1]) == as_set(test)
    assert as_set(drawn.val.pairs[:, drawn.val.labels == 1]) <= as_set(graph.edges)
    with pytest.raises(InputError, match="in val_links and test_links"):
        LinkPrediction(graph, val_links=val, test_links=np.append(test, val[:, :1], axis=1))
    with pytest.raises(InputError, match="and the training edges"):
        LinkPrediction(graph, test_links=task.train.pairs[:, :1])
    with pytest.raises(InputError, match="goes with test_links"):
        LinkPrediction(graph, val_links=val)


def test_a_pair_within_a_side_is_refused() -> None:
    graph = two_sided()
    assert graph.sides is not None
    with pytest.raises(InputError, match="not a pair of the two sides"):
        LinkPrediction(graph, test_links=np.flatnonzero(graph.sides == 0)[:2, None])


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_nodes_are_ranked_among_their_possible_partners(graph: Graph) -> None:
    task = LinkPrediction(graph, seed=1)
    links = as_set(graph.edges)
    known = links if graph.directed else links | {(v, u) for u, v in links}
    ranking = ranking_of(task.union, task.test.pairs[:, task.test.labels == 1], np.random.default_rng(0), 99)
    assert task.space.holds(task.space.oriented(ranking.pairs)).all()
    if graph.sides is not None:
        assert (graph.sides[ranking.pairs[0]] == 0).all()
    table = np.random.default_rng(5).random((30, 30))
    table = table if graph.directed else table + table.T
    found = metrics_per_node(task, lambda pairs: table[tuple(pairs)], 0)
    ranks, recall = [], {}
    for a, b in as_set(task.test.pairs[:, task.test.labels == 1]):
        u, v = (a, b) if graph.directed or graph.sides is None or graph.sides[a] == 0 else (b, a)
        partners = [w for w in range(30) if tuple(task.space.oriented(np.array([u, w]))) in allowed(graph)]
        others = [w for w in partners if (u, w) not in known]
        ranks.append(1 + sum(table[u, w] > table[u, v] for w in others))
        recall.setdefault(u, []).append(v)
    assert found["mrr_per_node"] == pytest.approx(np.mean(1 / np.array(ranks)))
    seen = as_set(task.test.pairs[:, task.test.labels == 1])
    seen = seen if graph.directed else seen | {(v, u) for u, v in seen}
    shares = []
    for u, true in recall.items():
        partners = [w for w in range(30) if tuple(task.space.oriented(np.array([u, w]))) in allowed(graph)]
        rest = [w for w in partners if (u, w) not in known or (u, w) in seen]
        best = sorted(rest, key=lambda w: -table[u, w])[:20]
        shares.append(np.isin(true, best).mean())
    assert found["recall@20_per_node"] == pytest.approx(np.mean(shares))


def test_hard_negatives_are_for_undirected_pairs() -> None:
    with pytest.raises(InputError, match="undirected graphs without sides"):
        LinkPrediction(directed(), negatives="degree")
