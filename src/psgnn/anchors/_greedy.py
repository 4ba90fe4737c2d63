"""Anchors picked one after another, each seeing those already picked. No N x N table at any size."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._bfs import LANES
from psgnn.kernels._compile import njit
from psgnn.kernels._llvm import STRIDE, prefetch

# Up to this many nodes every node is a candidate in every step; beyond it, a sample is.
ALL_CANDIDATES = 4096
SAMPLED_CANDIDATES = 256


def farthest_first(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
    """Gonzalez' k-centre: each next anchor is the node farthest from the anchors so far.

    The first is the node farthest from a random node of the largest component. A component without an
    anchor is as far away as its size minus one, so that an isolated node never comes before a node that
    tells others apart. Ties are broken by a random order.
    """
    labels = adjacency.components
    start = rng.choice(np.flatnonzero(labels == np.bincount(labels).argmax()))
    away = hop_columns(adjacency, np.array([start]))[:, 0]
    order = rng.permutation(adjacency.num_nodes)
    return _extend_farthest_first(adjacency, [int(order[away[order].argmax()])], order, k)


def _extend_farthest_first(adjacency: Adjacency, chosen: list[int], order: IntArray, k: int) -> IntArray:
    """Add the farthest node to `chosen` until there are `k`; of equally far ones, the first in `order`."""
    labels = adjacency.components
    nearest = (np.bincount(labels)[labels] - 1).astype(np.int32)
    anchors = np.full(k, -1, np.int64)
    anchors[: len(chosen)] = chosen
    _farthest_first(adjacency.indptr, adjacency.indices, nearest, order, anchors, len(chosen))
    return anchors


@njit(cache=True, nogil=True)
def _farthest_first(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    nearest: npt.NDArray[np.int32],
    order: IntArray,
    anchors: IntArray,
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
            if head + 3 * STRIDE < size:  # as in `queue_bfs`
                prefetch(indptr, queue[head + 3 * STRIDE])
                prefetch(indices, indptr[queue[head + 2 * STRIDE]])
                soon = queue[head + STRIDE]
                for i in range(indptr[soon], indptr[soon + 1]):
                    prefetch(nearest, indices[i])
            v = queue[head]
            head += 1
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if nearest[w] > nearest[v] + 1:
                    nearest[w] = nearest[v] + 1
                    queue[size] = w
                    size += 1
        nearest[source] = -1  # never picked again


def greedy_resolving(adjacency: Adjacency, k: int, rng: np.random.Generator) -> IntArray:
    """Each next anchor separates the most pairs of nodes that share their distances to the anchors so far.

    Up to `ALL_CANDIDATES` nodes all are weighed in every step; beyond that, `SAMPLED_CANDIDATES` random
    nodes that still share their vector with another. Once every node has a vector of its own, the
    remaining anchors are farthest-first.
    """
    num_nodes = adjacency.num_nodes
    classes = np.zeros(num_nodes, np.int64)
    anchors: list[int] = []
    everyone = hop_columns(adjacency, np.arange(num_nodes)) if num_nodes <= ALL_CANDIDATES else None
    order = rng.permutation(num_nodes)
    while len(anchors) < k:
        members = np.argsort(classes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(classes))])
        shared = np.diff(starts)[classes] > 1
        if not shared.any():
            break
        if everyone is not None:
            candidates, columns = order, everyone
            still_paired = _paired_after(columns, members, starts)[candidates]
        else:
            pool = np.flatnonzero(shared)
            candidates = rng.choice(pool, min(SAMPLED_CANDIDATES, pool.size), replace=False)
            still_paired = np.concatenate(
                [
                    _paired_after(hop_columns(adjacency, candidates[i : i + LANES]), members, starts)
                    for i in range(0, candidates.size, LANES)
                ]
            )
        best = int(candidates[still_paired.argmin()])
        anchors.append(best)
        classes = refine(classes, hop_columns(adjacency, np.array([best]))[:, 0])
    if len(anchors) == k:
        return np.array(anchors, np.int64)
    return _extend_farthest_first(adjacency, anchors, order, k)


def refine(classes: IntArray, column: npt.NDArray[np.int16]) -> IntArray:
    """Split every class by the value of the column; classes stay numbered 0, 1, ..."""
    codes = classes * (int(column.max()) + 2) + column + 1
    return np.asarray(np.unique(codes, return_inverse=True)[1], np.int64)


@njit(cache=True, nogil=True)
def _paired_after(
    columns: npt.NDArray[np.int16], members: IntArray, starts: IntArray
) -> npt.NDArray[np.float64]:
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


def greedy_coverage(adjacency: Adjacency, k: int, rng: np.random.Generator, hops: int = 3) -> IntArray:
    """Each next anchor has the most nodes within `hops` that no anchor covers yet (dominating set).

    Candidates are all nodes up to `ALL_CANDIDATES`, beyond that the nodes of largest degree and random ones,
    half each. When everything that can be covered is, covering starts anew.
    """
    num_nodes = adjacency.num_nodes
    candidates = rng.permutation(num_nodes)
    if num_nodes > ALL_CANDIDATES:
        half = max(ALL_CANDIDATES // 2, k)
        largest = candidates[np.argsort(-adjacency.degrees[candidates], kind="stable")[:half]]
        candidates = np.unique(np.concatenate([largest, candidates[:half]]))
        rng.shuffle(candidates)
    csr = adjacency.indptr, adjacency.indices
    covered = np.zeros(num_nodes, np.bool_)
    reach = np.full(num_nodes, -1, np.int32)
    queue = np.empty(num_nodes, np.int32)

    def gain(i: int, mark: bool = False) -> int:
        return int(_newly_covered(*csr, candidates[i], hops, covered, reach, queue, mark))

    balls = {i: gain(i) for i in range(candidates.size)}
    heap: list[tuple[int, int]] = []
    anchors: list[int] = []
    while len(anchors) < k:
        if not heap:
            covered[:] = False
            heap = [(-size, i) for i, size in balls.items()]
            heapq.heapify(heap)
        _, i = heapq.heappop(heap)
        # Gains only shrink while more gets covered, so a candidate that stays ahead is best (lazy greedy).
        now = gain(i)
        if now and heap and (-now, i) > heap[0]:
            heapq.heappush(heap, (-now, i))
        elif now:
            gain(i, mark=True)
            anchors.append(int(candidates[i]))
            del balls[i]
    return np.array(anchors, np.int64)


@njit(cache=True, nogil=True)
def _newly_covered(
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
