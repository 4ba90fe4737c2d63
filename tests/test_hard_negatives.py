"""Hard negatives of link prediction: which pairs, against brute force, and what they do to simple rules."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conftest import adjacency_of
from psgnn.errors import InputError
from psgnn.scoring import score_pairs
from psgnn.tasks import LinkPrediction
from psgnn.tasks import _negatives as module
from psgnn.tasks._metrics import roc_auc
from psgnn.tasks._negatives import hard_negatives
from test_tasks import SEEDS, adjacency_edges, assert_no_leak, data_of, graph_lists, splits_of

HARD = st.sampled_from(["degree", "distance"])


def ends_of(split, label):
    return split.pairs[:, split.labels == label]


def visible_graph(task):
    graph = nx.Graph(list(adjacency_edges(task.union)))
    graph.add_nodes_from(range(task.union.num_nodes))
    return graph


def hops(graph, pairs):
    """Hops between the nodes of each pair; 0 where there is no way."""
    far = dict(nx.all_pairs_shortest_path_length(graph))
    return np.array([far[u].get(v, 0) for u, v in pairs.T.tolist()])


@given(graph_lists(), st.sampled_from([(0.1, 0.1), (0.3, 0.2), (0.05, 0.6)]), SEEDS, HARD)
def test_hard_negatives_keep_the_promises_of_uniform_ones(graphs, shares, seed, negatives):
    try:
        uniform = LinkPrediction(graphs, *shares, seed)
    except InputError:
        assume(False)
    task = LinkPrediction(graphs, *shares, seed, negatives=negatives)
    assert_no_leak(task, graphs)
    for hard, plain in zip(splits_of(task).values(), splits_of(uniform).values(), strict=True):
        assert np.array_equal(ends_of(hard, 1), ends_of(plain, 1))
        assert np.array_equal(hard.graph_ids, plain.graph_ids)
        assert np.array_equal(hard.labels, plain.labels)
    again = LinkPrediction(graphs, *shares, seed, negatives=negatives)
    assert again.digest == task.digest


@pytest.mark.parametrize("negatives", ["degree", "distance"])
def test_the_digest_tells_rules_and_seeds_apart_and_graphs_do_not_depend_on_others(negatives):
    grid, cave = data_of(nx.grid_2d_graph(7, 7)), data_of(nx.caveman_graph(4, 6))
    digests = {LinkPrediction(grid, seed=seed, negatives=rule).digest
               for seed in (0, 1) for rule in ("uniform", "degree", "distance")}  # fmt: skip
    assert len(digests) == 6
    alone = LinkPrediction(grid, seed=3, negatives=negatives)
    together = LinkPrediction([grid, cave, grid], seed=3, negatives=negatives)
    for a, b in zip(splits_of(alone).values(), splits_of(together).values(), strict=True):
        assert np.array_equal(a.pairs, b.pairs[:, b.graph_ids == 0])
    third = together.test.pairs[:, together.test.graph_ids == 2] - together.ptr[2]
    assert not np.array_equal(third, alone.test.pairs)


def degree_gap(task, split):
    """Mean difference of the sorted degrees of negatives and positives, smaller and larger ends apart."""
    degrees = task.union.adjacency.degrees
    found, wanted = (np.sort(np.sort(degrees[ends_of(split, label)], axis=0)) for label in (0, 1))
    return np.abs(found - wanted).mean()


def test_degrees_of_negatives_are_those_of_positives():
    grid = LinkPrediction(data_of(nx.grid_2d_graph(15, 15)), seed=2, negatives="degree")
    assert [degree_gap(grid, split) for split in (grid.val, grid.test)] == [0, 0]
    # Some pairs of hubs have no equals, so the nearest stand in.
    scale_free = data_of(nx.barabasi_albert_graph(300, 3, seed=1))
    hard = LinkPrediction(scale_free, seed=2, negatives="degree")
    uniform = LinkPrediction(scale_free, seed=2)
    for part, plain in ((hard.train, uniform.train), (hard.val, uniform.val), (hard.test, uniform.test)):
        assert degree_gap(hard, part) < 0.1 * degree_gap(uniform, plain)


@pytest.mark.parametrize(
    "graph",
    [nx.grid_2d_graph(15, 15), nx.barabasi_albert_graph(300, 3, seed=1), nx.random_labeled_tree(200, seed=1)],
)
def test_distances_of_negatives_are_those_of_positives_in_the_visible_graph(graph):
    task = LinkPrediction(data_of(graph), seed=2, negatives="distance")
    visible = visible_graph(task)
    for split in (task.val, task.test):
        found, wanted = (np.sort(hops(visible, ends_of(split, label))) for label in (0, 1))
        assert np.array_equal(found, wanted)
    # Training edges are one hop apart, so their negatives are as far apart as the positives of val, as long
    # as there are such pairs.
    found = np.bincount(hops(visible, ends_of(task.train, 0)), minlength=99)
    wanted = np.bincount(hops(visible, ends_of(task.val, 1)), minlength=99)
    assert found / found.sum() == pytest.approx(wanted / wanted.sum(), abs=0.1)


def single_negative(by, positive, visible, full, seed):
    graphs = adjacency_of(visible), adjacency_of(full)
    *_, pair = hard_negatives(by, [positive] * 3, np.array([0, 0, 1]), *graphs, np.random.default_rng(seed))
    return pair[:, 0].tolist()


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5, 0.8]), HARD)
def test_a_single_negative_is_one_of_the_nearest(seed, density, by):
    full = nx.gnp_random_graph(14, density, seed=seed)
    rng = np.random.default_rng(seed)
    edges = rng.permutation(np.array(list(full.edges)).reshape(-1, 2))
    assume(2 <= len(edges) < 14 * 13 // 2)
    visible = full.copy()
    visible.remove_edges_from(edges[: 1 + len(edges) // 3])
    positive = np.sort(edges[0])[:, None]
    u, v = single_negative(by, positive, visible, full, seed)
    assert u < v
    assert not full.has_edge(u, v)

    def key(kept, node):
        if by == "degree":
            return visible.degree[node]
        far = nx.single_source_shortest_path_length(visible, kept)
        return far.get(node, max(far.values()) + 1)

    def free(node):
        return [w for w in full if w != node and not full.has_edge(node, w)]

    def gap(kept, other, w):
        return abs(key(kept, w) - key(kept, other))

    a, b = positive[:, 0].tolist()
    kept = [end for end in (a, b) if visible.degree[end] == max(visible.degree[a], visible.degree[b])]
    kept = [end for end in kept if free(end)] or [end for end in (a, b) if free(end)]
    if kept:
        best = {end: min(gap(end, a + b - end, w) for w in free(end)) for end in kept}
        matches = [end for end in kept if end in (u, v)]
        assert any(gap(end, a + b - end, u + v - end) == best[end] for end in matches)


def test_matching_nodes_are_drawn_equally_often():
    # Node 1 has lost its only link, to node 0: the 7 other nodes without links are as unreachable.
    visible = nx.empty_graph(12)
    visible.add_edges_from([(0, 2), (0, 3), (0, 4)])
    full = nx.Graph(visible)
    full.add_edge(0, 1)
    positive = np.array([[0], [1]])
    drawn = [single_negative("distance", positive, visible, full, seed) for seed in range(700)]
    assert {u for u, _ in drawn} == {0}
    counts = np.bincount([v for _, v in drawn], minlength=12)
    assert counts[:5].sum() == 0
    assert 70 < counts[5:].min() <= counts[5:].max() < 130


def test_without_a_match_the_nearest_stand_in_and_every_free_pair_is_used_up():
    # The hub of a star is linked to all leaves: leaf-leaf pairs are all that there is.
    star = nx.star_graph(6)
    for negatives in ("degree", "distance"):
        data = data_of(star)
        assert_no_leak(LinkPrediction(data, negatives=negatives), [data])
    dense = nx.complete_graph(12)
    dense.remove_edges_from([(0, n) for n in range(1, 7)])
    for negatives in ("degree", "distance"):
        task = LinkPrediction(data_of(dense), negatives=negatives)
        drawn = np.concatenate([ends_of(split, 0) for split in splits_of(task).values()], axis=1)
        assert sorted(map(tuple, drawn.T.tolist())) == [(0, n) for n in range(1, 7)]


@pytest.fixture(scope="module")
def power_law():
    """A Chung-Lu graph: which nodes are linked depends on their expected degrees alone."""
    return data_of(nx.expected_degree_graph(80 / np.arange(1, 1501) ** 0.6, seed=0, selfloops=False))


def auc(rule, task):
    return roc_auc(task.test.labels, score_pairs(rule, task.union, task.test.pairs))


def test_degree_matching_takes_preferential_attachment_away(power_law):
    assert auc("preferential-attachment", LinkPrediction(power_law)) > 0.7
    assert auc("preferential-attachment", LinkPrediction(power_law, negatives="degree")) == pytest.approx(
        0.5, abs=0.01
    )


def test_distance_matching_takes_the_shortest_path_away(power_law):
    grid = data_of(nx.grid_2d_graph(20, 20))
    for data, uniform in ((power_law, 0.6), (grid, 0.85)):
        assert auc("shortest-path", LinkPrediction(data)) > uniform
        hard = LinkPrediction(data, negatives="distance")
        assert auc("shortest-path", hard) == pytest.approx(0.5, abs=0.01)


def test_few_sources_stand_for_all(power_law, monkeypatch):
    monkeypatch.setattr(module, "SEARCH_STEPS", 0)
    monkeypatch.setattr(module, "MIN_SOURCES", 40)
    task = LinkPrediction(power_law, negatives="distance")
    assert_no_leak(task, [power_law])
    negatives = ends_of(task.test, 0)
    assert negatives.shape == ends_of(task.test, 1).shape
    # 40 nodes touch all negatives.
    touched, left = 0, negatives
    while left.size:
        left = left[:, (left != np.bincount(left.ravel()).argmax()).all(axis=0)]
        touched += 1
    assert touched <= 40
    assert auc("shortest-path", task) == pytest.approx(0.5, abs=0.1)


def test_unknown_rule():
    with pytest.raises(InputError, match="unknown negatives 'degrees'; did you mean 'degree'"):
        LinkPrediction(data_of(nx.path_graph(9)), negatives="degrees")
