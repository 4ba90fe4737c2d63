"""MovieLens: ready-made weights beside ALS and BPR of `implicit`, item-kNN and popularity, on the same split.

Run: python lab/benchmarks/recommenders.py lab/benchmarks/results/recommenders.json [time] [random]

`implicit` runs in the Python that PSGNN_IMPLICIT_PYTHON names (pip install implicit scipy). Its settings are chosen by
recall@20 of the validation pairs, as a user would. Ours have none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from psgnn.datasets import load_dataset
from psgnn.scoring import pretrained, score_pairs
from psgnn.tasks import LinkPrediction
from psgnn.tasks._metrics import evaluate
from psgnn.tasks._per_node import metrics_per_node

SHOWN = ("auc", "mrr_per_node", "hits@10_per_node", "recall@20_per_node")
LEARN = """
import sys, warnings
import numpy as np, scipy.sparse as sp
warnings.simplefilter("ignore")
from implicit.als import AlternatingLeastSquares
from implicit.bpr import BayesianPersonalizedRanking

given = np.load(sys.argv[1])
shape = tuple(given["shape"])
links = given["train"], given["val"]
seen, val = (sp.csr_matrix((np.ones(p.shape[1], np.float32), tuple(p)), shape=shape) for p in links)

def recall(scores):
    scores = scores.copy()
    scores[seen.toarray() > 0] = -np.inf
    top = np.argsort(-scores, axis=1)[:, :20]
    return np.mean([np.isin(val[u].indices, top[u]).mean() for u in np.flatnonzero(np.diff(val.indptr))])

als = [AlternatingLeastSquares(factors=f, regularization=r, alpha=a, iterations=20, random_state=0)
       for f in (8, 16, 32, 64) for r in (0.1, 1.0) for a in (1.0, 10.0)]
bpr = [BayesianPersonalizedRanking(factors=f, learning_rate=l, regularization=r, iterations=200, random_state=0)
       for f in (16, 64) for l in (0.01, 0.05) for r in (0.01, 0.1)]
best = {}
for name, models in (("als", als), ("bpr", bpr)):
    for model in models:
        model.fit(seen, show_progress=False)
        scores = model.user_factors @ model.item_factors.T
        found = recall(scores)
        if name not in best or found > best[name][0]:
            best[name] = found, scores
np.savez(sys.argv[2], **{name: scores for name, (_, scores) in best.items()})
"""


def main(target: str, *splits: str) -> None:
    """Measure the split by time or other splits, print a table and write the record after each."""
    python = os.environ["PSGNN_IMPLICIT_PYTHON"]
    [graph] = load_dataset("movielens-100k")
    record: dict[str, Any] = {}
    for split in splits or ("time",):
        seeds = 1 if split == "time" else 5
        rows: dict[str, list[dict[str, float]]] = {}
        for seed in range(100, 100 + seeds):
            task = LinkPrediction(graph, seed=seed, split=split)
            for name, score in {**_ours(task), **_theirs(task, python)}.items():
                found = evaluate(task.test, score(task.test.pairs)) | metrics_per_node(task, score, seed)
                rows.setdefault(name, []).append({key: round(float(found[key]), 4) for key in SHOWN})
        record[split] = rows
        for name, values in rows.items():
            means = [f"{key} {np.mean([value[key] for value in values]):.4f}" for key in SHOWN]
            print(f"{split:7s} {name:28s} {'  '.join(means)}", flush=True)
        Path(target).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _ours(task: LinkPrediction) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Ready-made weights, and the rules of recommenders."""
    scorer = pretrained().on_union(task.union, [graph.names for graph in task.graphs])
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {"psgnn, ready-made weights": scorer.score}
    for name in ("item-knn", "user-knn", "three-paths", "preferential-attachment", "recent-activity"):
        found[name] = lambda pairs, name=name: score_pairs(name, task.union, pairs)
    return found


def _theirs(task: LinkPrediction, python: str) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """ALS and BPR, each with the settings that are best on the validation pairs."""
    assert task.union.kinds is not None
    sides = np.asarray(task.union.kinds.sides)
    users = int((sides == 0).sum())  # they come first
    parts = {"train": task.union.kinds.edges, "val": task.val.pairs[:, task.val.labels == 1]}
    with tempfile.TemporaryDirectory() as folder:
        given, scores = Path(folder, "given.npz"), Path(folder, "scores.npz")
        shifted = {name: pairs - np.array([[0], [users]]) for name, pairs in parts.items()}
        np.savez(given, shape=[users, sides.size - users], **shifted)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""}
        subprocess.run([python, "-c", LEARN, str(given), str(scores)], check=True, env=environment)
        with np.load(scores) as loaded:
            tables = {name: np.array(loaded[name]) for name in loaded.files}
    return {
        name: lambda pairs, table=table: table[pairs[0], pairs[1] - users] for name, table in tables.items()
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
