"""What part a node plays in its graph (its degree and what is around it), and features for graphs without any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import farthest_first
from psgnn.anchors._rules import anchor_count
from psgnn.distances._propagation import in_parts
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.kernels._csr import triangles
from psgnn.kernels._propagation import degree_rows, sum_rows
from psgnn.positions._view import View

Doubles = npt.NDArray[np.float64]

ROLES = (
    "log degree", "mean log degree of neighbours", "log of two-step walks", "clustering", "share of leaves around",
    "log size of the component", "share of the component", "no link", "log of three-step walks",
    "log of the largest degree around",
)  # fmt: skip


def roles_of(union: GraphBatch) -> npt.NDArray[np.float32]:
    """The `ROLES` of every node, ``[N, 10]``."""
    adjacency = union.adjacency
    degrees = adjacency.degrees.astype(np.float64)
    logs, walks, leaves, largest = _degrees_around(adjacency)
    members = np.bincount(adjacency.components)[adjacency.components]
    closed = triangles(adjacency.indptr, adjacency.indices)
    around = logs, walks, leaves, largest, _sum_around(adjacency, walks)
    return role_columns(degrees, around, members, union.sizes[union.graph_of], closed)


def role_columns(
    degrees: Doubles, around: Sequence[Doubles], members: IntArray, sizes: Any, closed: Doubles
) -> npt.NDArray[np.float32]:
    """The `ROLES` of some nodes, ``[n, 10]``.

    Args:
        degrees: Their degrees.
        around: Sums of ``log1p(degree)`` and of degrees over their neighbours, the leaves among these, their largest
            degree, and the walks of three steps.
        members: Nodes of their component.
        sizes: Nodes of their graph.
        closed: The triangles that they are in.
    """
    logs, walks, leaves, largest, further = around
    linked = np.maximum(degrees, 1)
    columns = [
        np.log1p(degrees),
        logs / linked,
        np.log1p(walks),
        2 * closed / np.maximum(degrees * (degrees - 1), 1),
        leaves / linked,
        np.log(members),
        members / sizes,
        degrees == 0,
        np.log1p(further),
        np.log1p(largest),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _degrees_around(adjacency: Adjacency) -> Doubles:
    """Over the neighbours of every node: the sum of their ``log1p(degree)``, of their degrees, how many are leaves, and
    their largest degree, ``[4, N]``."""
    logs = np.log1p(np.arange(adjacency.degrees.max(initial=0) + 1, dtype=np.float64))
    out = np.zeros((4, adjacency.num_nodes))
    in_parts(adjacency, 4, degree_rows, adjacency.degrees, logs, out)
    return out


def _sum_around(adjacency: Adjacency, values: Doubles) -> Doubles:
    """The sum of the values ``[N]`` of the neighbours of every node, ``[N]``."""
    out = np.zeros(adjacency.num_nodes)
    in_parts(adjacency, 4, sum_rows, values, out)
    return out


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
