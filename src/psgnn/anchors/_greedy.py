"""Anchors picked one after another, each seeing those already picked. No N x N table at any size."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels import _anchors as kernels
from psgnn.kernels._bfs import LANES

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
    kernels.farthest_first(adjacency.indptr, adjacency.indices, nearest, order, anchors, len(chosen))
    return anchors


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
            still_paired = kernels.paired_after(columns, members, starts)[candidates]
        else:
            pool = np.flatnonzero(shared)
            candidates = rng.choice(pool, min(SAMPLED_CANDIDATES, pool.size), replace=False)
            still_paired = np.concatenate(
                [
                    kernels.paired_after(hop_columns(adjacency, candidates[i : i + LANES]), members, starts)
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
        return int(kernels.newly_covered(*csr, candidates[i], hops, covered, reach, queue, mark))

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
