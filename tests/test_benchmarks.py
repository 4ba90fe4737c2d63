"""Published benchmarks: their splits, their negatives and their metrics."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import adjacency_of
from psgnn import Graph
from psgnn.datasets import list_datasets, load_dataset
from psgnn.errors import DataError, InputError
from psgnn.models import build_model
from psgnn.scoring import score_pairs
from psgnn.tasks import LabelledPairs, LinkPrediction, OfficialLinks, link_task
from psgnn.tasks._metrics import evaluate
from psgnn.training import fit
from psgnn.training._compare import Method, make_task, measure
from psgnn.training._heldout import part_of


def pairs_in(pairs: Any) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in np.asarray(pairs).T.tolist()}


# --- SEAL's splits


def test_a_split_of_seal_is_that_of_its_file(shared_data: Path) -> None:
    [graph] = load_dataset("seal-splits/usair", shared_data, split=3)
    stored = scipy.io.loadmat(shared_data / "seal-splits/USAir_split_3.mat")
    wanted = {
        part: pairs_in(stored[part].T.astype(int) - 1) for part in ("train_pos", "test_pos", "test_neg")
    }
    assert pairs_in(graph.edges) == wanted["train_pos"]
    assert pairs_in(graph.split["test_edge"]) == wanted["test_pos"]
    assert pairs_in(graph.split["test_edge_neg"]) == wanted["test_neg"]
    assert (graph.names[0], graph.names[-1]) == ("1", "332")
    with pytest.raises(InputError, match="has splits 1 to 10, found 11"):
        load_dataset("seal-splits/USAir", shared_data, split=11)


def test_validation_is_carved_from_training_and_seen_again_at_the_test(shared_data: Path) -> None:
    [graph] = load_dataset("seal-splits/USAir", shared_data)
    task = link_task(graph, seed=4)
    val = pairs_in(task.val.pairs[:, task.val.labels == 1])
    assert len(val) == round(0.05 * 1914)
    assert pairs_in(task.union.adjacency.edges()) == pairs_in(graph.edges) - val
    assert pairs_in(task.test_union.adjacency.edges()) == pairs_in(graph.edges)
    assert pairs_in(task.test.pairs[:, task.test.labels == 1]) == pairs_in(graph.split["test_edge"])
    assert task.digest != link_task(graph, seed=5).digest  # other links validate
    assert link_task(graph, seed=4, val=0.1).val.labels.sum() == 191
    with pytest.raises(InputError, match="has an official split, which negatives/test would change"):
        link_task(graph, negatives="degree", test=0.2)


def small_task(**options: Any) -> LinkPrediction:
    whole = Graph.from_edges(adjacency_of(nx.connected_caveman_graph(6, 6)).edges(), 36)
    return LinkPrediction(whole, seed=1, val=0.2, test=0.2, **options)


def test_rules_and_models_see_the_validation_links_at_the_test() -> None:
    plain, task = small_task(), small_task(test_sees_validation=True)
    seen = task.at_test().union
    assert pairs_in(seen.adjacency.edges()) == pairs_in(plain.union.adjacency.edges()) | pairs_in(
        plain.val.pairs[:, plain.val.labels == 1]
    )
    scores = score_pairs("common-neighbours", seen, task.test.pairs, 0)
    found = measure(Method("common-neighbours", "rule"), task, 0)
    assert found["test"]["auc"] == evaluate(task.test, scores)["auc"]
    assert found["val"] == measure(Method("common-neighbours", "rule"), plain, 0)["val"]
    run, other = (
        fit(build_model("psgnn", each, members=1, hidden=8), each, epochs=20) for each in (task, plain)
    )
    assert run.val == other.val
    shown = run.view.without(seen)
    scores = run.model.predict(shown, run.choice, torch.from_numpy(task.test.pairs))
    assert run.test["auc"] == evaluate(task.test, scores)["auc"]
    assert run.test["auc"] != other.test["auc"]


def test_a_file_without_a_known_checksum_is_used_and_never_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PSGNN_DATA", raising=False)
    monkeypatch.setenv("PSGNN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        DataError, match="it is not downloaded, since no checksum of it is known here; get it from"
    ):
        load_dataset("seal-splits/NS", tmp_path)
    where = {row["name"]: row["where"] for row in list_datasets(tmp_path)}
    assert where["seal-splits/NS"].startswith("not here: see https://github.com/DaDaCheng")
    (tmp_path / "seal-splits").mkdir()
    parts = {
        "train_pos": [[1, 2], [2, 3]],
        "train_neg": [[1, 4]],
        "test_pos": [[3, 4]],
        "test_neg": [[2, 1589]],
    }
    scipy.io.savemat(tmp_path / "seal-splits/NS_split_2.mat", {k: np.uint16(v) for k, v in parts.items()})
    with caplog.at_level(logging.INFO, "psgnn"):
        [graph] = load_dataset("seal-splits/NS", tmp_path, split=2)
    assert "no checksum of" in caplog.text
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.split["test_edge_neg"].tolist() == [[1], [1588]]
    for wrong in ({"test_pos": [[0, 4]]}, {"test_pos": [[1590, 4]]}, {"test_neg": [[1, 2, 3]]}):
        scipy.io.savemat(tmp_path / "seal-splits/NS_split_2.mat", {**parts, **wrong})
        with pytest.raises(
            DataError, match=r"split 2 of seal-splits/NS is not a file of this benchmark \(pairs of"
        ):
            load_dataset("seal-splits/NS", tmp_path, split=2)
    scipy.io.savemat(tmp_path / "seal-splits/NS_split_2.mat", {k: np.uint16(v) for k, v in parts.items()})
    whole = (tmp_path / "seal-splits/NS_split_2.mat").read_bytes()
    for place in range(128, len(whole), 8):  # of some tags another type crashes SciPy's reader
        (tmp_path / "seal-splits/NS_split_2.mat").write_bytes(
            whole[:place] + bytes([200, 0, 0, 0]) + whole[place + 4 :]
        )
        with suppress(DataError):
            load_dataset("seal-splits/NS", tmp_path, split=2)
    (tmp_path / "seal-splits/NS_split_2.mat").write_bytes(b"something else")
    with pytest.raises(DataError, match="is not a file of this benchmark"):
        load_dataset("seal-splits/NS", tmp_path, split=2)


# --- HeaRT


def test_heart_has_500_negatives_for_each_positive(shared_data: Path) -> None:
    [graph] = load_dataset("heart/citeseer", shared_data)
    task = link_task(graph)
    assert (task.headline, task.test.own_negatives, task.test.labels.size) == ("mrr", 500, 455 * 501)
    folder = shared_data / "heart/citeseer"
    positives = np.loadtxt(folder / "test_pos.txt", dtype=int)
    samples = np.load(folder / "heart_test_samples.npy")
    own = task.test.pairs[:, 455:].reshape(2, 455, 500)
    theirs = {
        tuple(sorted(pair)): pairs_in(own[:, i]) for i, pair in enumerate(task.test.pairs[:, :455].T.tolist())
    }
    for i in (0, 7, 454):
        assert theirs[tuple(sorted(positives[i].tolist()))] == pairs_in(samples[i].T)
    assert graph.x is not None
    existing = link_task(load_dataset("heart/citeseer", shared_data, setting="existing"), headline="mrr")
    assert (existing.headline, existing.test.own_negatives, existing.test.labels.size) == ("mrr", 0, 910)
    assert pairs_in(existing.test.pairs[:, :455]) == pairs_in(positives.T)


def own_split(positives: int, each: int) -> LabelledPairs:
    labels = np.repeat(np.array([1, 0], np.float32), [positives, positives * each])
    pairs = np.stack([np.arange(labels.size), np.arange(labels.size) + 1])
    return LabelledPairs(pairs, labels, np.zeros(labels.size, np.int64), each)


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 1000))
def test_ranks_among_own_negatives_are_those_of_the_authors(positives: int, each: int, seed: int) -> None:
    """Against the evaluator of OGB and HeaRT: the mean of the optimistic and the pessimistic rank."""
    split = own_split(positives, each)
    scores = np.random.default_rng(seed).integers(0, 4, split.labels.size).astype(float)
    ranks = []
    for i in range(positives):
        own = scores[positives + i * each : positives + (i + 1) * each]
        ranks.append(0.5 * (sum(own > scores[i]) + sum(own >= scores[i])) + 1)
    found = evaluate(split, scores, ["mrr", "hits@1", "hits@3"])
    assert found["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
    for k in (1, 3):
        assert found[f"hits@{k}"] == pytest.approx(np.mean(np.array(ranks) <= k))


def test_a_part_of_a_split_keeps_positives_with_their_negatives() -> None:
    split = own_split(20, 5)
    part = part_of(split, 40, 0)
    assert (part.labels.sum(), part.labels.size, part.own_negatives) == (6, 36, 5)
    for i, place in enumerate(part.pairs[0, :6]):
        assert part.pairs[0, 6 + i * 5 : 11 + i * 5].tolist() == list(range(20 + place * 5, 25 + place * 5))


def test_negatives_of_their_own_come_with_their_positives() -> None:
    graph = Graph.from_edges(adjacency_of(nx.cycle_graph(12)).edges(), 12)
    split = {
        "valid_edge": [[9, 0], [3, 4]],
        "test_edge": [[2], [8]],
        "test_edge_neg": np.array([[[2, 8]], [[6, 5]]]),
    }
    split["valid_edge_neg"] = np.array([[[9, 9, 3], [0, 0, 0]], [[1, 5, 7], [6, 7, 8]]])  # [2, P, K]
    task = OfficialLinks(replace(graph, split={k: np.asarray(v) for k, v in split.items()}))
    assert task.headline == "mrr"
    assert task.val.pairs.T.tolist() == [
        [0, 4], [3, 9], [0, 6], [0, 7], [0, 8], [1, 9], [5, 9], [3, 7],
    ]  # fmt: skip
    run = fit(build_model("psgnn", task, members=1, hidden=8, eval_every=2), task, epochs=4)
    assert 0 < run.test["mrr"] <= 1
    assert "mrr" in run.history[0]
    split["valid_edge_neg"] = np.zeros((2, 3, 4), int)
    with pytest.raises(InputError, match="valid_edge_neg has negatives of 3 positives, there are 2"):
        OfficialLinks(graph, split)


# --- what validation chooses by


def test_validation_chooses_by_the_metric_that_is_asked_for() -> None:
    graph = Graph.from_edges(adjacency_of(nx.connected_caveman_graph(6, 6)).edges(), 36)
    task = make_task([graph], "link", 0, headline="hits@3")
    run = fit(build_model("psgnn", task, members=1, hidden=8, eval_every=2), task, epochs=6)
    assert max(entry["hits@3"] for entry in run.history) == pytest.approx(run.val["hits@3"])
    assert "hits@3" in run.test
    with pytest.raises(InputError, match="metric"):
        make_task([graph], "link", 0, headline="hits@")
