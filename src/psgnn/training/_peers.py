"""Other people's methods, which psgnn is compared with: they learn from the visible graph and the training pairs.

::

    score = PEERS["node2vec"](task, seed=0)
    score(task.test.pairs)      # [P], higher is more likely

Whatever a peer leaves open (how to score a pair, when to stop) is chosen on the validation pairs, so that it is
as strong as it can be without a look at the test pairs.

PecanPy, which makes node2vec's embeddings, does not work with NumPy 2. So it runs in a process of its own, under
this Python or under the one that the environment variable ``PSGNN_NODE2VEC_PYTHON`` names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from psgnn.anchors._rules import batch_anchors
from psgnn.errors import InputError, MissingExtraError
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.positions._kinds import is_ordered
from psgnn.positions._measure import Parts, positions_of
from psgnn.positions._statistics import pair_statistics
from psgnn.positions._view import View, features_of
from psgnn.tasks import LinkPrediction, Task
from psgnn.tasks._metrics import grouped_auc

Matrix = npt.NDArray[np.float32]
PairScores = Callable[[IntArray], npt.NDArray[Any]]  # pairs int64 [2, P] -> scores [P], higher is more likely
Peer = Callable[[Task, int], PairScores]

MOST_TRAINING_PAIRS = 200_000
MOST_FOLDS = 10  # each is measured anew

NODE2VEC_PYTHON = "PSGNN_NODE2VEC_PYTHON"
# Settings of node2vec; with p = q = 1 its walks are of first order. One worker, or the seed would decide nothing.
EQUAL_STEPS, WEIGHTED_STEPS = "FirstOrderUnweighted", "PreCompFirstOrder"  # PecanPy's modes
NODE2VEC: tuple[str, ...] = (
    "--dimensions", "64", "--walk-length", "80", "--num-walks", "10",
    "--window-size", "10", "--p", "1", "--q", "1", "--epochs", "1", "--workers", "1", "--implicit_ids",
)  # fmt: skip

MOST_FEATURES = 64  # of a node that a pair is described by; more are replaced by their principal components
NEGATIVES_A_POSITIVE = 3
ROUNDS, ROUNDS_A_CHECK, LEARNING_RATE = 400, 10, 0.05


# --- node2vec


def node2vec(task: Task, seed: int) -> PairScores:
    r"""Embeddings :math:`h_v \in R^{64}` of random walks on the visible graph (PecanPy).

    Where links have directions, strengths or lengths, walks that follow them (steps in proportion to the strength, or
    to one over the length) are tried too.

    The score is the best on validation of :math:`\cos(h_u, h_v)`, :math:`h_u \cdot h_v` and a logistic regression
    on :math:`h_u \odot h_v`. The regression learns from the training pairs; in link prediction those that are
    linked are edges of the graph that was embedded, as is usual for node2vec.
    """
    scorers = [scorer for h in _embeddings(task.union, seed) for scorer in _of_embeddings(task, h, seed)]
    return max(scorers, key=lambda scorer: _validation_auc(task, scorer(task.val.pairs)))


def _of_embeddings(task: Task, h: Matrix, seed: int) -> list[PairScores]:
    """Ways to score pairs by embeddings ``[N, 64]``."""
    unit = h / np.maximum(np.linalg.norm(h, axis=1, keepdims=True), 1e-12)
    ordered = task.union.kinds is not None and is_ordered(task.union.kinds.names)
    chosen = _sample(task.train.labels.size, MOST_TRAINING_PAIRS, np.random.default_rng(seed))
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

    def hadamard(pairs: IntArray) -> npt.NDArray[np.float64]:
        a, b = h[pairs[0]], h[pairs[1]]
        return np.concatenate([a * b, *([a, b] if ordered else [])], axis=1, dtype=np.float64)

    with threadpool_limits(1):  # the order in which threads add up would show in the last digits
        regression.fit(hadamard(task.train.pairs[:, chosen]), task.train.labels[chosen])
    return [
        lambda pairs: (unit[pairs[0]] * unit[pairs[1]]).sum(axis=1),
        lambda pairs: (h[pairs[0]] * h[pairs[1]]).sum(axis=1),
        lambda pairs: regression.decision_function(hadamard(pairs)),
    ]


def _embeddings(union: GraphBatch, seed: int) -> Iterator[Matrix]:
    """Embeddings of the plain graph, and of what is known of its links."""
    links, kinds = union.adjacency, union.kinds
    yield _embed((links.indptr, links.indices, np.ones(links.indices.size)), EQUAL_STEPS, seed)
    if kinds is None or not (kinds.directed or kinds.strengths is not None or kinds.lengths is not None):
        return
    weights = np.ones(kinds.edges.shape[1]) if kinds.strengths is None else kinds.strengths
    if kinds.strengths is None and kinds.lengths is not None:
        weights = np.median(kinds.lengths) / kinds.lengths
    arcs = kinds.outgoing
    yield _embed((arcs.indptr, arcs.indices, kinds.along(weights, arcs)), WEIGHTED_STEPS, seed)


def _embed(links: tuple[Any, Any, Any], mode: str, seed: int) -> Matrix:
    """Embeddings ``[N, 64]`` of a graph as CSR: its rows, their entries and the weights of these."""
    python = os.environ.get(NODE2VEC_PYTHON) or sys.executable
    indptr, indices, weights = links
    with TemporaryDirectory(prefix="psgnn-node2vec-") as folder:
        graph, embeddings = Path(folder, "graph.npz"), Path(folder, "embeddings.npz")
        np.savez(graph, indptr=indptr, indices=indices, data=weights.astype(np.float32))
        command = [python, "-m", "pecanpy.cli", "--input", str(graph), "--output", str(embeddings), *NODE2VEC]
        command += ["--mode", mode, *(["--weighted"] if mode == WEIGHTED_STEPS else [])]
        try:
            done = subprocess.run(
                [*command, "--random_state", str(seed % 2**32)],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
        except OSError as error:
            raise InputError(
                f"{NODE2VEC_PYTHON}={python} cannot be started ({error.strerror}); name a Python that has PecanPy"
            ) from None
        if "No module named 'pecanpy'" in done.stderr:
            place = f"PecanPy, which {python} lacks (another Python can be named by {NODE2VEC_PYTHON})"
            raise MissingExtraError(place, "node2vec", "node2vec")
        if done.returncode:
            reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise InputError(
                f"PecanPy under {python} failed ({reason[:150]}); it needs NumPy below 2: "
                f"name a Python that has both by {NODE2VEC_PYTHON}"
            )
        with np.load(embeddings) as found:
            h = np.zeros((indptr.size - 1, found["data"].shape[1]), np.float32)
            # PecanPy writes the nodes that its walks met most often first.
            h[found["IDs"].astype(np.int64)] = found["data"]
    return h


def _validation_auc(task: Task, scores: npt.NDArray[Any]) -> float:
    return grouped_auc(task.val.labels, scores, task.val.graph_ids)


# --- what gradient boosting on pair statistics makes of them, and the best of them alone


def boosting(task: Task, seed: int) -> PairScores:
    """Gradient-boosted trees (scikit-learn) on the pair statistics of psgnn and the nodes' features.

    In link prediction the training edges of a fold are described by the graph without that fold. The number of
    trees is chosen on validation.
    """
    columns = _Columns(task, seed)
    described, labels = columns.of_training_pairs(np.random.default_rng(seed))
    trees = HistGradientBoostingClassifier(
        learning_rate=LEARNING_RATE, max_iter=ROUNDS, early_stopping=False, random_state=seed
    )

    with threadpool_limits(1):  # as for node2vec
        trees.fit(described, labels)
        stages = trees.staged_decision_function(columns.of(task.val.pairs))
        checked = islice(stages, ROUNDS_A_CHECK - 1, None, ROUNDS_A_CHECK)
        aucs = [_validation_auc(task, scores.reshape(-1)) for scores in checked]
    rounds = ROUNDS_A_CHECK * (1 + int(np.argmax(aucs)))

    def score(pairs: IntArray) -> npt.NDArray[Any]:
        stages = trees.staged_decision_function(columns.of(pairs))
        return np.asarray(next(islice(stages, rounds - 1, None)).reshape(-1))

    return score


def best_column(task: Task, seed: int) -> PairScores:
    """The single number, of all that ``boosting`` is given, that ranks the validation pairs best, up or down."""
    columns = _Columns(task, seed)
    aucs = np.array([_validation_auc(task, column) for column in columns.of(task.val.pairs).T])
    best = int(np.argmax(np.abs(aucs - 0.5)))
    sign = 1 if aucs[best] >= 0.5 else -1
    return lambda pairs: sign * columns.of(pairs)[:, best]


class _Columns:
    """Pairs as rows of numbers: their statistics, and of the features of their nodes ``|a - b|, a * b, a + b``."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed = task, seed
        self.view = View(task.union, features_of(task.graphs))
        self.x = None if task.graphs[0].x is None else self.view.features
        if self.x is not None and self.x.shape[1] > MOST_FEATURES:
            size = min(MOST_FEATURES, self.x.shape[0])
            with threadpool_limits(1):
                self.x = PCA(size, random_state=seed).fit_transform(self.x).astype(np.float32)

    def of(self, pairs: IntArray, view: View | None = None) -> Matrix:
        """``[P, S]`` as seen in the view, by default that of the whole visible graph."""
        seen = view or self.view
        anchors = batch_anchors(seen.union, "mixed", "log^2", self.seed)
        columns = [pair_statistics(positions_of(seen, anchors, Parts()), pairs)]
        if self.x is not None:
            a, b = self.x[pairs[0]], self.x[pairs[1]]
            columns += [np.abs(a - b), a * b, a + b]
        return np.concatenate(columns, axis=1).astype(np.float32)

    def of_training_pairs(self, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
        """Columns ``[P, S]`` and labels ``[P]`` of at most so many pairs as boosting can take."""
        task = self.task
        if not isinstance(task, LinkPrediction):
            chosen = _sample(task.train.labels.size, MOST_TRAINING_PAIRS, rng)
            return self.of(task.train.pairs[:, chosen]), task.train.labels[chosen]
        described, labels = [], []
        folds = range(min(task.folds, MOST_FOLDS))
        most = MOST_TRAINING_PAIRS // (1 + NEGATIVES_A_POSITIVE) // len(folds)
        for fold in map(task.fold, folds):
            positives = fold.positives[:, _sample(fold.positives.shape[1], most, rng)]
            negatives = task.sample_negatives(NEGATIVES_A_POSITIVE * positives.shape[1], rng)
            if positives.shape[1]:  # a small graph leaves some folds empty
                pairs = np.concatenate([positives, negatives], axis=1)
                described.append(self.of(pairs, View(fold.union, self.view.features)))
                labels.append(
                    np.repeat(np.array([1, 0], np.float32), [positives.shape[1], negatives.shape[1]])
                )
        return np.concatenate(described), np.concatenate(labels)


def _sample(size: int, most: int, rng: np.random.Generator) -> IntArray:
    """Places of all of ``size`` things, or of a random ``most`` of them, in order."""
    if size <= most:
        return np.arange(size)
    return np.sort(rng.choice(size, most, replace=False))


PEERS: dict[str, Peer] = {"node2vec": node2vec, "boosting": boosting, "best-column": best_column}
