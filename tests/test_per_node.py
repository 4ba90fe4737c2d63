"""Metrics per node: in training and comparisons, and against given negatives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn.scoring import evaluate_against, pretrained, score_pairs
from psgnn.tasks import LinkPrediction
from psgnn.training import fit

VILLAGE = Path(__file__).parent.parent / "examples" / "village.csv"


@pytest.fixture(scope="module")
def village() -> Graph:
    return psgnn.read_graph(VILLAGE)


def ranks_by_hand(task: LinkPrediction, graph: Graph, score: object) -> np.ndarray:
    """The rank of the partner of both ends of every test link among all nodes that the end is not linked to."""
    linked = {frozenset(edge) for edge in graph.edges.T.tolist()}
    ranks = []
    for a, b in task.test.pairs[:, task.test.labels == 1].T.tolist():
        for u, v in ((a, b), (b, a)):
            others = [w for w in range(graph.num_nodes) if w != u and frozenset((u, w)) not in linked]
            scores = score(np.stack([np.full(len(others) + 1, u), [v, *others]]))  # type: ignore[operator]
            ranks.append(1 + (scores[1:] > scores[0]).sum() + (scores[1:] == scores[0]).sum() / 2)
    return np.array(ranks)


def test_training_reports_the_ranks_of_partners(village: Graph) -> None:
    task = LinkPrediction(village, seed=0)
    result = fit(psgnn.build_model("psgnn", task, hidden=8, members=1), task, epochs=10)
    ranks = ranks_by_hand(task, village, result.evaluation_scorer().score)
    assert result.test["mrr_per_node"] == pytest.approx(np.mean(1 / ranks), rel=1e-3)
    assert result.test["hits@10_per_node"] == pytest.approx(np.mean(ranks <= 10), abs=0.01)
    assert result.record["test"]["hits@50_per_node"] == pytest.approx(np.mean(ranks <= 50), abs=0.01)
    assert "mrr" in result.test


def test_comparisons_report_the_ranks_of_partners(run: Command, village: Graph) -> None:
    code, out, _ = run("compare", VILLAGE, "--models", "none", "--seeds", 1, "--json")
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    task = LinkPrediction(village, seed=0)
    ranks = ranks_by_hand(task, village, lambda pairs: score_pairs("adamic-adar", task.union, pairs, 0))
    assert rows["adamic-adar"]["mrr_per_node_mean"] == pytest.approx(np.mean(1 / ranks), rel=1e-6)
    assert rows["adamic-adar"]["hits@10_per_node_mean"] == pytest.approx(np.mean(ranks <= 10))
    code, out, _ = run("compare", VILLAGE, "--models", "none", "--seeds", 1)
    assert "MRR per node" in out
    assert "MRR, pooled" in out


def test_pair_tasks_have_no_ranks_of_partners() -> None:
    task = psgnn.PairClassification(psgnn.load_dataset("communities"), seed=0)
    result = fit(psgnn.build_model("gcn", task), task, epochs=1)
    assert not [metric for metric in result.test if "per_node" in metric]


@pytest.mark.parametrize("kind", ["npy", "npz", "csv"])
def test_links_are_ranked_among_their_own_negatives(
    run: Command, tmp_path: Path, village: Graph, kind: str
) -> None:
    """HeaRT's evaluation: rank = 1 + (number above + number above or equal) / 2."""
    names = [str(v + 1000) for v in range(120)]
    graph = Graph.from_edges(village.edges, names=names)
    graph.to_polars().write_csv(tmp_path / "g.csv")
    rng = np.random.default_rng(0)
    links = rng.permuted(np.tile(np.arange(120), (9, 1)), axis=1)[:, :2]
    negatives = rng.permuted(np.tile(np.arange(120), (9 * 15, 1)), axis=1)[:, :2].reshape(9, 15, 2)
    scorer = pretrained().on([psgnn.read_graph(tmp_path / "g.csv")])
    of = {name: v for v, name in enumerate(scorer.node_names[0])}
    at = np.array([of[name] for name in names])
    above = scorer.score(at[links].T)
    below = scorer.score(at[negatives].reshape(-1, 2).T).reshape(9, 15)
    rank = 1 + ((below > above[:, None]).sum(1) + (below >= above[:, None]).sum(1)) / 2
    found = evaluate_against(scorer, at[links].T, at[negatives])
    assert found == {
        "links": 9,
        "negatives": 15,
        "mrr": pytest.approx(np.mean(1 / rank)),
        "hits@10": pytest.approx(np.mean(rank <= 10)),
        "hits@50": 1.0,
    }
    pl.DataFrame(links + 1000, schema=["source", "target"]).write_csv(tmp_path / "links.csv")
    file = tmp_path / f"negatives.{kind}"
    if kind == "npy":
        np.save(file, negatives + 1000)
    elif kind == "npz":
        np.savez(file, negatives=negatives + 1000)
    else:
        pl.DataFrame(negatives.reshape(-1, 2) + 1000, schema=["source", "target"]).write_csv(file)
    asked = ("evaluate", tmp_path / "g.csv", "--links", tmp_path / "links.csv", "--negative-links")
    code, out, _ = run(*asked, file, "--json")
    assert code == 0
    assert json.loads(out)["mrr"] == pytest.approx(found["mrr"], rel=1e-4)


def test_negatives_that_do_not_fit_get_one_line(run: Command, tmp_path: Path, village: Graph) -> None:
    forgotten = VILLAGE.parent / "village-forgotten.csv"
    np.save(tmp_path / "flat.npy", np.zeros((4, 2), np.int64))
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "few.csv").write_text("source,target\nDina,Leo\n")
    for name, message in (
        ("flat.npy", "expected integers [P, M, 2], found int64 [4, 2]"),
        ("text.npy", "cannot be read as an array of NumPy: it is damaged, or holds Python objects"),
        ("few.csv", "1 negatives cannot be shared out to 73 links evenly"),
        ("nowhere.npy", "does not exist"),
    ):
        code, out, err = run("evaluate", VILLAGE, "--links", forgotten, "--negative-links", tmp_path / name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
    scorer = pretrained().on([village])
    with pytest.raises(
        InputError, match=r"2 links need negatives of the shape \[2, M, 2\], found \[3, 4, 2\]"
    ):
        evaluate_against(scorer, np.array([[0, 1], [2, 3]]), np.zeros((3, 4, 2), np.int64))
