"""Personalised PageRank and diffusion from a set of anchors, all anchors at once, O(E K) a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from psgnn.distances.engine import num_threads, run_threads
from psgnn.errors import InputError
from psgnn.graph import Adjacency, IntArray

Floats = npt.NDArray[np.float32]


@njit(cache=True, nogil=True, fastmath=True)
def _spread_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    x: Floats,
    inward: Floats,
    outward: Floats,
    y: Floats,
    first: int,
    last: int,
) -> None:
    """Rows ``first:last`` of ``y = diag(outward) A diag(inward) x``; an isolated node keeps its row."""
    for v in range(first, last):
        row = y[v]
        if indptr[v] == indptr[v + 1]:
            for k in range(row.size):  # an assignment of slices takes seconds to compile
                row[k] = x[v, k]
            continue
        for k in range(row.size):
            row[k] = 0.0
        for i in range(indptr[v], indptr[v + 1]):
            w = indices[i]
            for k in range(row.size):
                row[k] += inward[w] * x[w, k]
        for k in range(row.size):
            row[k] *= outward[v]


def spread(adjacency: Adjacency, x: Floats, inward: Floats, outward: Floats) -> Floats:
    """``diag(outward) A diag(inward) x`` for ``x [N, K]``, on all cores; their number changes no bit."""
    y = np.empty_like(x)
    bounds = np.linspace(0, adjacency.num_nodes, num_threads() + 1).astype(np.int64)

    def rows(piece: int) -> None:
        _spread_rows(
            adjacency.indptr, adjacency.indices, x, inward, outward, y, bounds[piece], bounds[piece + 1]
        )

    run_threads(rows, range(bounds.size - 1), adjacency.indices.size * x.shape[1] / 4)
    return y


def indicator(num_nodes: int, nodes: IntArray, starts: IntArray) -> Floats:
    """One column a set: 1 at the members of set ``j`` = ``nodes[starts[j]:starts[j + 1]]``; ``[N, L]``."""
    x = np.zeros((num_nodes, starts.size - 1), np.float32)
    x[nodes, np.repeat(np.arange(starts.size - 1), np.diff(starts))] = 1
    return x


def pagerank_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    starts: IntArray | None = None,
    *,
    restart: float = 0.15,
    steps: int = 20,
) -> Floats:
    r"""Personalised PageRank of every node for each set, ``[N, L]``, by power steps.

    .. math:: p_{t+1} = r \, e_a + (1 - r) \, A D^{-1} p_t, \qquad p_0 = e_a

    The members of a set are walked from independently: in a union of graphs, the members in different
    graphs do not share their mass. Without `starts` every node is a set of its own.
    """
    if not 0 < restart < 1 or steps < 1:
        raise InputError(f"PageRank needs 0 < restart < 1 and steps >= 1, found {restart} and {steps}")
    starts = np.arange(nodes.size + 1) if starts is None else starts
    inward = (1 / np.maximum(adjacency.degrees, 1)).astype(np.float32)
    onward = np.float32(1 - restart)
    outward = np.full_like(inward, onward)
    lonely = np.flatnonzero(adjacency.degrees == 0)
    columns = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    x = indicator(adjacency.num_nodes, nodes, starts)
    for _ in range(steps):
        x = spread(adjacency, x, inward, outward)
        x[lonely] *= onward  # `spread` lets a node without links keep its row
        x[nodes, columns] += np.float32(restart)
    return x


def diffusion_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    starts: IntArray | None = None,
    *,
    steps: Sequence[int] = (2, 4),
) -> list[Floats]:
    r"""Symmetrically normalised diffusion :math:`(D^{-1/2} A D^{-1/2})^t e_a` for each ``t`` in `steps`."""
    if not steps or min(steps) < 1:
        raise InputError(f"diffusion needs steps of 1 or more, found {list(steps)}")
    starts = np.arange(nodes.size + 1) if starts is None else starts
    scale = (1 / np.sqrt(np.maximum(adjacency.degrees, 1))).astype(np.float32)
    x = indicator(adjacency.num_nodes, nodes, starts)
    kept = {}
    for t in range(1, max(steps) + 1):
        x = spread(adjacency, x, scale, scale)
        if t in steps:
            kept[t] = x
    return [kept[t] for t in steps]
