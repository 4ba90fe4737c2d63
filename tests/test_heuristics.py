from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import adjacency_of, data_of, random_graphs
from psgnn.distances._oracle import hops_between
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch
from psgnn.kernels import _pairs as kernels
from psgnn.scoring import HEURISTICS, score_pairs
from psgnn.scoring import _rules as rules


def all_pairs(graph: nx.Graph) -> tuple[GraphBatch, np.ndarray]:
    pairs = np.array(list(combinations(range(graph.number_of_nodes()), 2)), dtype=np.int64).reshape(-1, 2).T
    return GraphBatch.of([data_of(graph)]), pairs


@given(random_graphs(min_nodes=2))
def test_hops_between_agree_with_networkx(graph: nx.Graph) -> None:
    union, pairs = all_pairs(graph)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = np.array([lengths[u].get(v, -1) for u, v in pairs.T])
    assert np.array_equal(hops_between(union.adjacency, pairs), expected)
    assert np.array_equal(hops_between(union.adjacency, pairs[::-1]), expected)
    short = hops_between(union.adjacency, pairs, cutoff=2)
    assert np.array_equal(short, np.where(expected > 2, -1, expected))
    same = np.array([[0], [0]])
    assert hops_between(union.adjacency, same).tolist() == [0]


@given(st.lists(random_graphs(min_nodes=6, max_nodes=6), min_size=2, max_size=4))
def test_kernels_of_pairs_do_not_see_what_was_marked_before(graphs: list[nx.Graph]) -> None:
    def measured(graph: nx.Graph, fresh: bool) -> list[np.ndarray]:
        union, pairs = all_pairs(graph)
        found = np.empty((pairs.shape[1], 6)), np.empty(pairs.shape[1])
        for kernel, out in zip((kernels.local_walks, kernels.pair_hops), found, strict=True):
            if fresh:
                kernels._scratch = kernels._Scratch()
            kernel(union.adjacency.indptr, union.adjacency.indices, *pairs, 100, out)
        return list(found)

    expected = [measured(graph, fresh=True) for graph in graphs]
    for graph, wanted in zip(graphs, expected, strict=True):
        assert all(map(np.array_equal, measured(graph, fresh=False), wanted))


@given(random_graphs(min_nodes=2))
def test_neighbour_rules_agree_with_networkx(graph: nx.Graph) -> None:
    union, pairs = all_pairs(graph)
    pairs_list = [tuple(pair) for pair in pairs.T.tolist()]
    expected = {
        "common-neighbours": [len(list(nx.common_neighbors(graph, u, v))) for u, v in pairs_list],
        "adamic-adar": [score for _, _, score in nx.adamic_adar_index(graph, pairs_list)],
        "resource-allocation": [score for _, _, score in nx.resource_allocation_index(graph, pairs_list)],
        "preferential-attachment": [(graph.degree(u) + 1) * (graph.degree(v) + 1) for u, v in pairs_list],
    }
    for name, scores in expected.items():
        assert np.allclose(score_pairs(name, union, pairs), scores), name


@given(random_graphs(min_nodes=2))
def test_pagerank_agrees_with_dense_algebra(graph: nx.Graph) -> None:
    union, pairs = all_pairs(graph)
    dense = nx.to_numpy_array(graph)
    dense[np.diag_indices_from(dense)] = dense.sum(axis=0) == 0
    exact = rules.RESTART * np.linalg.inv(
        np.eye(len(dense)) - (1 - rules.RESTART) * dense / dense.sum(axis=0)
    )
    expected = exact[pairs[0], pairs[1]] + exact[pairs[1], pairs[0]]
    assert np.allclose(score_pairs("pagerank", union, pairs), expected, atol=1e-4)


def test_shortest_path_puts_unreachable_pairs_last() -> None:
    union, pairs = all_pairs(nx.disjoint_union(nx.path_graph(5), nx.path_graph(3)))
    scores = score_pairs("shortest-path", union, pairs)
    apart = (pairs[0] < 5) != (pairs[1] < 5)
    assert scores[apart].max() < scores[~apart].min()


def test_spectral_rows_are_those_of_a_dense_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    adjacency = adjacency_of(nx.barabasi_albert_graph(150, 3, seed=2))
    dense = rules.spectral_embedding(adjacency, 6)
    monkeypatch.setattr(rules, "DENSE_NODES", 0)
    sparse = rules.spectral_embedding(adjacency, 6)
    assert np.allclose(dense @ dense.T, sparse @ sparse.T, atol=1e-3)


def test_spectral_cosine_puts_two_cliques_apart() -> None:
    union, pairs = all_pairs(nx.barbell_graph(10, 0))
    scores = score_pairs("spectral-cosine", union, pairs)
    together = (pairs[0] < 10) == (pairs[1] < 10)
    assert scores[together].min() > scores[~together].max()


def test_anchor_l1_orders_a_path_by_distance() -> None:
    union, pairs = all_pairs(nx.path_graph(40))
    scores = score_pairs("anchor-l1", union, pairs)
    assert np.corrcoef(scores, -(pairs[1] - pairs[0]))[0, 1] > 0.95


def test_a_pair_without_a_common_anchor_is_neither_near_nor_far() -> None:
    graph = nx.disjoint_union(nx.path_graph(40), nx.empty_graph(1))
    scores = score_pairs("anchor-l1", GraphBatch.of([data_of(graph)]), np.array([[0, 0, 0], [1, 39, 40]]))
    assert scores[0] > scores[2] > scores[1]


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_union_scores_as_its_graphs_do_one_by_one(name: str) -> None:
    shapes = [nx.barabasi_albert_graph(60, 2, seed=1), nx.grid_2d_graph(6, 7)]
    union = GraphBatch.of([data_of(shape) for shape in shapes])
    rng = np.random.default_rng(0)
    first = rng.integers(0, 60, (2, 40))
    alone = score_pairs(name, GraphBatch.of([data_of(shapes[0])]), first, seed=4)
    together = score_pairs(name, union, np.concatenate([first, 60 + rng.integers(0, 42, (2, 40))], axis=1), 4)
    unreachable = alone <= -60 if name == "shortest-path" else np.zeros(40, bool)
    assert np.allclose(alone[~unreachable], together[:40][~unreachable])


@pytest.mark.parametrize("name", HEURISTICS)
def test_scores_are_symmetric_finite_and_repeatable(name: str) -> None:
    graph = nx.disjoint_union(nx.watts_strogatz_graph(300, 4, 0.2, seed=0), nx.empty_graph(3))
    union = GraphBatch.of([data_of(graph)])
    pairs = np.random.default_rng(1).integers(0, 303, (2, 500))
    pairs = pairs[:, pairs[0] != pairs[1]]
    scores = score_pairs(name, union, pairs, seed=2)
    assert scores.shape == (pairs.shape[1],)
    assert np.isfinite(scores).all()
    assert np.array_equal(scores, score_pairs(name, union, pairs, seed=2))
    assert np.allclose(scores, score_pairs(name, union, pairs[::-1], seed=2), atol=1e-5)


def test_an_unknown_rule_names_the_nearest() -> None:
    union, pairs = all_pairs(nx.path_graph(3))
    with pytest.raises(InputError, match="unknown training-free rule 'adamic'; did you mean 'adamic-adar'"):
        score_pairs("adamic", union, pairs)
