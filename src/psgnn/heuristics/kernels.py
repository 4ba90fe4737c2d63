"""Pair scores that look only at the pairs asked: each kernel fills ``out [P]`` for one slice of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ids = npt.NDArray[np.int64]
Neighbours = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def pair_hops(indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, cutoff: int, out: Scores) -> None:
    """Hops between ``us[i]`` and ``vs[i]`` (-1 = none within the cutoff), by search from both ends.

    The side with fewer edges to look at grows by a whole level at a time. The first node that both sides
    have seen then lies on a shortest path.
    """
    num_nodes = indptr.size - 1
    seen = np.full(num_nodes, -1, np.int64)  # 2 i + side for pair i
    queue = np.empty((2, num_nodes), np.int32)
    head, tail = np.zeros(2, np.int64), np.zeros(2, np.int64)
    work, depth = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for i in range(us.size):
        out[i] = -1
        if us[i] == vs[i]:
            out[i] = 0
            continue
        for side, end in ((0, us[i]), (1, vs[i])):
            seen[end] = 2 * i + side
            queue[side, 0] = end
            head[side], tail[side], depth[side] = 0, 1, 0
            work[side] = indptr[end + 1] - indptr[end]
        met = False
        while not met and head[0] < tail[0] and head[1] < tail[1] and depth[0] + depth[1] < cutoff:
            side = 0 if work[0] <= work[1] else 1
            mine, other = 2 * i + side, 2 * i + 1 - side
            last = tail[side]
            work[side] = 0
            while head[side] < last and not met:
                v = queue[side, head[side]]
                head[side] += 1
                for j in range(indptr[v], indptr[v + 1]):
                    w = indices[j]
                    if seen[w] == other:
                        met = True
                        break
                    if seen[w] != mine:
                        seen[w] = mine
                        queue[side, tail[side]] = w
                        tail[side] += 1
                        work[side] += indptr[w + 1] - indptr[w]
            depth[side] += 1
        if met:
            out[i] = depth[0] + depth[1]


@njit(cache=True, nogil=True)
def shared_neighbours(
    indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, weights: Scores, out: Scores
) -> None:
    """Sum of the weights of the common neighbours, by a merge of the two sorted rows."""
    for i in range(us.size):
        a, a_end = indptr[us[i]], indptr[us[i] + 1]
        b, b_end = indptr[vs[i]], indptr[vs[i] + 1]
        total = 0.0
        while a < a_end and b < b_end:
            if indices[a] == indices[b]:
                total += weights[indices[a]]
                a += 1
                b += 1
            elif indices[a] < indices[b]:
                a += 1
            else:
                b += 1
        out[i] = total


@njit(cache=True, nogil=True)
def pushed_pagerank(
    indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, restart: float, tolerance: float, out: Scores
) -> None:
    """Personalised PageRank of ``vs[i]`` for a walk restarted at ``us[i]``; equal `us` stand together.

    Forward push (Andersen, Chung, Lang 2006): mass that is not yet settled moves on while it exceeds
    `tolerance` times the degree, so the work does not depend on the size of the graph.
    """
    num_nodes = indptr.size - 1
    settled, waiting = np.zeros(num_nodes), np.zeros(num_nodes)
    queued = np.zeros(num_nodes, np.bool_)
    touched = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)  # a ring: a node is in it at most once
    known = np.zeros(num_nodes, np.bool_)
    for i in range(us.size):
        if i == 0 or us[i] != us[i - 1]:
            source = us[i]
            waiting[source] = 1.0
            touched[0], known[source] = source, True
            num_touched = 1
            queue[0], queued[source] = source, True
            head, size = 0, 1
            while size:
                v = queue[head]
                head = (head + 1) % num_nodes
                size -= 1
                queued[v] = False
                mass = waiting[v]
                waiting[v] = 0.0
                degree = indptr[v + 1] - indptr[v]
                if degree == 0:
                    settled[v] += mass
                    continue
                settled[v] += restart * mass
                share = (1.0 - restart) * mass / degree
                for j in range(indptr[v], indptr[v + 1]):
                    w = indices[j]
                    waiting[w] += share
                    if not known[w]:
                        known[w] = True
                        touched[num_touched] = w
                        num_touched += 1
                    if not queued[w] and waiting[w] > tolerance * (indptr[w + 1] - indptr[w]):
                        queue[(head + size) % num_nodes] = w
                        queued[w] = True
                        size += 1
        out[i] = settled[vs[i]]
        if i + 1 == us.size or us[i + 1] != us[i]:
            for j in range(num_touched):
                w = touched[j]
                settled[w] = waiting[w] = 0.0
                known[w] = False
