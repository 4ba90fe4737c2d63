"""Node states: trainable vectors of nodes beside what is measured about them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

import psgnn
import psgnn.training._fit as training
from conftest import adjacency_of, data_of
from psgnn import Graph
from psgnn.errors import InputError
from psgnn.models import build_model, view_of
from psgnn.models._states import NodeStates
from psgnn.tasks import LinkPrediction, PairClassification
from psgnn.training import Run, fit, load
from psgnn.training._compare import Method, make_task, measure

CAVES = nx.connected_caveman_graph(5, 6)
SMALL: dict[str, Any] = {"states": 8, "hidden": 8, "members": 1, "eval_every": 4, "state_edges": 0.6}


def link_task(seed: int = 0) -> LinkPrediction:
    return LinkPrediction(data_of(CAVES), seed=seed)


def trained(
    task: psgnn.tasks.Task, out: Path | None = None, *, epochs: int = 12, refit: bool = False, **options: Any
) -> Run:
    return fit(build_model("psgnn", task, **(SMALL | options)), task, epochs=epochs, out=out, refit=refit)


def states_of(nodes: int, width: int = 4, **options: Any) -> NodeStates:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"layers": 2, "depth": 2, "dropout": 0.0, "share": 1.0}
    return NodeStates(nodes, width, **(settings | options))


# --- the part


@pytest.mark.parametrize("share", [0.3, 0.02])  # a matrix, and sums over the edges
def test_propagation_is_that_of_the_formula(share: float) -> None:
    graph = nx.gnp_random_graph(12, share, seed=1)
    graph.add_node(12)  # without links
    view, states = view_of([data_of(graph)]), states_of(13).eval()
    assert (view.dense is None) == (share < 0.1)
    a = torch.from_numpy(nx.to_numpy_array(graph)).float()
    scale = a.sum(dim=1).clamp(min=1).rsqrt()
    h, (first, second) = states.vectors, states.layers
    h = h + first(scale[:, None] * a @ (scale[:, None] * h)).relu()
    h = h + second(scale[:, None] * a @ (scale[:, None] * h))
    assert torch.allclose(states.propagated(view), h, atol=1e-6)
    pairs = torch.tensor([[0, 3, 12], [5, 3, 1]])
    assert torch.allclose(states(view, pairs), states.mlp(h[pairs[0]] * h[pairs[1]]), atol=1e-6)
    assert states(view, pairs).shape == (3, 4)


def test_vectors_start_orthogonal() -> None:
    vectors = states_of(40, 8).vectors.detach()
    gram = vectors.T @ vectors
    assert torch.allclose(gram, gram[0, 0] * torch.eye(8), atol=1e-4)
    assert float(vectors.square().mean().sqrt()) == pytest.approx(0.5)


def test_what_is_kept_is_forgotten_when_weights_or_graphs_change() -> None:
    caves, ring = (view_of([data_of(graph)]) for graph in (CAVES, nx.cycle_graph(30)))
    states = states_of(30).eval()
    with torch.no_grad():
        first = states.propagated(caves)
        assert states.propagated(caves) is first
        assert not torch.equal(states.propagated(ring), first)
        assert torch.equal(states.propagated(caves), first)
        states.vectors.add_(1)
        assert not torch.equal(states.propagated(caves), first)


def test_a_training_step_propagates_over_some_of_the_edges() -> None:
    view, states = view_of([data_of(CAVES)]), states_of(30, share=0.5)
    torch.manual_seed(1)
    a, b = states.propagated(view), states.propagated(view)
    assert not torch.equal(a, b)
    torch.manual_seed(1)
    assert torch.equal(states.propagated(view), a)
    states.eval()
    assert torch.equal(states.propagated(view), states.propagated(view))


@pytest.mark.parametrize("share", [1.0, 0.999999])  # a matrix, and sums over the edges
def test_graphs_do_not_mix(share: float) -> None:
    view, states = view_of([data_of(CAVES), data_of(nx.cycle_graph(6))]), states_of(36, share=share)
    states.propagated(view)[30:].square().sum().backward()
    assert states.vectors.grad is not None
    touched = states.vectors.grad.abs().sum(dim=1) > 0
    assert touched.tolist() == [False] * 30 + [True] * 6


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="states=8 goes with decoder=set or encoder=states, found"):
        build_model("psgnn", link_task(), states=8, decoder="distance")
    with pytest.raises(InputError, match="encoder=states needs vectors"):
        build_model("gcn", link_task(), encoder="states", decoder="product")
    with pytest.raises(InputError, match="encoder=states has no anchors, found picker=mixed"):
        build_model("psgnn", link_task(), encoder="states", decoder="product", states=8)
    states = states_of(30)
    with pytest.raises(InputError, match="a vector for each of 30 nodes, the graph has 6"):
        states.propagated(view_of([data_of(nx.cycle_graph(6))]))


# --- in a run


def test_they_are_off_unless_asked_for() -> None:
    assert build_model("psgnn", link_task()).config.states == 0
    model = build_model("psgnn", link_task(), **SMALL)
    assert model.config.nodes == 30
    assert model.state_dict()["decoder.states.vectors"].shape == (30, 8)


def test_a_seed_gives_one_run() -> None:
    task = link_task()
    a, b = trained(task), trained(task)
    assert np.array_equal(a.score(task.test.pairs), b.score(task.test.pairs))
    other = trained(task, states=0)
    assert not np.array_equal(a.score(task.test.pairs), other.score(task.test.pairs))


def test_an_interrupted_run_resumes_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, options = link_task(), {"clip": 1.0, "keep": "last"}
    whole, step = trained(task, **options), training._Trainer._epoch

    def interrupt_once(self: Any, number: int) -> float:
        if number == 7:
            monkeypatch.setattr(training._Trainer, "_epoch", step)
            raise KeyboardInterrupt
        return step(self, number)

    monkeypatch.setattr(training._Trainer, "_epoch", interrupt_once)
    with pytest.raises(KeyboardInterrupt):
        trained(task, tmp_path / "run", **options)
    resumed = trained(task, tmp_path / "run", **options)
    assert resumed.test == whole.test
    assert [entry["epoch"] for entry in resumed.history] == [4, 8, 12]
    loaded = load(tmp_path / "run")
    for found in (resumed, loaded):
        assert np.array_equal(found.score(task.test.pairs), whole.score(task.test.pairs))


def test_no_answer_leaks() -> None:
    """With all answers of the test turned round its scores stay, so its AUC becomes the rest to one."""
    graph = Graph.from_edges(adjacency_of(CAVES).edges(), 30)
    method = Method("psgnn", "model", options=SMALL)
    task, other = (make_task([graph], "link", seed=0) for _ in range(2))
    other.test = replace(task.test, labels=1 - task.test.labels)
    a, b = (measure(method, each, seed=0, epochs=4)["test"]["auc"] for each in (task, other))
    assert a == pytest.approx(1 - b, abs=1e-12)


def test_a_step_does_not_propagate_over_its_positives() -> None:
    task = link_task()
    trainer = training._Trainer(build_model("psgnn", task, **SMALL), task, 5, 0)
    for epoch in range(task.folds):
        view, pairs, labels = trainer.batches.draw(epoch, np.random.default_rng(epoch))
        visible = {(u, v) for u, v in view.union.adjacency.edges().T.tolist()}
        assert visible.isdisjoint(tuple(sorted(pair)) for pair in pairs[:, labels == 1].T.tolist())


def test_the_last_weights_are_kept_where_that_is_asked_for() -> None:
    task = link_task()
    assert trained(task, keep="last", epochs=16).record["best_epoch"] == 16


def test_gradients_are_clipped() -> None:
    task = link_task()
    runs = [trained(task, clip=clip).score(task.test.pairs) for clip in (0.0, 1e-3)]
    assert not np.array_equal(*runs)
    assert np.array_equal(trained(task, clip=1e9).score(task.test.pairs), runs[0])


def test_several_graphs_and_classes() -> None:
    graphs = [data_of(nx.connected_caveman_graph(3, n)) for n in (4, 5, 6)]
    for graph in graphs:
        graph.y = np.arange(graph.num_nodes) % 3
    for task in (LinkPrediction(graphs), PairClassification(graphs, seed=0)):
        found = trained(task, step_nodes=16)
        assert found.model.config.nodes == task.union.num_nodes
        assert np.isfinite(found.score(task.test.pairs)).all()


def test_a_refit_has_vectors_of_the_same_nodes(tmp_path: Path) -> None:
    task = link_task()
    refitted = trained(task, tmp_path / "run", refit=True)
    loaded = load(tmp_path / "run")
    assert np.array_equal(loaded.score(task.test.pairs), refitted.score(task.test.pairs))
    assert loaded.evaluation_scorer().model.config.nodes == 30


def test_later_versions_of_the_graph_find_their_vectors() -> None:
    edges = adjacency_of(CAVES).edges()
    names = [f"n{v}" for v in range(30)]
    task = LinkPrediction(Graph.from_edges(edges, 30, names=names))
    run = trained(task)
    order = np.random.default_rng(0).permutation(30)
    place = np.argsort(order)
    again = run.on(Graph.from_edges(place[edges], 30, names=[names[v] for v in order]))
    whole = run.on(Graph.from_edges(edges, 30, names=names))
    pairs = task.test.pairs
    assert np.allclose(again.score(place[pairs]), whole.score(pairs), atol=1e-4)
    grown = run.on(Graph.from_edges(np.append(edges, [[0], [30]], axis=1), 31, names=[*names, "new"]))
    assert np.isfinite(grown.score(np.array([[30, 30], [1, 2]]))).all()
    with pytest.raises(InputError, match="a vector for each node of its own graph, and this is another one"):
        run.on(Graph.from_edges(edges, 30, names=[f"m{v}" for v in range(30)]))


def test_scores_are_explained_by_them_too() -> None:
    task = link_task()
    run = trained(task)
    found = run.explain("0", "9")
    assert "node states" in found["contributions"]
    assert found["base"] + sum(found["contributions"].values()) == pytest.approx(found["score"], abs=1e-3)


# --- states alone

ALONE: dict[str, Any] = {
    "encoder": "states",
    "decoder": "product",
    "states": 16,
    "state_start": 0.1,
    "eval_every": 20,
}


def test_states_alone_find_communities(tmp_path: Path) -> None:
    task = LinkPrediction(data_of(nx.connected_caveman_graph(8, 8)), seed=0)
    model = build_model("gcn", task, **ALONE, one_cycle=True, lr=0.02, keep="last", clip=1.0)
    run = fit(model, task, epochs=120, out=tmp_path / "run")
    assert run.test["auc"] > 0.75
    assert run.embed().shape == (64, 16)
    loaded = load(tmp_path / "run")
    pairs = task.test.pairs
    assert np.array_equal(loaded.score(pairs), run.score(pairs))
    assert np.allclose(loaded.score_embedded(loaded.embed(), pairs), loaded.score(pairs), atol=1e-5)
    assert run.predict(top=3).height == 3


def test_a_score_is_a_network_on_the_product_of_two_states() -> None:
    task = link_task()
    model = build_model("gcn", task, **ALONE).eval()
    view, pairs = view_of(task.graphs), torch.from_numpy(task.test.pairs)
    h = model(view, None)
    assert torch.allclose(model.score(view, None, pairs), model.decoder.mlp(h[pairs[0]] * h[pairs[1]])[:, 0])
    assert torch.equal(model.score(view, None, pairs), model.score(view, None, pairs.flip(0)))
    assert float(model.encoder.states.vectors.detach().square().mean().sqrt()) == pytest.approx(0.1)
