"""Loops of the anchor rules: greedy choices, shortest-path flow, colour refinement and boosting."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.kernels._bfs import NO_CUTOFF, queue_bfs
from psgnn.kernels._compile import njit

Ids = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

APART, NEAR = 5, 4  # cells of the hop difference, and of the distance of the nearer node
CELLS = APART * NEAR + 1  # the last for a pair of which a node does not reach the anchor
RIDGE = 1.0


@njit(cache=True, nogil=True)
def farthest_first(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    nearest: npt.NDArray[np.int32],
    order: Ids,
    anchors: Ids,
    given: int,
) -> None:
    """Fill ``anchors[given:]``. A search stops where another anchor is as near, so all of them are cheap."""
    queue = np.empty(order.size, np.int32)
    rank = np.empty(order.size, np.int32)
    for i in range(order.size):
        rank[order[i]] = i
    for k in range(anchors.size):
        if k >= given:
            best, most = -1, -1
            for v in range(nearest.size):
                away = nearest[v]
                if away > most or (away == most >= 0 and rank[v] < rank[best]):
                    best, most = v, away
            anchors[k] = best
        source = anchors[k]
        nearest[source] = 0
        queue[0] = source
        size, head = 1, 0
        while head < size:
            v = queue[head]
            head += 1
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if nearest[w] > nearest[v] + 1:
                    nearest[w] = nearest[v] + 1
                    queue[size] = w
                    size += 1
        nearest[source] = -1  # never picked again


@njit(cache=True, nogil=True)
def paired_after(columns: npt.NDArray[np.int16], members: Ids, starts: Ids) -> Doubles:
    """For each column, the sum over classes and values of (nodes of that class and value)^2.

    Class ``c`` is ``members[starts[c]:starts[c + 1]]``. Fewer is better: the square counts ordered pairs
    that the column leaves together.
    """
    num_columns = columns.shape[1]
    together = np.zeros(num_columns)
    counts = np.zeros((columns.max() + 2, num_columns), np.int64)
    for c in range(starts.size - 1):
        if starts[c + 1] - starts[c] == 1:
            continue
        for i in range(starts[c], starts[c + 1]):
            row = columns[members[i]]
            for j in range(num_columns):
                together[j] += 2 * counts[row[j] + 1, j] + 1
                counts[row[j] + 1, j] += 1
        for i in range(starts[c], starts[c + 1]):
            row = columns[members[i]]
            for j in range(num_columns):
                counts[row[j] + 1, j] = 0
    return together


@njit(cache=True, nogil=True)
def newly_covered(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    node: int,
    hops: int,
    covered: npt.NDArray[np.bool_],
    reach: npt.NDArray[np.int32],
    queue: npt.NDArray[np.int32],
    mark: bool,
) -> int:
    """How many nodes within `hops` of `node` are not covered; marks them as covered if asked to.

    `reach` is scratch, all -1 before and after.
    """
    reach[node] = 0
    queue[0] = node
    size, head = 1, 0
    while head < size:
        v = queue[head]
        head += 1
        if reach[v] < hops:
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if reach[w] < 0:
                    reach[w] = reach[v] + 1
                    queue[size] = w
                    size += 1
    gain = 0
    for i in range(size):
        v = queue[i]
        reach[v] = -1
        if not covered[v]:
            gain += 1
            covered[v] = mark
    return gain


@njit(cache=True, nogil=True)
def add_flow(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    first: int,
    stride: int,
    split_evenly: bool,
    scores: Doubles,
) -> None:
    """Brandes' accumulation from the sources ``first, first + stride, ...``."""
    num_nodes = indptr.size - 1
    hops = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    paths = np.ones(num_nodes)
    flow = np.zeros(num_nodes)
    seed = np.empty(1, np.int64)
    for source in range(first, num_nodes, stride):
        seed[0] = source
        reached = queue_bfs(indptr, indices, seed, hops, queue, NO_CUTOFF)
        paths[source] = 1.0
        for place in range(reached):
            v = queue[place]
            flow[v] = 0.0
            if place and not split_evenly:
                paths[v] = 0.0
                for i in range(indptr[v], indptr[v + 1]):
                    if hops[indices[i]] == hops[v] - 1:
                        paths[v] += paths[indices[i]]
        for place in range(reached - 1, 0, -1):
            w = queue[place]
            scores[w] += flow[w]
            ways = paths[w]
            if split_evenly:
                ways = 0.0
                for i in range(indptr[w], indptr[w + 1]):
                    ways += hops[indices[i]] == hops[w] - 1
            share = (1.0 + flow[w]) / ways
            for i in range(indptr[w], indptr[w + 1]):
                v = indices[i]
                if hops[v] == hops[w] - 1:
                    flow[v] += share if split_evenly else share * paths[v]


@njit(cache=True, nogil=True)
def mix_neighbours(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], colours: Ids
) -> npt.NDArray[Any]:
    """A 64-bit hash of each node's colour and the multiset of its neighbours' colours."""
    mixed = np.empty(colours.size, np.uint64)
    for v in range(colours.size):
        total = np.uint64(0)
        for i in range(indptr[v], indptr[v + 1]):
            total += _hash(np.uint64(colours[indices[i]]))
        mixed[v] = _hash(total + _hash(~np.uint64(colours[v])))
    return mixed


@njit(cache=True, nogil=True, inline="always")
def _hash(word: np.uint64) -> np.uint64:
    """The finaliser of splitmix64."""
    word += np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def pair_cells(hops: npt.NDArray[np.int16], us: Ids, vs: Ids, out: npt.NDArray[np.uint8]) -> None:
    """The cell of every pair for every candidate, ``out [C, P]``: hop difference by nearer distance."""
    for i in range(us.size):
        for c in range(out.shape[0]):
            a, b = hops[us[i], c], hops[vs[i], c]
            if a < 0 or b < 0:
                out[c, i] = CELLS - 1
            else:
                out[c, i] = min(abs(a - b), APART - 1) * NEAR + min(min(a, b), NEAR - 1)


@njit(cache=True, nogil=True)
def cell_gains(cells: npt.NDArray[np.uint8], slope: Doubles, curve: Doubles, out: Doubles) -> None:
    """How much a table of scores by the cells of each candidate lowers the log-loss, to second order; ``out [C]``."""
    for c in range(cells.shape[0]):
        g, h = np.zeros(CELLS), np.zeros(CELLS)
        for i in range(cells.shape[1]):
            g[cells[c, i]] += slope[i]
            h[cells[c, i]] += curve[i]
        out[c] = (g * g / (h + RIDGE)).sum()
