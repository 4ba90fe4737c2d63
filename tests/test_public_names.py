"""The names other programs call, in every form that the design promises: arrays, tensors, frames, names and ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
import torch

import psgnn

VILLAGE = "examples/village.csv"
ANSWERED = ["source", "target", "score", "probability", "expected_precision"]


@pytest.fixture(scope="module")
def village() -> psgnn.Graph:
    graph = psgnn.read_graph(VILLAGE)
    assert isinstance(graph, psgnn.Graph)
    return graph


@pytest.fixture(scope="module")
def run(village: psgnn.Graph) -> psgnn.Run:
    task = psgnn.LinkPrediction(village)
    return psgnn.fit(psgnn.build_model("psgnn", task), task, epochs=5)


@pytest.fixture(scope="module", params=["weights", "run"])
def scorer(request: pytest.FixtureRequest, village: psgnn.Graph, run: psgnn.Run) -> Any:
    return run if request.param == "run" else psgnn.pretrained().on([village])


SOURCES: dict[str, Callable[[psgnn.Graph], Any]] = {
    "text": lambda graph: VILLAGE,
    "path": lambda graph: Path(VILLAGE),
    "graph": lambda graph: graph,
    "polars": psgnn.Graph.to_polars,
    "pandas": lambda graph: graph.to_polars().to_pandas(),
    "arrow": lambda graph: graph.to_polars().to_arrow(),
    "networkx": psgnn.Graph.to_networkx,
    "scipy": psgnn.Graph.to_scipy,
    "pyg": psgnn.Graph.to_pyg,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_graph_of_any_kind_is_predicted(village: psgnn.Graph, kind: str) -> None:
    source = SOURCES[kind](village)
    frame = psgnn.predict(source, top=3)
    assert isinstance(frame, pl.DataFrame)
    assert (frame.columns, frame.height) == (ANSWERED, 3)
    graph = psgnn.read_graph(source)
    assert isinstance(graph, psgnn.Graph)
    assert (graph.num_nodes, graph.num_edges) == (120, 805)
    assert (graph.edges.dtype, graph.edges.shape) == (np.int64, (2, 805))
    assert all(isinstance(name, str) for name in graph.names)


def test_sources_of_distances_are_ids_or_names(village: psgnn.Graph) -> None:
    ids = [village.names.index(name) for name in ("Dina", "Leo")]
    expected = psgnn.shortest_distances(village, ids)
    assert (expected.dtype, expected.shape) == (np.int16, (120, 2))
    for sources in (
        ["Dina", "Leo"],
        np.array(["Dina", "Leo"]),
        pl.Series(["Dina", "Leo"]),
        torch.tensor(ids),
    ):
        np.testing.assert_array_equal(psgnn.shortest_distances(village, sources), expected)
    np.testing.assert_array_equal(psgnn.shortest_distances(village, "Leo"), expected[:, 1:])
    edges = torch.tensor(village.edges)
    np.testing.assert_array_equal(psgnn.shortest_distances(edges, torch.tensor(ids)), expected)
    assert psgnn.shortest_distances(edges, [0], num_nodes=121, cutoff=1).max() == 1
    with pytest.raises(psgnn.PsgnnError, match="has no node 'Loe'; did you mean 'Leo'"):
        psgnn.shortest_distances(village, ["Loe"])
    with pytest.raises(psgnn.PsgnnError, match="must be integer node ids"):
        psgnn.shortest_distances(village.edges, ["Leo"])


def test_lengths_are_float32(village: psgnn.Graph) -> None:
    roads = pl.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "km": [1.5, 2.5]})
    graph = psgnn.read_graph(roads, weight="km", weight_is="length")
    far = psgnn.shortest_distances(graph, ["a"], cutoff=2)
    assert far.dtype == np.float32
    assert far.T.tolist() == [[0, 1.5, -1]]


def test_anchors_are_described_by_id_or_name(village: psgnn.Graph) -> None:
    anchors = psgnn.select_anchors(village, "degree", 4, seed=0)
    assert (anchors.dtype, anchors.shape) == (np.int64, (4,))
    found = psgnn.anchor_diagnostics(village, anchors, hops=2)
    assert psgnn.anchor_diagnostics(village, torch.tensor(anchors), 2) == found
    assert psgnn.anchor_diagnostics(village, [village.names[v] for v in anchors], 2) == found


def test_nodes_are_asked_for_in_any_form(village: psgnn.Graph, scorer: Any) -> None:
    dina, leo = (village.names.index(name) for name in ("Dina", "Leo"))
    one, two = scorer.predict(of="Dina", top=2), scorer.predict(of=["Dina", "Leo"], top=2)
    for of in (dina, np.int64(dina), torch.tensor(dina), np.array([dina]), ("Dina",), pl.Series(["Dina"])):
        assert scorer.predict(of=of, top=2).equals(one)
    for of in ((dina, leo), np.array([dina, leo]), torch.tensor([dina, leo]), np.array(["Dina", "Leo"])):
        assert scorer.predict(of=of, top=2).equals(two)
    rows = scorer.embed()
    for nodes in ("Dina", dina, [dina], torch.tensor([dina]), np.array(["Dina"])):
        np.testing.assert_allclose(scorer.embed(nodes), rows[[dina]], rtol=1e-4, atol=1e-4)
    assert scorer.embed([]).shape == (0, rows.shape[1])


def test_pairs_are_scored_in_any_form(village: psgnn.Graph, scorer: Any) -> None:
    named = [("Dina", "Leo"), ("Finn", "Umar"), ("Dina", "Umar")]
    ids = np.array([[village.names.index(name) for name in pair] for pair in named]).T
    expected = scorer.score(named)
    for pairs in (ids, ids.astype(np.int32), torch.tensor(ids), np.array(named)):
        np.testing.assert_array_equal(scorer.score(pairs), expected)
        assert scorer.predict(pairs=pairs)["score"].to_numpy() == pytest.approx(expected)
    np.testing.assert_array_equal(scorer.score(ids.tolist()), expected)
    why = psgnn.explain(scorer, "Dina", "Leo")
    assert why == psgnn.explain(scorer, *ids[:, 0]) == scorer.explain(u="Dina", v="Leo")


def test_a_run_is_a_scorer_with_a_record(run: psgnn.Run, village: psgnn.Graph) -> None:
    assert {"auc", "auc_pooled", "ap"} <= set(run.test) & set(run.val)
    assert [entry["epoch"] for entry in run.history]
    assert all(0 <= anchor < 120 for anchor in run.anchors[0])
    assert run.predict(top=2).columns == ANSWERED
    assert run.similar("Dina").height == 10
    for part in (run, psgnn.pretrained(), psgnn.pretrained().on([village])):
        assert len(repr(part)) < 100


@pytest.mark.parametrize("name", ["psgnn", "pgnn", "agnn", "gcn", "sage", "gat", "gin"])
def test_models_are_built_from_a_task(village: psgnn.Graph, name: str) -> None:
    for graphs in (village, [village]):
        task = psgnn.LinkPrediction(graphs, val=0.1, test=0.1, seed=0)
        assert task.graphs[0].num_nodes == 120
        for part in (task.train, task.val, task.test):
            assert part.pairs.shape == (2, part.labels.size)
            assert part.pairs.dtype == np.int64
            assert part.graph_ids.shape == part.labels.shape
    for preset in ("best", "paper", *(["learned"] if name == "psgnn" else [])):
        assert psgnn.build_model(name, task, preset=preset, seed=0).config.name == name


def test_a_graph_of_networkx_keeps_its_names() -> None:
    frame = psgnn.predict(nx.relabel_nodes(nx.karate_club_graph(), lambda v: f"member {v}"), of="member 0")
    assert frame["source"].unique().to_list() == ["member 0"]
