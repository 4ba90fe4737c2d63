"""What part a node plays in its graph, wherever it is: its degree, and what is around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import in_parts
from psgnn.graph._graph import Adjacency, GraphBatch
from psgnn.kernels._compile import njit
from psgnn.kernels._llvm import AHEAD, prefetch
from psgnn.kernels._pairs import triangles

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
    in_parts(adjacency, 4, _degree_rows, logs, out)
    return out


def _sum_around(adjacency: Adjacency, values: Doubles) -> Doubles:
    """The sum of the values ``[N]`` of the neighbours of every node, ``[N]``."""
    out = np.zeros(adjacency.num_nodes)
    in_parts(adjacency, 4, _sum_rows, values, out)
    return out


@njit(cache=True, nogil=True)
def _degree_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    logs: Doubles,
    out: Doubles,
    first: int,
    last: int,
) -> None:
    """Columns ``first:last`` of `_degrees_around`, where ``logs[d]`` is ``log1p(d)``."""
    final = indices.size - 1
    for v in range(first, last):
        total, walks, leaves, largest = 0.0, 0, 0, 0
        for i in range(indptr[v], indptr[v + 1]):
            prefetch(indptr, np.int64(indices[min(i + AHEAD, final)]))
            degree = indptr[indices[i] + 1] - indptr[indices[i]]
            total += logs[degree]
            walks += degree
            leaves += degree == 1
            largest = max(largest, degree)
        out[0, v], out[1, v], out[2, v], out[3, v] = total, walks, leaves, largest


@njit(cache=True, nogil=True)
def _sum_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: Doubles,
    out: Doubles,
    first: int,
    last: int,
) -> None:
    """Entries ``first:last`` of `_sum_around`."""
    final = indices.size - 1
    for v in range(first, last):
        total = 0.0
        for i in range(indptr[v], indptr[v + 1]):
            prefetch(values, np.int64(indices[min(i + AHEAD, final)]))
            total += values[indices[i]]
        out[v] = total
