"""Anchors that are learned from training pairs, their control, and the rule of the best preset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from conftest import data_of, random_graphs
from psgnn.anchors import select_anchors
from psgnn.anchors._greedy import farthest_first
from psgnn.errors import InputError
from psgnn.models import TensorView, build_model, view_of
from psgnn.models._boosted import LearnedPicker
from psgnn.models._config import LEARNED_PICKERS
from psgnn.models._interfaces import Seen
from psgnn.tasks import LabelledPairs, LinkPrediction, PairClassification
from psgnn.training import Run, fit

CAVES = nx.connected_caveman_graph(4, 6)
RANDOM = nx.gnp_random_graph(20, 0.2, seed=4)


def seen(view: TensorView, pairs: Any, labels: Any) -> Seen:
    return view, LabelledPairs(pairs, labels.astype(np.float32), view.union.graph_of[pairs[0]])


def evidence(view: TensorView, *, graphs: tuple[int, ...] = (0,), seed: int = 0) -> Seen:
    """All pairs of these graphs, labelled by chance."""
    pairs = [np.stack(np.triu_indices(view.union.sizes[g], 1)) + view.union.ptr[g] for g in graphs]
    joined = np.concatenate(pairs, axis=1).astype(np.int64)
    labels = np.random.default_rng(seed).integers(0, 2, joined.shape[1]).astype(np.float64)
    return seen(view, joined, labels)


def learned(method: str, view: TensorView, known: Seen, k: int | str = 5, seed: int = 0) -> torch.Tensor:
    picker = LearnedPicker(method, k, seed)
    picker.learn(view, [known], known)
    return picker(view).nodes


# --- learned anchors


@pytest.mark.parametrize("k", [1, 5, "log^2", 20])
@pytest.mark.parametrize("method", LEARNED_PICKERS)
def test_anchors_are_distinct_nodes_of_their_graph(method: str, k: int | str) -> None:
    view = view_of([data_of(RANDOM), data_of(nx.path_graph(6)), data_of(CAVES)])
    nodes = learned(method, view, evidence(view, graphs=(0, 1, 2)), k)
    for g, row in enumerate(nodes):
        own = row[row >= 0]
        size = int(view.union.sizes[g])
        assert own.numel() == (int(np.log2(size) ** 2) if k == "log^2" else min(k, size))
        assert own.unique().numel() == own.numel()
        assert (torch.from_numpy(view.union.graph_of)[own] == g).all()
        assert (row[own.numel() :] == -1).all()


@pytest.mark.parametrize("method", LEARNED_PICKERS)
def test_one_seed_gives_one_set_of_anchors(method: str) -> None:
    first, second = (view_of([data_of(RANDOM)]) for _ in range(2))
    state = torch.random.get_rng_state()
    nodes = learned(method, first, evidence(first))
    assert nodes.equal(learned(method, second, evidence(second)))
    assert torch.equal(state, torch.random.get_rng_state())
    other_labels = learned(method, first, evidence(first, seed=3))
    assert not nodes.equal(other_labels)


def test_random_search_is_another_choice_that_depends_on_its_seed() -> None:
    view = view_of([data_of(RANDOM)])
    known = evidence(view)
    boosted, searched = (
        set(learned(method, view, known)[0].tolist()) for method in ("boosted", "random-search")
    )
    assert boosted != searched
    assert searched != set(learned("random-search", view, known, seed=1)[0].tolist())


def alike(*planted: int) -> Seen:
    """All pairs of a graph, labelled 1 where both nodes are as far from one of the planted nodes."""
    graph = nx.gnp_random_graph(30, 0.12, seed=1)
    view = view_of([data_of(graph)])
    pairs = evidence(view)[1].pairs
    far = np.array([nx.single_source_shortest_path_length(graph, p)[v] for p in planted for v in graph])
    far = far.reshape(len(planted), -1)
    return seen(view, pairs, (far[:, pairs[0]] == far[:, pairs[1]]).any(axis=0).astype(np.float64))


@pytest.mark.parametrize("planted", [0, 5, 12, 29])
def test_boosting_finds_the_node_that_decides(planted: int) -> None:
    known = alike(planted)
    assert learned("boosted", known[0], known, k=3)[0, 0] == planted


@pytest.mark.parametrize("planted", [(1, 17), (4, 29), (5, 18)])
def test_boosting_goes_on_with_what_the_first_anchor_leaves_open(planted: tuple[int, int]) -> None:
    """The second node that decides comes next, before one that by itself explains more but resembles the first."""
    known = alike(*planted)
    assert set(learned("boosted", known[0], known, k=2)[0].tolist()) == set(planted)


def test_random_search_keeps_the_set_that_validation_prefers() -> None:
    """With one anchor and as many draws as nodes, the node that decides is often drawn, and then it is kept."""
    known = alike(12)
    found = [int(learned("random-search", known[0], known, 1, seed)[0, 0]) for seed in range(12)]
    assert found.count(12) >= 4  # 63 in 100 seeds draw it; by chance alone it would be kept in 3


@pytest.mark.parametrize("method", LEARNED_PICKERS)
@pytest.mark.parametrize("label", [None, 0.0, 1.0])
def test_a_graph_without_pairs_of_both_kinds_gets_farthest_first_anchors(
    method: str, label: float | None
) -> None:
    view = view_of([data_of(CAVES), data_of(RANDOM)])
    known = evidence(view, graphs=(1,) if label is None else (0, 1))
    if label is not None:
        known[1].labels[known[1].graph_ids == 0] = label
    nodes = learned(method, view, known)
    expected = farthest_first(view.union.graph(0), 5, np.random.default_rng([0, 0]))
    assert nodes[0].tolist() == expected.tolist()
    other = farthest_first(view.union.graph(1), 5, np.random.default_rng([0, 1])) + view.union.ptr[1]
    assert nodes[1].tolist() != other.tolist()


def test_anchors_are_learned_in_the_graph_that_hides_the_pairs() -> None:
    """Evidence of several views counts each in its own: distances change when edges are hidden."""
    view = view_of([data_of(nx.cycle_graph(12))])
    opened = view_of([data_of(nx.path_graph(12))])  # the cycle without its edge (11, 0)
    known = evidence(view)[1]
    ends = np.minimum(known.pairs, 11 - known.pairs)
    labels = (ends[0] == ends[1]).astype(np.float64)  # alike as seen from no node of the cycle
    picker = LearnedPicker("boosted", 2)
    picker.learn(view, [seen(opened, known.pairs, labels)], seen(view, known.pairs, labels))
    in_opened = picker(view).nodes
    picker.learn(view, [seen(view, known.pairs, labels)], seen(view, known.pairs, labels))
    assert not in_opened.equal(picker(view).nodes)


@pytest.mark.parametrize("method", LEARNED_PICKERS)
def test_other_graphs_get_farthest_first_anchors(method: str) -> None:
    view, stranger = view_of([data_of(RANDOM)]), view_of([data_of(nx.path_graph(9))])
    picker = LearnedPicker(method, 4)
    picker.learn(view, [evidence(view)], evidence(view))
    expected = farthest_first(stranger.union.graph(0), 4, np.random.default_rng([0, 0]))
    assert picker(stranger).nodes[0].tolist() == expected.tolist()


def test_an_anchor_that_decides_explains_more_than_the_next() -> None:
    known = alike(12)
    picker = LearnedPicker("boosted", 3)
    picker.learn(known[0], [known], known)
    first, second, third = picker.explained[0]
    assert first > second - first > third - second >= 0


# --- the preset


@pytest.mark.parametrize("kind", [0, 1])
def test_the_preset_scores_by_its_embeddings_alone(kind: int) -> None:
    task = tasks()[kind]
    result = fit(build_model("psgnn", task, preset="learned"), task, epochs=30)
    pairs = task.test.pairs
    scorer = result.evaluation_scorer()
    vectors = scorer.embed()
    apart = np.linalg.norm(vectors[pairs[0]] - vectors[pairs[1]], axis=1)
    assert np.array_equal(np.argsort(scorer.score(pairs), kind="stable"), np.argsort(-apart, kind="stable"))
    assert vectors.shape[1] == len(result.anchors[0]) == 4  # log2 of 24 nodes


def test_the_preset_is_for_psgnn_alone() -> None:
    with pytest.raises(InputError, match="preset learned is for model psgnn, found gcn"):
        build_model("gcn", tasks()[0], preset="learned")


# --- in training


def tasks() -> list[LinkPrediction | PairClassification]:
    data = data_of(CAVES)
    data.y = torch.arange(24) // 6
    return [LinkPrediction(data), PairClassification(data)]


def train(task: LinkPrediction | PairClassification, **options: Any) -> Run:
    return fit(build_model("psgnn", task, hidden=8, eval_every=2, **options), task, epochs=4)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("picker", [*LEARNED_PICKERS, "mixed"])
def test_nothing_is_decided_by_the_test_pairs(picker: str, kind: int) -> None:
    """Shuffled test labels change the test metrics and nothing else."""
    task, other = tasks()[kind], tasks()[kind]
    order = np.random.default_rng(0).permutation(other.test.labels.size)
    other.test = replace(other.test, labels=other.test.labels[order])
    a, b = (train(one, picker=picker, anchors=6) for one in (task, other))
    assert a.test != b.test
    assert a.history == b.history
    assert a.val == b.val
    assert a.anchors == b.anchors
    weights = a.model.state_dict()
    assert all(torch.equal(value, weights[key]) for key, value in b.model.state_dict().items())


@pytest.mark.parametrize("picker", LEARNED_PICKERS)
def test_training_keeps_the_learned_anchors(picker: str) -> None:
    task = tasks()[1]
    result = train(task, picker=picker, anchors=6)
    known = (view_of(task.graphs), task.train, task.val)
    training, validation = ((known[0], split) for split in known[1:])
    alone = LearnedPicker(picker, 6)
    alone.learn(known[0], [training], validation)
    assert result.anchors == alone(known[0]).nodes.tolist()
    assert result.record["explained"] == alone.explained
    assert result.record["choosing_seconds"] >= 0


# --- the rule of the best preset


@settings(max_examples=15)
@given(random_graphs(min_nodes=2, max_nodes=20))
def test_mixed_gives_distinct_nodes_for_every_k(graph: nx.Graph) -> None:
    data = data_of(graph)
    for k in range(1, len(graph) + 1):
        found = select_anchors(data, "mixed", k)
        assert np.unique(found).size == found.size == k
        assert 0 <= found.min() <= found.max() < len(graph)
        assert np.array_equal(found, select_anchors(data, "mixed", k))


def test_mixed_alternates_spread_nodes_with_nodes_drawn_by_degree() -> None:
    hubs = nx.disjoint_union(nx.star_graph(60), nx.path_graph(30))
    view = view_of([data_of(hubs)])
    drawn = []
    for seed in range(40):
        found = select_anchors(data_of(hubs), "mixed", 6, seed)
        spread = farthest_first(view.union.graph(0), 3, np.random.default_rng(seed))
        assert found[::2].tolist() == spread.tolist()
        drawn.append(set(found[1::2].tolist()))
    # The hub has a third of all degrees; three uniform draws of 90 would have it once in 30 sets.
    assert sum(0 in chosen for chosen in drawn) > 15
    assert len(set(map(frozenset, drawn))) > 20
