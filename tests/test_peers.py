"""The contract of every peer, and what each of them chooses.

Where PecanPy is not at hand, a stand-in for its command line makes the embeddings; the tests of PecanPy itself
need a Python that has it, named by PSGNN_NODE2VEC_PYTHON.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from conftest import adjacency_of, data_of
from psgnn import Graph
from psgnn.errors import InputError, MissingExtraError
from psgnn.positions import Positions
from psgnn.tasks import LabelledPairs, LinkPrediction, PairClassification, Task
from psgnn.tasks._metrics import evaluate
from psgnn.training import _peers as peers
from psgnn.training._peers import NODE2VEC_PYTHON, PEERS

# Reads the graph and writes embeddings as `python -m pecanpy.cli` does: in an order of its own.
STAND_IN = f"""#!{sys.executable}
import sys
import numpy as np
value = lambda option: sys.argv[sys.argv.index(option) + 1]
graph = np.load(value("--input"))
nodes, rng = graph["indptr"].size - 1, np.random.default_rng(int(value("--random_state")))
a = np.zeros((nodes, nodes))
a[np.repeat(np.arange(nodes), np.diff(graph["indptr"])), graph["indices"]] = graph["data"]
a = np.linalg.matrix_power(a / np.maximum(a.sum(axis=1), 1) + np.eye(nodes), 4)
order = rng.permutation(nodes)
h = a @ rng.normal(size=(nodes, int(value("--dimensions"))))
np.savez(value("--output"), IDs=order.astype(str), data=h[order].astype(np.float32))
"""


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ROUNDS", 60)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NODE2VEC_PYTHON, str(executable(tmp_path / "python", STAND_IN)))


@pytest.fixture(scope="module")
def pecanpy() -> None:
    python = os.environ.get(NODE2VEC_PYTHON) or sys.executable
    if subprocess.run([python, "-c", "import pecanpy.cli"], capture_output=True).returncode:
        pytest.skip(f"{NODE2VEC_PYTHON} does not name a Python with PecanPy")


def caveman(features: int = 0) -> Graph:
    edges = adjacency_of(nx.connected_caveman_graph(6, 6)).edges()
    x = np.random.default_rng(0).normal(size=(36, features)).astype(np.float32) if features else None
    return Graph.from_edges(edges, x=x, y=np.arange(36) // 6)


TASKS = {
    "link": lambda: LinkPrediction(caveman(), val=0.2, test=0.2, seed=3),
    "pair": lambda: PairClassification(caveman(), val=0.2, test=0.2, seed=3),
    "several graphs with features": lambda: LinkPrediction([caveman(3), caveman(3)], seed=3),
}


# --- the contract


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("name", PEERS)
def test_every_peer_keeps_the_contract(name: str, kind: str) -> None:
    """One finite score a pair, the same for the same seed, whatever order and company pairs come in."""
    task = TASKS[kind]()
    random_state = torch.random.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    score = PEERS[name](task, 5)
    pairs = task.test.pairs
    scores = score(pairs)
    assert scores.shape == (pairs.shape[1],)
    assert np.isfinite(scores).all()
    assert np.array_equal(PEERS[name](TASKS[kind](), 5)(pairs), scores)
    np.testing.assert_allclose(score(pairs[:, 3:4]), scores[3:4], rtol=1.3e-6, atol=1e-5)
    assert torch.equal(torch.random.get_rng_state(), random_state[0])
    assert repr(np.random.get_state()) == random_state[1]  # noqa: NPY002


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("name", PEERS)
def test_no_peer_looks_at_the_test_split(name: str, kind: str) -> None:
    task = TASKS[kind]()
    pairs = task.test.pairs
    scores = PEERS[name](task, 0)(pairs)
    blind = copy.copy(task)
    if isinstance(blind, LinkPrediction):
        # The task itself keeps training negatives clear of the test pairs; it does so from here on without them.
        blind.sample_negatives(1, np.random.default_rng(0))
    del blind.test
    assert np.array_equal(PEERS[name](blind, 0)(pairs), scores)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("name", PEERS)
def test_shuffled_test_labels_change_nothing(name: str) -> None:
    task, other = TASKS["link"](), TASKS["link"]()
    order = np.random.default_rng(1).permutation(task.test.labels.size)
    other.test = LabelledPairs(task.test.pairs, task.test.labels[order], task.test.graph_ids)
    assert not np.array_equal(task.test.labels, other.test.labels)
    pairs = task.test.pairs
    assert np.array_equal(PEERS[name](task, 0)(pairs), PEERS[name](other, 0)(pairs))


@pytest.mark.parametrize("name", ["boosting", "best-column"])
@pytest.mark.parametrize("kind", ["link", "pair"])
def test_communities_are_found(name: str, kind: str) -> None:
    task = TASKS[kind]()
    assert evaluate(task.test, PEERS[name](task, 0)(task.test.pairs))["auc"] > 0.9


# --- columns


def columns_of(task: Task, *columns: np.ndarray) -> peers._Columns:
    """Stand-ins for the statistics: one value a pair, looked up."""
    known = {
        tuple(pair): row for pair, row in zip(task.val.pairs.T.tolist(), np.stack(columns, 1), strict=True)
    }
    found = peers._Columns(task, 0)
    found.of = lambda pairs, view=None: np.stack([known[tuple(p)] for p in pairs.T.tolist()])  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_column_is_chosen_on_validation_with_its_sign(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS["link"]()
    labels = task.val.labels
    noise, second = np.random.default_rng(0).random((2, labels.size))
    fake = columns_of(task, noise, sign * labels, labels + 3 * second)
    monkeypatch.setattr(peers, "_Columns", lambda task, seed: fake)
    assert np.array_equal(PEERS["best-column"](task, 0)(task.val.pairs), labels)


def test_features_of_both_nodes_are_columns_and_their_order_does_not_matter() -> None:
    task = TASKS["several graphs with features"]()
    columns = peers._Columns(task, 0)
    x = np.concatenate([graph.x for graph in task.graphs])
    a, b = x[task.val.pairs[0]], x[task.val.pairs[1]]
    found = columns.of(task.val.pairs)
    expected = np.concatenate([np.abs(a - b), a * b, a + b], axis=1)
    np.testing.assert_array_equal(found[:, -9:], expected)
    plain = LinkPrediction([caveman(), caveman()], seed=3)
    assert peers._Columns(plain, 0).of(task.val.pairs).shape[1] == found.shape[1] - 9
    np.testing.assert_allclose(columns.of(task.val.pairs[::-1]), found, rtol=1e-4, atol=1e-4)


def test_many_features_become_few() -> None:
    graph = caveman(100)
    task = LinkPrediction(graph, seed=0)
    columns = peers._Columns(task, 0)
    assert columns.x is not None
    assert columns.x.shape == (36, 36)
    # As many components as nodes lose nothing: distances are as they were.
    np.testing.assert_allclose(pdist(columns.x), pdist(graph.x), rtol=1e-3, atol=1e-2)


def test_training_positives_are_described_by_a_graph_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else "is there an edge?" would answer for every training pair and for no test pair."""
    task = TASKS["link"]()
    described: list[np.ndarray] = []

    def linked(positions: Positions, pairs: np.ndarray) -> np.ndarray:
        edges = {tuple(edge) for edge in positions.view.union.adjacency.edge_index().T.tolist()}
        described.append(pairs)
        return np.array([[float(tuple(pair) in edges)] for pair in pairs.T.tolist()])

    monkeypatch.setattr(peers, "pair_statistics", linked)
    x, y = peers._Columns(task, 0).of_training_pairs(np.random.default_rng(0))
    assert not x.any()
    positives = np.concatenate(described, axis=1)[:, y == 1]
    edges = task.train.pairs[:, task.train.labels == 1]
    assert sorted(positives.T.tolist()) == sorted(edges.T.tolist())
    assert (y == 0).sum() == 3 * (y == 1).sum()


def test_boosting_measures_at_most_ten_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    task = LinkPrediction(data_of(nx.connected_caveman_graph(4, 8)), folds=12)
    measured: list[int] = []
    fold = task.fold
    monkeypatch.setattr(task, "fold", lambda f: (measured.append(f), fold(f))[1])
    peers._Columns(task, 0).of_training_pairs(np.random.default_rng(0))
    assert measured == list(range(10))


@pytest.mark.parametrize("kind", ["link", "pair"])
def test_training_pairs_are_capped(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MOST_TRAINING_PAIRS", 80)
    x, y = peers._Columns(TASKS[kind](), 0).of_training_pairs(np.random.default_rng(0))
    assert len(x) == len(y) <= 80
    assert len(y) > 60
    assert 0 < y.sum() < len(y)


# --- node2vec


@pytest.mark.usefixtures("stand_in")
def test_embeddings_come_back_in_the_order_of_the_nodes() -> None:
    """The stand-in writes them in an order that it draws first; what it computes is repeated here."""
    edges = adjacency_of(nx.complete_bipartite_graph(2, 9)).edges()
    task = PairClassification(Graph.from_edges(edges, y=np.arange(11) % 2), seed=0)
    h = next(peers._embeddings(task.union, 4))
    assert h.shape == (11, 64)
    rng = np.random.default_rng(4)
    rng.permutation(11)
    a = nx.to_numpy_array(nx.complete_bipartite_graph(2, 9))
    a = np.linalg.matrix_power(a / np.maximum(a.sum(axis=1), 1) + np.eye(11), 4)
    np.testing.assert_allclose(h, a @ rng.normal(size=(11, 64)), rtol=1e-4)


def test_node2vec_scores_pairs_as_measures_best_on_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["pair"]()
    lengths = np.linspace(1, 30, 36)[:, None]
    directions = np.eye(6)[task.graphs[0].y]
    # Of nodes of one class the cosine is 1 and of others 0, while the dot product of others is spoilt by length.
    h = lengths * (directions + 0.3)
    monkeypatch.setattr(peers, "_embeddings", lambda union, seed: [h])
    score = PEERS["node2vec"](task, 0)
    assert evaluate(task.val, score(task.val.pairs))["auc"] == 1
    assert evaluate(task.test, score(task.test.pairs))["auc"] == 1
    a, b = task.test.pairs
    assert evaluate(task.test, (h[a] * h[b]).sum(axis=1))["auc"] < 1


def test_without_pecanpy_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real thing: a Python that is told to see nothing but the standard library.
    text = f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n'
    monkeypatch.setenv(NODE2VEC_PYTHON, str(executable(tmp_path / "bare", text)))
    with pytest.raises(MissingExtraError, match=r"bare lacks .*pip install 'psgnn\[node2vec\]'") as caught:
        PEERS["node2vec"](TASKS["link"](), 0)
    assert "\n" not in str(caught.value)


def test_a_python_that_fails_or_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = executable(
        tmp_path / "old", "#!/bin/sh\necho first >&2\necho 'no attribute bool8' >&2\nexit 1\n"
    )
    monkeypatch.setenv(NODE2VEC_PYTHON, str(failing))
    with pytest.raises(InputError, match=r"old failed \(no attribute bool8\); it needs NumPy below 2"):
        PEERS["node2vec"](TASKS["link"](), 0)
    monkeypatch.setenv(NODE2VEC_PYTHON, str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"absent cannot be started \(No such file or directory\)"):
        PEERS["node2vec"](TASKS["link"](), 0)


@pytest.mark.slow
@pytest.mark.usefixtures("pecanpy")
def test_pecanpy_embeds_every_node_the_same_way_for_a_seed() -> None:
    graph = nx.connected_caveman_graph(6, 6)
    graph.add_node(36)  # without a neighbour to walk to
    task = LinkPrediction(data_of(graph), val=0.2, test=0.2, seed=0)
    scores = PEERS["node2vec"](task, 1)(task.test.pairs)
    assert np.isfinite(scores).all()
    assert np.array_equal(PEERS["node2vec"](task, 1)(task.test.pairs), scores)
    assert not np.array_equal(PEERS["node2vec"](task, 2)(task.test.pairs), scores)
    assert evaluate(task.test, scores)["auc"] > 0.8
