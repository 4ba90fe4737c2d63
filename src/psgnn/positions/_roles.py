"""What part a node plays in its graph, wherever it is: its degree, and what is around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import in_parts
from psgnn.graph._graph import Adjacency, GraphBatch
from psgnn.kernels._pairs import triangles
from psgnn.kernels._propagation import degree_rows, sum_rows

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
    linked = np.maximum(degrees, 1)
    logs, walks, leaves, largest = _degrees_around(adjacency)
    members = np.bincount(adjacency.components)[adjacency.components]
    closed = triangles(adjacency.indptr, adjacency.indices)
    columns = [
        np.log1p(degrees),
        logs / linked,
        np.log1p(walks),
        2 * closed / np.maximum(degrees * (degrees - 1), 1),
        leaves / linked,
        np.log(members),
        members / union.sizes[union.graph_of],
        degrees == 0,
        np.log1p(_sum_around(adjacency, walks)),
        np.log1p(largest),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _degrees_around(adjacency: Adjacency) -> Doubles:
    """Over the neighbours of every node: the sum of their ``log1p(degree)``, of their degrees, how many are leaves, and
    their largest degree, ``[4, N]``."""
    logs = np.log1p(np.arange(adjacency.degrees.max(initial=0) + 1, dtype=np.float64))
    out = np.zeros((4, adjacency.num_nodes))
    in_parts(adjacency, 4, degree_rows, logs, out)
    return out


def _sum_around(adjacency: Adjacency, values: Doubles) -> Doubles:
    """The sum of the values ``[N]`` of the neighbours of every node, ``[N]``."""
    out = np.zeros(adjacency.num_nodes)
    in_parts(adjacency, 4, sum_rows, values, out)
    return out
