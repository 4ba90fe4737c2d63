"""Features that any graph has: what a scorer may look at where nodes carry none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import farthest_first
from psgnn.anchors._rules import anchor_count
from psgnn.positions._view import View

STRUCTURAL_FEATURES = 4


def structural_features(view: View) -> npt.NDArray[np.float64]:
    """Degree, mean degree of neighbours, mean and largest distance to landmarks, ``[N, 4]``.

    Standardised within each graph, so that they mean the same in graphs of any size; O(E + N log N). The
    landmarks are log2 N farthest-first nodes. They are kept with the view.
    """
    if view.structure is None:
        view.structure = _structural_features(view)
    return view.structure


def _structural_features(view: View) -> npt.NDArray[np.float64]:
    union = view.union
    adjacency = union.adjacency
    degree = np.log1p(adjacency.degrees)
    around = np.bincount(adjacency.rows, degree[adjacency.indices], minlength=union.num_nodes)
    landmarks = np.full((union.num_graphs, anchor_count(int(union.sizes.max()), "log")), -1, np.int64)
    for g, size in enumerate(union.sizes):
        count = anchor_count(int(size), "log")
        rng = np.random.default_rng(0)
        landmarks[g, :count] = union.ptr[g] + farthest_first(union.graph(g), count, rng)
    hops = view.oracle.hops(landmarks).astype(np.float64)
    reached = hops >= 0
    mean = np.where(reached, hops, 0).sum(axis=1) / np.maximum(reached.sum(axis=1), 1)
    columns = np.stack([degree, around / np.maximum(adjacency.degrees, 1), mean, hops.max(axis=1)])
    for column in columns:
        total = np.add.reduceat(column, union.ptr[:-1]) / union.sizes
        column -= total[union.graph_of]
        spread = np.sqrt(np.add.reduceat(column**2, union.ptr[:-1]) / union.sizes)
        column /= np.maximum(spread, 1e-6)[union.graph_of]
    return columns.T.copy()
