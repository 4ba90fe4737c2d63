"""ALS and BPR of `implicit` as peers of two-sided graphs, for lab/benchmarks/kinds.py.

They run in the Python that PSGNN_IMPLICIT_PYTHON names (pip install implicit scipy). Their settings are chosen by
recall@20 of the validation pairs, as a user would.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from psgnn.tasks import LinkPrediction

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
np.savez(sys.argv[2], **{name.upper(): scores for name, (_, scores) in best.items()})
"""


def recommenders(task: LinkPrediction, python: str) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """ALS and BPR, each with the settings that are best on the validation pairs, by title."""
    assert task.union.kinds is not None
    sides = np.asarray(task.union.kinds.sides)
    users = int((sides == 0).sum())
    assert not sides[:users].any()  # they come first
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
