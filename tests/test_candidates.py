"""Missing links by candidate search, against all pairs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

import psgnn.scoring._search as candidates
from conftest import adjacency_of, data_of, random_graphs
from psgnn.datasets import load_dataset
from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.models import build_model
from psgnn.scoring._candidates import nearest_partners, pairs_of, prominent_pairs, walk_partners
from psgnn.scoring._search import top_links
from psgnn.tasks import LinkPrediction, PairClassification
from psgnn.training import fit
from psgnn.training._run import Run


def trained(graphs: Any, epochs: int = 30, model: str = "psgnn", **options: Any) -> Run:
    task = LinkPrediction(graphs, seed=0)
    return fit(build_model(model, task, **options), task, epochs=epochs)


@pytest.fixture(scope="module")
def grid() -> Run:
    """A set decoder on a graph whose pairs are too many to score them all."""
    return trained(load_dataset("grid", rows=20, cols=20), anchors="log", members=1)


@pytest.fixture
def never_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "EXACT_PAIRS", 0)
    monkeypatch.setattr(candidates, "EXACT_EMBEDDED_PAIRS", 0)
    monkeypatch.setattr(candidates, "LEAST_SCORED", 4000)


def unlinked(result: Run) -> IntArray:
    """All pairs of a graph that are not links, one by one."""
    union = result.view.union
    known = {frozenset(pair) for pair in (*union.adjacency.edges().T.tolist(), *result.hidden.T.tolist())}
    pairs = [
        pair
        for first, last in itertools.pairwise(union.ptr.tolist())
        for pair in itertools.combinations(range(first, last), 2)
        if frozenset(pair) not in known
    ]
    return np.array(pairs).T


def recall(result: Run, n: int, seed: int = 0) -> float:
    """The share of the found pairs that belong to the true best n; equal scores count alike."""
    pairs, scores = top_links(result, n, seed=seed)
    assert scores.shape == (n,)
    truth = -np.sort(-result.score(unlinked(result)))
    return float((scores >= truth[n - 1] - 1e-4).mean())


# --- what comes back


def check_links(result: Run, pairs: IntArray, scores: Floats) -> None:
    assert pairs.dtype == np.int64
    assert (np.diff(scores) <= 0).all()
    np.testing.assert_allclose(result.score(pairs), scores, rtol=1e-4, atol=1e-4)
    found = {frozenset(pair) for pair in pairs.T.tolist()}
    assert len(found) == pairs.shape[1]
    assert found <= {frozenset(pair) for pair in unlinked(result).T.tolist()}


def test_all_pairs_of_a_small_graph_are_scored() -> None:
    result = trained(data_of(nx.connected_caveman_graph(4, 6)), epochs=5)
    everything = unlinked(result)
    pairs, scores = top_links(result, 10**6)
    check_links(result, pairs, scores)
    assert pairs.shape[1] == everything.shape[1]  # fewer than asked, and no pair is missing
    truth = -np.sort(-result.score(everything))
    few, best = top_links(result, 7)
    np.testing.assert_allclose(best, truth[:7], rtol=1e-4, atol=1e-4)


def test_links_that_training_hid_are_not_predicted(grid: Run, never_exact: None) -> None:
    assert grid.hidden.shape[1] == 2 * 76  # a tenth for validation, a tenth for the test
    full = load_dataset("grid", rows=20, cols=20)[0].edges
    known = {frozenset(pair) for pair in full.T.tolist()}
    hidden = {frozenset(pair) for pair in grid.hidden.T.tolist()}
    visible = {frozenset(pair) for pair in grid.view.union.adjacency.edges().T.tolist()}
    assert hidden | visible == known
    assert not hidden & visible
    # The model ranks them so high that they would be found.
    shown = Run(**{**vars(grid), "hidden": np.zeros((2, 0), np.int64)})
    pairs, _ = top_links(shown, 80)
    assert {frozenset(pair) for pair in pairs.T.tolist()} & hidden
    pairs, scores = top_links(grid, 80)
    check_links(grid, pairs, scores)
    assert not {frozenset(pair) for pair in pairs.T.tolist()} & known


def test_pairs_of_several_graphs_stay_within_them(never_exact: None) -> None:
    graphs = [data_of(nx.connected_caveman_graph(c, 8)) for c in (3, 14, 5)]
    result = trained(graphs, epochs=5, anchors="log", members=1)
    pairs, scores = top_links(result, 60)
    check_links(result, pairs, scores)
    graph = result.batch.graph_of[pairs]
    assert (graph[0] == graph[1]).all()
    assert np.unique(graph).size > 1


def test_a_complete_graph_has_no_missing_links() -> None:
    graph = data_of(nx.complete_graph(12))
    graph.y = torch.arange(12) % 2
    task = PairClassification(graph)
    result = fit(build_model("gcn", task), task, epochs=1)
    pairs, scores = top_links(result, 5)
    assert pairs.shape == (2, 0)
    assert scores.shape == (0,)


def test_a_seed_gives_the_same_links_again(grid: Run, never_exact: None) -> None:
    first, again = top_links(grid, 50, seed=3), top_links(grid, 50, seed=3)
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


def test_the_number_of_links_is_checked(grid: Run) -> None:
    with pytest.raises(InputError, match="1 or more"):
        top_links(grid, 0)


# --- how good the search is, and what it costs


def test_the_search_finds_the_best_of_a_grid(grid: Run, never_exact: None) -> None:
    assert recall(grid, 100) >= 0.95


def test_the_search_finds_the_best_of_usair(shared_data: Path, never_exact: None) -> None:
    result = trained(load_dataset("seal/USAir", shared_data), anchors="log", members=1)
    assert recall(result, 100) >= 0.95


@pytest.mark.parametrize(
    ("model", "options"),
    [("psgnn", {"decoder": "distance"}), ("psgnn", {"decoder": "dot"}), ("gcn", {}), ("pgnn", {})],
)
def test_the_search_finds_the_best_of_embeddings(
    model: str, options: dict[str, Any], never_exact: None
) -> None:
    graph = data_of(nx.barabasi_albert_graph(500, 3, seed=1))
    assert recall(trained(graph, model=model, **options), 100) >= 0.9


def test_the_search_scores_a_small_part_of_the_pairs(
    grid: Run, never_exact: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    predict = type(grid.model).predict

    def counting(self: Any, view: Any, choice: Any, pairs: torch.Tensor) -> torch.Tensor:
        nonlocal asked
        asked += pairs.size(1)
        return predict(self, view, choice, pairs)

    monkeypatch.setattr(type(grid.model), "predict", counting)
    top_links(replace(grid), 10)  # without the searches of other tests
    assert 100 < asked <= 4100  # of 79,000


# --- proposals against brute force


@given(random_graphs(min_nodes=2))
def test_walk_partners_are_two_and_three_hops_away(graph: nx.Graph) -> None:
    count = graph.number_of_nodes()
    partners = walk_partners(adjacency_of(graph), count)
    for u in graph:
        hops = nx.single_source_shortest_path_length(graph, u)
        for columns, distance in ((partners[u, :count], 2), (partners[u, count:], 3)):
            found = columns[columns >= 0].tolist()
            assert sorted(found) == sorted(v for v, d in hops.items() if d == distance)


def test_walk_partners_of_a_capped_node_are_those_that_most_walks_lead_to() -> None:
    graph = nx.gnp_random_graph(60, 0.15, seed=3)
    partners = walk_partners(adjacency_of(graph), 3)
    for u in graph:
        weight = {v: 0.0 for v in graph if v != u and not graph.has_edge(u, v)}
        for w in graph[u]:
            for v in graph[w]:
                if v in weight:
                    weight[v] += 1 / graph.degree(w)
        best = sorted((value for value in weight.values() if value > 0), reverse=True)[:3]
        found = [weight[v] for v in partners[u, :3].tolist() if v >= 0]
        assert found == pytest.approx(best)


def test_walks_from_hubs_are_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    import psgnn.scoring._candidates as proposals

    monkeypatch.setattr(proposals, "MOST_STEPS", 50)
    graph = nx.barabasi_albert_graph(400, 8, seed=0)
    for u, v in pairs_of(proposals.walk_partners(adjacency_of(graph), 5)).T.tolist():
        assert u != v
        assert not graph.has_edge(u, v)


@pytest.mark.parametrize("dot", [False, True])
def test_trees_find_nearest_nodes(dot: bool) -> None:
    rng = np.random.default_rng(0)
    union = GraphBatch.of_adjacencies([adjacency_of(nx.empty_graph(size)) for size in (1, 700, 90)])
    h = rng.standard_normal((union.num_nodes, 6)).astype(np.float32)
    partners = nearest_partners(union, h, 5, dot=dot, rng=rng)
    assert (partners[0] < 0).all()  # alone in its graph
    near = h @ h.T if dot else -np.square(h[:, None] - h).sum(axis=2)
    hits = 0
    for u in range(1, union.num_nodes):
        g = union.graph_of[u]
        others = [v for v in range(union.ptr[g], union.ptr[g + 1]) if v != u]
        found = set(partners[u][partners[u] >= 0].tolist())
        assert found <= set(others)
        hits += max(others, key=lambda v: near[u, v]) in found
    assert hits / union.num_nodes > 0.5


def test_equal_nodes_do_not_stop_a_tree() -> None:
    union = GraphBatch.of_adjacencies([adjacency_of(nx.empty_graph(1000))])
    h = np.zeros((1000, 3), np.float32)
    partners = nearest_partners(union, h, 4, dot=False, rng=np.random.default_rng(0))
    assert (partners >= 0).all()


def test_prominent_pairs_are_those_of_the_most_prominent_nodes_of_each_graph() -> None:
    union = GraphBatch.of_adjacencies([adjacency_of(nx.empty_graph(size)) for size in (4, 2, 1)])
    pairs = prominent_pairs(union, np.array([1, 9, 3, 7, 5, 5, 2]), 3)
    assert sorted(map(sorted, pairs.T.tolist())) == [[1, 2], [1, 3], [2, 3], [4, 5]]
