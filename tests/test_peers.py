"""Peers: what they see, what they choose, and that a seed fixes them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import psgnn
from conftest import data_of
from psgnn import peers
from psgnn.errors import InputError, MissingExtraError
from psgnn.heuristics import score_pairs
from psgnn.metrics import evaluate
from psgnn.nn.view import View
from psgnn.peers import PEERS
from psgnn.tasks import LinkPrediction, PairClassification, Task

STATISTICS = ("shortest-path", "common-neighbours", "preferential-attachment")


@pytest.fixture(autouse=True)
def _few_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rules and noise instead of all statistics of psgnn: their scores are known."""

    def statistics_of(view: View, pairs: torch.Tensor, seed: int) -> torch.Tensor:
        columns = [score_pairs(rule, view.union, pairs.numpy(), seed) for rule in STATISTICS]
        u, v = pairs.numpy()
        noise = ((u * 7919 + v * 104729 + seed) % 1009) / 1009  # of the pair and the seed alone
        return torch.from_numpy(np.stack([*columns, noise], axis=1)).float()

    monkeypatch.setattr("psgnn.nn.statistics.statistics_of", statistics_of, raising=False)


def small_task(name: str) -> Task:
    graphs = [data_of(nx.connected_caveman_graph(6, size)) for size in (6, 7)]
    if name == "link":
        return LinkPrediction(graphs, seed=3)
    for graph, size in zip(graphs, (6, 7), strict=True):
        graph.y = torch.arange(6).repeat_interleave(size)
    return PairClassification(graphs, seed=3)


def has_pecanpy() -> bool:
    python = os.environ.get(peers.NODE2VEC_PYTHON) or sys.executable
    found = shutil.which(python)
    return (
        found is not None
        and not subprocess.run([found, "-c", "import pecanpy"], capture_output=True).returncode
    )


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> peers.Peer:
    if request.param == "node2vec" and not has_pecanpy():
        pytest.skip(f"no pecanpy here, nor in ${peers.NODE2VEC_PYTHON}")
    return PEERS[request.param]


@pytest.mark.parametrize("name", ["link", "pair"])
def test_every_peer_is_fixed_by_its_seed_and_blind_to_test_labels(peer: peers.Peer, name: str) -> None:
    task, blind = small_task(name), small_task(name)
    blind.test = dataclasses.replace(blind.test, labels=1 - blind.test.labels)
    generators = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002 (nobody may touch it)
    scores = peer(task, 5)(task.test.pairs)
    assert scores.shape == task.test.labels.shape
    assert torch.isfinite(scores).all()
    assert evaluate(task.test, scores)["auc"] > 0.8
    assert torch.equal(scores, peer(blind, 5)(task.test.pairs))
    assert np.array_equal(generators[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(generators[1], torch.get_rng_state())


def test_best_column_is_chosen_and_turned_by_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    task = small_task("link")
    noise = np.random.default_rng(0).random((task.union.num_nodes, task.union.num_nodes))

    def statistics_of(view: View, pairs: torch.Tensor, seed: int) -> torch.Tensor:
        hops = -score_pairs("shortest-path", view.union, pairs.numpy(), seed)  # the nearer, the likelier
        return torch.from_numpy(np.stack([noise[tuple(pairs.numpy())], hops, np.zeros(hops.size)], axis=1))

    monkeypatch.setattr("psgnn.nn.statistics.statistics_of", statistics_of, raising=False)
    scores = peers.best_column(task, 0)(task.test.pairs)
    expected = score_pairs("shortest-path", task.union, task.test.pairs.numpy(), 0)
    assert np.array_equal(scores.numpy(), expected)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[tuple[View, torch.Tensor]]:
    """The graphs and pairs that statistics are asked of, in order; they are minus the hops."""
    calls = []

    def statistics_of(view: View, pairs: torch.Tensor, seed: int) -> torch.Tensor:
        calls.append((view, pairs))
        return torch.from_numpy(score_pairs("shortest-path", view.union, pairs.numpy(), seed))[
            :, None
        ].float()

    monkeypatch.setattr("psgnn.nn.statistics.statistics_of", statistics_of, raising=False)
    return calls


def codes(pairs: torch.Tensor) -> list[int]:
    return (pairs[0] * 1000 + pairs[1]).tolist()


def test_boosting_learns_links_on_graphs_without_them(described: list[tuple[View, torch.Tensor]]) -> None:
    task = small_task("link")
    edges = set(codes(task.train.pairs[:, task.train.labels == 1]))
    peers.boosting(task, 0)
    learnt = [(view, pairs) for view, pairs in described if not torch.equal(pairs, task.val.pairs)]
    for view, pairs in learnt:
        assert edges.intersection(codes(pairs)).isdisjoint(
            codes(torch.from_numpy(view.union.adjacency.edges()))
        )
    asked = [code for _, pairs in learnt for code in codes(pairs)]
    assert sorted(code for code in asked if code in edges) == sorted(edges)  # every training edge once
    assert len(asked) == 4 * len(edges)
    assert set(asked).isdisjoint(codes(torch.cat([task.val.pairs, task.test.pairs], dim=1)))


@pytest.mark.parametrize("name", ["link", "pair"])
def test_training_pairs_are_capped(
    monkeypatch: pytest.MonkeyPatch, described: list[tuple[View, torch.Tensor]], name: str
) -> None:
    monkeypatch.setattr(peers, "MOST_TRAINING_PAIRS", 120)
    task = small_task(name)
    peers.boosting(task, 0)
    learnt = sum(pairs.size(1) for _, pairs in described if not torch.equal(pairs, task.val.pairs))
    assert 100 <= learnt <= 120


@pytest.mark.parametrize("width", [3, peers.MOST_FEATURES + 10])
def test_boosting_reads_node_attributes(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(peers, "ROUNDS", 50)
    # Classes that the edges know nothing about, but one attribute (of many) does.
    graph = data_of(nx.gnp_random_graph(60, 0.1, seed=0))
    rng = np.random.default_rng(0)
    graph.y = torch.from_numpy(rng.integers(2, size=60))
    plain = PairClassification(graph, seed=0)
    graph.x = torch.from_numpy(rng.normal(size=(60, width))).float() * 0.1
    graph.x[:, 1] += 3 * graph.y
    task = PairClassification(graph, seed=0)
    auc = {
        known: roc_auc_score(t.test.labels, peers.boosting(t, 0)(t.test.pairs))
        for known, t in ((False, plain), (True, task))
    }
    assert auc[True] > 0.97
    assert auc[False] < 0.75


def test_boosting_stops_where_validation_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    task = small_task("pair")
    best = evaluate(task.val, peers.boosting(task, 0)(task.val.pairs))["auc"]
    for rounds in (10, 50, peers.ROUNDS):
        monkeypatch.setattr(peers, "ROUNDS", rounds)
        monkeypatch.setattr(peers, "ROUNDS_A_CHECK", rounds)  # one check only: nothing to choose
        assert evaluate(task.val, peers.boosting(task, 0)(task.val.pairs))["auc"] <= best


def fake_python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_node2vec_takes_the_better_score_on_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    task = small_task("pair")
    # Directions tell the classes, lengths are noise: the cosine is perfect and the dot product is not.
    classes = torch.cat([graph.y + 6 * g for g, graph in enumerate(task.graphs)])
    lengths = np.random.default_rng(0).uniform(0.01, 100, task.union.num_nodes)
    vectors = ((np.eye(12)[classes.numpy()] + 0.2) * lengths[:, None]).astype(np.float32)
    monkeypatch.setattr(peers, "_embed", lambda union, seed: vectors)
    scores = peers.node2vec(task, 0)(task.test.pairs)
    dots = (vectors[task.test.pairs[0]] * vectors[task.test.pairs[1]]).sum(axis=1)
    assert evaluate(task.test, scores)["auc"] == 1.0
    assert evaluate(task.test, dots)["auc"] < 0.95


def test_node2vec_gives_nodes_their_own_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A stand-in for PecanPy that writes the most frequent node first, as PecanPy does.
    script = tmp_path / "stand_in.py"
    script.write_text(
        "import sys, numpy as np\n"
        "option = dict(zip(sys.argv, sys.argv[1:]))\n"
        "assert option['-m'] == 'pecanpy.cli' and option['--workers'] == '1' and option['--random_state'] == '7'\n"
        "graph = np.load(option['--input'])\n"
        "order = np.argsort(-np.diff(graph['indptr']), kind='stable')\n"
        "np.savez(option['--output'], IDs=order.astype(str), data=np.stack([order, order * 2.0], axis=1))\n"
    )
    monkeypatch.setenv(peers.NODE2VEC_PYTHON, fake_python(tmp_path, f'exec {sys.executable} {script} "$@"'))
    h = peers._embed(small_task("link").union, 7)
    assert np.array_equal(h[:, 0], np.arange(len(h)))


@pytest.mark.parametrize(
    ("script", "error", "message"),
    [
        (
            "echo \"x: No module named 'pecanpy'\" >&2; exit 1",
            MissingExtraError,
            r"PSGNN_NODE2VEC_PYTHON.*psgnn\[node2vec\]",
        ),
        (
            "echo Traceback >&2; echo 'AttributeError: bool8' >&2; exit 1",
            InputError,
            "AttributeError: bool8.*NumPy below 2",
        ),
        ("exit 3", InputError, "exit code 3"),
    ],
)
def test_a_python_without_pecanpy_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, error: type[Exception], message: str
) -> None:
    monkeypatch.setenv(peers.NODE2VEC_PYTHON, fake_python(tmp_path, script))
    with pytest.raises(error, match=message) as caught:
        peers.node2vec(small_task("link"), 0)
    assert "\n" not in str(caught.value)


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(peers.NODE2VEC_PYTHON, "/nowhere/python")
    with pytest.raises(InputError, match="PSGNN_NODE2VEC_PYTHON=/nowhere/python cannot be started"):
        peers.node2vec(small_task("link"), 0)


def test_attributes_of_proteins_tell_more_than_their_edges(shared_data: Path) -> None:
    graphs = psgnn.load_dataset("protein", shared_data)[:30]
    auc = {}
    for known in (True, False):
        for graph in graphs:
            graph.x = graph.x if known else None
        task = PairClassification(graphs, seed=0, max_pairs=2000)
        auc[known] = evaluate(task.test, peers.boosting(task, 0)(task.test.pairs))["auc"]
    assert auc[True] > auc[False] + 0.1
