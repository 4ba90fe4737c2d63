"""Graphs and settings at the edge of what a model can be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from conftest import adjacency_of, data_of
from psgnn.anchors import select_anchors
from psgnn.errors import InputError
from psgnn.kernels._pairs import local_walks
from psgnn.models import build_model
from psgnn.models._config import make_config
from psgnn.tasks import LinkPrediction
from psgnn.training import fit, load

NOTHING = dict.fromkeys(["hops", "pagerank", "diffusion", "spectral", "roles"], False)


def link_task() -> LinkPrediction:
    return LinkPrediction(data_of(nx.connected_caveman_graph(4, 6)))


def test_a_loaded_run_scores_without_dropout(tmp_path: Path) -> None:
    task = link_task()
    result = fit(build_model("psgnn", task, hidden=8), task, epochs=2, out=tmp_path / "run")
    assert np.array_equal(load(tmp_path / "run").score(task.test.pairs), result.score(task.test.pairs))


@pytest.mark.parametrize("batch", ["auto", "all"])
@pytest.mark.parametrize("name", ["psgnn", "gcn"])
def test_a_graph_with_fewer_training_edges_than_folds_trains(name: str, batch: str) -> None:
    task = LinkPrediction(data_of(nx.path_graph(7)))
    result = fit(build_model(name, task, hidden=8, eval_every=1, batch=batch), task, epochs=12)
    assert all(np.isfinite(entry["loss"]) for entry in result.history)


def test_a_node_can_be_compared_with_itself() -> None:
    task = LinkPrediction(data_of(nx.lollipop_graph(6, 6)))
    result = fit(build_model("psgnn", task, hidden=8), task, epochs=2)
    assert np.isfinite(result.score(np.tile(np.arange(12), (2, 1)))).all()


def test_one_node_is_its_own_anchor() -> None:
    assert select_anchors(data_of(nx.empty_graph(1)), "mixed", 1).tolist() == [0]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("psgnn", {"picker": "random-sets"}, "needs single nodes as anchors"),
        ("psgnn", {"picker": "none"}, "model psgnn needs anchors, found picker=none; choose .*sequential"),
        ("psgnn", {"picker": "none", "preset": "paper"}, "model psgnn needs anchors, found picker=none"),
        ("pgnn", {"picker": "none"}, "model pgnn needs anchors, found picker=none; choose .*random-sets"),
        ("agnn", {"picker": "none"}, "model agnn needs anchors, found picker=none; choose .*degree"),
        ("gcn", {"picker": "degree"}, "model gcn has no anchors, found picker=degree; .*psgnn or agnn"),
        ("gin", {"picker": "score", "anchors": 4}, "model gin has no anchors, found picker=score"),
        ("psgnn", {"encoder": "layers"}, "needs encoder=channels"),
        ("pgnn", {"decoder": "set"}, "needs encoder=channels"),
        ("gcn", {"decoder": "set"}, "needs encoder=channels"),
        ("psgnn", NOTHING, "all parts of a position are off"),
        ("gcn", {"anchors": 5}, "model gcn has no anchors; leave out anchors=5"),
        ("pgnn", {"anchors": "log"}, r"log\^2 N; leave out anchors=log, or set picker"),
    ],
)
def test_parts_that_do_not_fit_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_model(name, link_task(), **options)


def test_of_several_graphs_one_at_least_has_to_have_as_many_nodes_as_anchors() -> None:
    task = LinkPrediction([data_of(nx.lollipop_graph(6, 6)), data_of(nx.path_graph(20))])
    fit(build_model("psgnn", task, anchors=20, hidden=8), task, epochs=1)
    with pytest.raises(InputError, match=r"21 anchors were asked of a graph of 20 nodes; ask for 1\.\.20"):
        fit(build_model("psgnn", task, anchors=21, hidden=8), task, epochs=1)


@pytest.mark.parametrize(("preset", "tamed"), [("paper", False), ("best", True)])
def test_noise_drowns_the_scores_of_preset_paper_alone(preset: str, tamed: bool) -> None:
    config = make_config("psgnn", "link", 1, preset, picker="score", encoder="layers", decoder="dot")
    assert (config.unit_scores, config.anneal) == (tamed, tamed)
    asked = make_config(
        "psgnn", "link", 1, preset, picker="score", encoder="layers", decoder="dot", anneal=not tamed
    )
    assert asked.anneal is not tamed


@pytest.mark.parametrize("seed", range(5))
def test_sampled_walks_are_symmetric(seed: int) -> None:
    adjacency = adjacency_of(nx.random_regular_graph(4, 12, seed=seed))  # equal costs at all nodes
    pairs = np.stack(np.triu_indices(12, 1)).astype(np.int64)
    there, back = np.empty((66, 6)), np.empty((66, 6))
    csr = adjacency.indptr, adjacency.indices
    local_walks(*csr, pairs[0].copy(), pairs[1].copy(), 10, there)
    local_walks(*csr, pairs[1].copy(), pairs[0].copy(), 10, back)
    np.testing.assert_allclose(there, back)
