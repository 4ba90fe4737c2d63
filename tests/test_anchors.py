from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psgnn.anchors._greedy as greedy
from conftest import adjacency_of, data_of, random_graphs
from psgnn.anchors import (
    RULES,
    anchor_count,
    anchor_diagnostics,
    metric_basis,
    minimum_dominating_set,
    select_anchors,
)
from psgnn.anchors import _rules as centrality
from psgnn.datasets import load_dataset
from psgnn.distances import hop_columns
from psgnn.errors import InputError
from psgnn.tasks import LinkPrediction

GRAPHS = {
    "caveman": nx.connected_caveman_graph(6, 6),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 9)),
    "power law": nx.barabasi_albert_graph(120, 2, seed=3),
    "islands": nx.disjoint_union_all([nx.path_graph(20), nx.cycle_graph(9), nx.empty_graph(4)]),
}


def distinct_vectors(graph: nx.Graph, anchors: np.ndarray) -> int:
    return len({tuple(row) for row in hop_columns(adjacency_of(graph), np.asarray(anchors)).tolist()})


# --- what holds for every rule


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_rule_gives_k_distinct_nodes_and_the_seed_alone_decides(rule: str, name: str) -> None:
    data = data_of(GRAPHS[name])
    for k in (1, 5, data.num_nodes):
        anchors = select_anchors(data, rule, k, seed=3)
        assert anchors.dtype == np.int64
        assert anchors.shape == (k,)
        assert len(set(anchors.tolist())) == k
        assert 0 <= anchors.min() <= anchors.max() < data.num_nodes
        assert np.array_equal(anchors, select_anchors(data, rule, k, seed=3))


@pytest.mark.parametrize("rule", ["degree", "closeness", "harmonic", "betweenness", "load"])
def test_a_centrality_rule_does_not_see_the_numbers_of_the_nodes(rule: str) -> None:
    graph = GRAPHS["power law"]
    order = np.random.default_rng(0).permutation(graph.number_of_nodes())
    moved = nx.empty_graph(graph.number_of_nodes())
    moved.add_edges_from((order[u], order[v]) for u, v in graph.edges)
    score = getattr(centrality, rule)
    here = score(adjacency_of(graph))[select_anchors(data_of(graph), rule, 9)]
    there = score(adjacency_of(moved))[select_anchors(data_of(moved), rule, 9)]
    assert np.allclose(here, there)


@pytest.mark.parametrize(
    ("k", "seed"), [(2.9, 0), (None, 0), ("\N{SUPERSCRIPT TWO}", 0), (0, 0), (-3, 0), (2, -1)]
)
def test_numbers_of_anchors_and_seeds_that_cannot_be(k: object, seed: int) -> None:
    with pytest.raises(InputError):
        select_anchors(data_of(nx.path_graph(5)), "degree", k, seed=seed)


@pytest.mark.parametrize("rule", RULES)
def test_different_seeds_break_ties_differently(rule: str) -> None:
    data = data_of(nx.cycle_graph(40))  # every node is equal to every other
    chosen = {tuple(select_anchors(data, rule, 3, seed=seed).tolist()) for seed in range(6)}
    assert len(chosen) > 1


# --- centralities against networkx


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (centrality.degree, nx.degree_centrality),
        (centrality.closeness, nx.closeness_centrality),
        (centrality.harmonic, nx.harmonic_centrality),
        (centrality.betweenness, nx.betweenness_centrality),
        (centrality.load, nx.load_centrality),
    ],
)
def test_centralities_agree_with_networkx(name: str, ours: object, theirs: object) -> None:
    graph = GRAPHS[name]
    expected = theirs(graph)  # type: ignore[operator]
    assert np.allclose(ours(adjacency_of(graph)), [expected[v] for v in range(len(expected))])  # type: ignore[operator]


@given(random_graphs(min_nodes=3, max_nodes=25))
def test_flow_centralities_agree_with_networkx_on_any_graph(graph: nx.Graph) -> None:
    adjacency = adjacency_of(graph)
    for ours, theirs in (
        (centrality.betweenness, nx.betweenness_centrality),
        (centrality.load, nx.load_centrality),
    ):
        expected = theirs(graph)
        assert np.allclose(ours(adjacency), [expected[v] for v in range(len(expected))])


def test_centrality_rules_pick_the_largest() -> None:
    graph = GRAPHS["power law"]
    for rule, theirs in (("betweenness", nx.betweenness_centrality), ("closeness", nx.closeness_centrality)):
        scores = theirs(graph)
        best = sorted(scores.values(), reverse=True)[:6]
        picked = select_anchors(data_of(graph), rule, 6).tolist()
        assert np.allclose([scores[v] for v in picked], best)


# --- farthest-first


@given(random_graphs(min_nodes=2), st.integers(0, 5))
def test_farthest_first_always_takes_a_farthest_node(graph: nx.Graph, seed: int) -> None:
    k = min(6, graph.number_of_nodes())
    anchors = select_anchors(data_of(graph), "farthest-first", k, seed=seed)
    hops = hop_columns(adjacency_of(graph), np.arange(graph.number_of_nodes())).astype(float)
    for v, component in ((v, c) for c in nx.connected_components(graph) for v in c):
        hops[v, hops[v] < 0] = len(component) - 1
    for i in range(1, k):
        nearest = hops[:, anchors[:i]].min(axis=1)
        nearest[anchors[:i]] = -1
        assert nearest[anchors[i]] == nearest.max()


def test_farthest_first_leaves_isolated_nodes_for_last() -> None:
    graph = nx.disjoint_union(nx.empty_graph(30), nx.grid_2d_graph(6, 6))
    anchors = select_anchors(data_of(graph), "farthest-first", 36)
    assert (anchors >= 30).all()


# --- greedy resolving and coverage


def test_greedy_resolving_takes_the_best_node_in_every_step() -> None:
    graph = GRAPHS["grid"]
    anchors = select_anchors(data_of(graph), "greedy-resolving", 4).tolist()
    columns = hop_columns(adjacency_of(graph), np.arange(63))

    def left_together(chosen: list[int]) -> int:
        _, counts = np.unique(columns[:, chosen], axis=0, return_counts=True)
        return int((counts**2).sum())

    for i in range(2):
        best = min(left_together([*anchors[:i], v]) for v in range(63))
        assert left_together(anchors[: i + 1]) == best


def test_greedy_resolving_resolves_a_grid_with_three_anchors() -> None:
    data = data_of(GRAPHS["grid"])
    anchors = select_anchors(data, "greedy-resolving", 3)
    assert anchor_diagnostics(data, anchors)["resolving"] == 1


def test_greedy_rules_beyond_the_candidate_limit_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_of(nx.connected_caveman_graph(40, 8))
    full = select_anchors(data, "greedy-resolving", 20)
    best_cover = select_anchors(data, "greedy-coverage", 8)
    monkeypatch.setattr(greedy, "ALL_CANDIDATES", 30)
    monkeypatch.setattr(greedy, "SAMPLED_CANDIDATES", 70)
    sampled = select_anchors(data, "greedy-resolving", 20)
    cover = select_anchors(data, "greedy-coverage", 8)
    chance = np.mean(
        [anchor_diagnostics(data, select_anchors(data, "random", 20, seed=s))["resolving"] for s in range(10)]
    )
    measured = [anchor_diagnostics(data, anchors)["resolving"] for anchors in (full, sampled)]
    assert measured[0] > chance
    assert measured[1] > chance
    assert len(set(cover.tolist())) == 8
    covered = [anchor_diagnostics(data, anchors)["coverage"] for anchors in (best_cover, cover)]
    assert covered[0] >= covered[1] > 0.5


def test_greedy_coverage_takes_the_best_node_in_every_step() -> None:
    graph = GRAPHS["power law"]
    anchors = greedy.greedy_coverage(adjacency_of(graph), 6, np.random.default_rng(0), hops=1).tolist()
    covered: set[int] = set()
    for anchor in anchors:
        gains = {v: len(({v} | set(graph[v])) - covered) for v in graph}
        assert gains[anchor] == max(gains.values())
        covered |= {anchor} | set(graph[anchor])


def test_greedy_coverage_starts_anew_when_all_is_covered() -> None:
    anchors = greedy.greedy_coverage(adjacency_of(nx.star_graph(9)), 10, np.random.default_rng(0), hops=1)
    assert anchors[0] == 0
    assert sorted(anchors.tolist()) == list(range(10))


# --- counts and bad input


def test_anchor_count_follows_the_paper() -> None:
    assert [anchor_count(n, "log") for n in (1, 2, 16, 400, 4096)] == [1, 1, 4, 8, 12]
    assert [anchor_count(n, "log^2") for n in (1, 2, 3, 16, 400)] == [1, 1, 2, 16, 74]
    assert anchor_count(5, "log^2") == 5


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (7, "7 anchors were asked of a graph of 4 nodes; ask for 1..4"),
        (0, "0 anchors were asked"),
        ("many", r"must be log, log\^2 or an integer, found 'many'"),
    ],
)
def test_impossible_numbers_of_anchors_are_refused(k: int | str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        select_anchors(data_of(nx.path_graph(4)), "degree", k)


def test_an_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(
        InputError, match="unknown anchor rule 'fartest-first'; did you mean 'farthest-first'"
    ):
        select_anchors(data_of(nx.path_graph(4)), "fartest-first", 1)


# --- diagnostics


def test_diagnostics_of_a_path_by_hand() -> None:
    path = data_of(nx.path_graph(7))
    assert anchor_diagnostics(path, np.array([0]), hops=2) == {
        "coverage": 3 / 7, "overlap": 0.0, "resolving": 1.0, "symmetric_pairs": 0,
    }  # fmt: skip
    both_ends = anchor_diagnostics(path, [0, 6], hops=3)
    assert both_ends == {"coverage": 1.0, "overlap": 1 / 7, "resolving": 1.0, "symmetric_pairs": 1}
    assert anchor_diagnostics(path, [3], hops=1)["resolving"] == 4 / 7


def test_symmetric_pairs_agree_with_networkx_colour_refinement() -> None:
    for graph in (*GRAPHS.values(), nx.petersen_graph(), nx.balanced_tree(2, 4)):
        nx.set_node_attributes(graph, 0, "feature")
        rounds = graph.number_of_nodes() // 2
        colours = nx.weisfeiler_lehman_subgraph_hashes(graph, node_attr="feature", iterations=rounds)
        nodes = list(range(0, graph.number_of_nodes(), 2))
        expected = sum(colours[u][-1] == colours[v][-1] for u, v in combinations(nodes, 2))
        assert anchor_diagnostics(data_of(graph), nodes)["symmetric_pairs"] == expected


def test_diagnostics_refuse_what_they_cannot_measure() -> None:
    path = data_of(nx.path_graph(3))
    with pytest.raises(InputError, match="no anchors"):
        anchor_diagnostics(path, np.empty(0, np.int64))
    with pytest.raises(InputError, match="anchor 9 is not a node"):
        anchor_diagnostics(path, [9])
    with pytest.raises(InputError, match="hops must be"):
        anchor_diagnostics(path, [0], hops=-1)


# --- exact optima


@given(random_graphs(min_nodes=1, max_nodes=9))
def test_exact_optima_agree_with_brute_force(graph: nx.Graph) -> None:
    pytest.importorskip("ortools", reason="the 'exact' extra is not installed")
    nodes = range(graph.number_of_nodes())
    columns = hop_columns(adjacency_of(graph), np.arange(len(nodes)))
    near = (columns >= 0) & (columns <= 1)

    def smallest(good: object) -> int:
        return next(k for k in range(1, 10) for s in combinations(nodes, k) if good(list(s)))  # type: ignore[operator]

    dominating = minimum_dominating_set(data_of(graph), hops=1)
    assert near[:, dominating].any(axis=1).all()
    assert dominating.size == smallest(lambda s: near[:, s].any(axis=1).all())
    basis = metric_basis(data_of(graph))
    assert distinct_vectors(graph, basis) == len(nodes)
    assert basis.size == smallest(lambda s: distinct_vectors(graph, s) == len(nodes))


def test_exact_optima_of_graphs_with_known_answers() -> None:
    pytest.importorskip("ortools", reason="the 'exact' extra is not installed")
    assert metric_basis(data_of(nx.grid_2d_graph(10, 10))).size == 2
    assert metric_basis(data_of(nx.complete_graph(12))).size == 11
    assert metric_basis(data_of(nx.petersen_graph())).size == 3
    assert minimum_dominating_set(data_of(nx.path_graph(30))).size == 10
    assert minimum_dominating_set(data_of(nx.path_graph(30)), hops=3).size == 5


def test_exact_optima_refuse_large_graphs() -> None:
    with pytest.raises(InputError, match=r"for graphs of 1..1000 nodes, found 1001"):
        metric_basis(data_of(nx.path_graph(1001)))


def test_path_counts_do_not_grow_from_source_to_source() -> None:
    """A grid has up to 1e27 shortest paths between two nodes: many, but no more from one source than from the next."""
    (grid,) = load_dataset("grid", rows=48, cols=48)
    holed = LinkPrediction(grid, seed=100).union.adjacency
    scores = centrality.betweenness(holed)
    assert np.isfinite(scores).all()
    assert scores[holed.degrees <= 1].max() == 0
