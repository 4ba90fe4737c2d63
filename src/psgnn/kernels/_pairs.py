"""Pair scores that look only at the pairs asked: each kernel fills ``out [P]`` for one slice of them."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Ids = npt.NDArray[np.int64]
Neighbours = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]
Table = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

NO_LIMIT = 2**62
ROW_MISSING = -(2.0**62)  # in place of the hops of a pair whose search came to a row that is not there
NOTHING = np.zeros(0, np.bool_)


class _Scratch(threading.local):
    """Arrays over the nodes that the kernels of a thread write to, call after call.

    Few pairs touch few nodes: to make and clear such arrays for every call would be most of the work on a large graph.
    So marks are larger in every call, and those of the calls before count as none.
    """

    def __init__(self) -> None:
        self.marks = np.zeros(0, np.int64)
        self.queue = np.zeros((2, 0), np.int32)
        self.largest = 0

    def fit(self, num_nodes: int, marks: int) -> int:
        """Make room for the nodes, and return the first of the marks that are not in use."""
        if self.marks.size != num_nodes:
            self.marks, self.queue = np.zeros(num_nodes, np.int64), np.empty((2, 0), np.int32)
            self.largest = 0
        first, self.largest = self.largest + 1, self.largest + marks
        return first


_scratch = _Scratch()


def pair_hops(
    indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, cutoff: int, out: Scores, looks: int = NO_LIMIT
) -> None:
    """Hops between ``us[i]`` and ``vs[i]`` (-1 = none within the cutoff), by search from both ends.

    A pair looks at no more than `looks` edges. Where that is too few to find a path, the result is ``-2 - h``: there
    is none of h hops or fewer.
    """
    pair_hops_within(indptr[:-1], indptr[1:], indices, us, vs, cutoff, out, NOTHING, looks)


def pair_hops_within(
    starts: Ids,
    ends: Ids,
    indices: Neighbours,
    us: Ids,
    vs: Ids,
    cutoff: int,
    out: Scores,
    wanted: Mask,
    looks: int = NO_LIMIT,
) -> None:
    """`pair_hops` in a part of a graph: node v has the neighbours ``indices[starts[v]:ends[v]]``.

    A row that ends beyond `indices` is missing, and its length is the degree of the node. A search that comes to such
    rows marks them in ``wanted [N]`` and gives `ROW_MISSING`.
    """
    first = _scratch.fit(starts.size, 2 * us.size)
    if _scratch.queue.shape[1] != starts.size:
        _scratch.queue = np.empty((2, starts.size), np.int32)
    marks, queue = _scratch.marks, _scratch.queue
    _pair_hops(starts, ends, indices, us, vs, cutoff, looks, first, marks, queue, wanted, out)


def local_walks(indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, most: int, out: Scores) -> None:
    """Short walks between ``us[i]`` and ``vs[i]``, ``out [P, 6]``.

    Columns: whether they are linked; common neighbours, these weighted by ``1 / log d`` and by ``1 / d``; walks of
    three steps, and these weighted by ``1 / (d d')`` of their inner nodes. Where three steps from the cheaper end pass
    more than `most` nodes, every n-th neighbour stands for the others. Common neighbours are sampled only where both
    ends have `most` neighbours or more. A pair looks at no more than ``8 most`` edges, and once at the neighbours
    of a hub that many pairs in a row share; looking up one of d neighbours counts as ``log2 d``.
    """
    local_walks_within(indptr[:-1], indptr[1:], indices, us, vs, most, out)


def local_walks_within(
    starts: Ids, ends: Ids, indices: Neighbours, us: Ids, vs: Ids, most: int, out: Scores
) -> None:
    """`local_walks` in a part of a graph, as for `pair_hops_within`, which has the rows that `rows_of_walks` names."""
    first = _scratch.fit(starts.size, us.size)
    # Pairs of one hub one after the other: its row is marked once for all of them.
    hubs = np.where(ends[us] - starts[us] >= ends[vs] - starts[vs], us, vs)
    order = np.argsort(hubs, kind="stable")
    found = np.empty((us.size, out.shape[1]))
    _local_walks(starts, ends, indices, us[order], vs[order], most, first, _scratch.marks, found)
    out[order] = found


@njit(cache=True, nogil=True)
def _pair_hops(
    starts: Ids,
    ends: Ids,
    indices: Neighbours,
    us: Ids,
    vs: Ids,
    cutoff: int,
    looks: int,
    first: int,
    seen: Ids,
    queue: Neighbours,
    wanted: Mask,
    out: Scores,
) -> None:
    """The side with fewer edges to look at grows by a whole level at a time.

    The first node that both sides have seen then lies on a shortest path. What pair i sees is marked by
    ``first + 2 i + side``.
    """
    head, tail = np.zeros(2, np.int64), np.zeros(2, np.int64)
    work, depth = np.zeros(2, np.int64), np.zeros(2, np.int64)
    for i in range(us.size):
        out[i] = -1
        if us[i] == vs[i]:
            out[i] = 0
            continue
        # By number, so that a search that ends early finds the same from u to v and from v to u.
        for side, end in ((0, min(us[i], vs[i])), (1, max(us[i], vs[i]))):
            seen[end] = first + 2 * i + side
            queue[side, 0] = end
            head[side], tail[side], depth[side] = 0, 1, 0
            work[side] = ends[end] - starts[end]
        met = False
        left = looks
        while not met and head[0] < tail[0] and head[1] < tail[1] and depth[0] + depth[1] < cutoff:
            side = 0 if work[0] <= work[1] else 1
            mine, other = first + 2 * i + side, first + 2 * i + 1 - side
            last = tail[side]
            work[side] = 0
            while head[side] < last and left > 0 and not met:
                v = queue[side, head[side]]
                if ends[v] > indices.size:
                    out[i] = ROW_MISSING
                    while head[side] < last and left > 0:  # all of this level that there are looks for
                        v = queue[side, head[side]]
                        head[side] += 1
                        left -= ends[v] - starts[v]
                        wanted[v] |= ends[v] > indices.size
                    break
                head[side] += 1
                stop = starts[v] + min(ends[v] - starts[v], left)
                left -= stop - starts[v]
                for j in range(starts[v], stop):
                    w = indices[j]
                    if seen[w] == other:
                        met = True
                        left += stop - 1 - j
                        break
                    if seen[w] != mine:
                        seen[w] = mine
                        queue[side, tail[side]] = w
                        tail[side] += 1
                        work[side] += ends[w] - starts[w]
            if out[i] == ROW_MISSING:
                break
            if left <= 0 and not met:
                out[i] = -2 - depth[0] - depth[1]
                break
            depth[side] += 1
        if met:
            out[i] = depth[0] + depth[1]


@njit(cache=True, nogil=True)
def _lower_bound(indices: Neighbours, start: int, stop: int, node: int) -> int:
    """The first place of a sorted row whose entry is not below the node."""
    while start < stop:
        middle = (start + stop) // 2
        if indices[middle] < node:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def _has(starts: Ids, ends: Ids, indices: Neighbours, v: int, node: int) -> bool:
    """Whether a node is in the row of another."""
    place = _lower_bound(indices, starts[v], ends[v], node)
    return bool(place < ends[v] and indices[place] == node)


@njit(cache=True, nogil=True)
def shared_neighbours(
    indptr: Ids, indices: Neighbours, us: Ids, vs: Ids, weights: Scores, out: Scores
) -> None:
    """Sum of the weights of the common neighbours, by a merge of the two sorted rows.

    Those of a node with few neighbours are looked up in the row of a hub instead.
    """
    for i in range(us.size):
        a, a_end = indptr[us[i]], indptr[us[i] + 1]
        b, b_end = indptr[vs[i]], indptr[vs[i] + 1]
        total = 0.0
        if a_end - a > b_end - b:
            a, a_end, b, b_end = b, b_end, a, a_end
        if _steps(b_end - b) * (a_end - a) < b_end - b:
            while a < a_end and b < b_end:
                b = _lower_bound(indices, b, b_end, indices[a])
                if b < b_end and indices[b] == indices[a]:
                    total += weights[indices[a]]
                a += 1
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


@njit(cache=True, nogil=True)
def _skip(degree: int, most: int, part: int) -> int:
    """Every n-th of many neighbours stands for the others: some ``most / part`` of no fewer than `most`."""
    return 1 if degree < most else 1 + part * degree // most


@njit(cache=True, nogil=True)
def _two_steps(starts: Ids, ends: Ids, indices: Neighbours, v: int, most: int, enough: int) -> int:
    """How many ways of two steps lead from a node, or some number above `enough`; from a sample of many neighbours."""
    ways, skip = 0, _skip(ends[v] - starts[v], most, 64)
    for j in range(starts[v], ends[v], skip):
        ways += skip * (ends[indices[j]] - starts[indices[j]])
        if ways > enough:
            break
    return ways


@njit(cache=True, nogil=True)
def _ends(starts: Ids, ends: Ids, indices: Neighbours, u: int, v: int, most: int) -> tuple[int, int, int]:
    """The two nodes, first the one with fewer ways of two steps, and how many it has."""
    if (ends[u] - starts[u], u) > (ends[v] - starts[v], v):
        u, v = v, u
    ways = _two_steps(starts, ends, indices, u, most, NO_LIMIT)
    other = _two_steps(starts, ends, indices, v, most, ways)  # a hub is not counted to its end
    if other < ways or (other == ways and v < u):
        return v, u, other
    return u, v, ways


@njit(cache=True, nogil=True)
def _stride(degree: int, ways: int, most: int) -> int:
    """Every n-th neighbour of the cheaper end stands for the others: of a hub fewer, and of a few hubs each one."""
    stride = 1 + (8 if degree > most else 1) * ways // most
    return stride if stride <= degree else 1 + 8 * degree // most


@njit(cache=True, nogil=True)
def rows_of_walks(
    starts: Ids, ends: Ids, indices: Neighbours, us: Ids, vs: Ids, most: int, wanted: Mask
) -> None:
    """Mark in ``wanted [N]`` the missing rows that `local_walks_within` reads; those of `us` and `vs` are there."""
    for i in range(us.size):
        u, _, ways = _ends(starts, ends, indices, us[i], vs[i], most)
        for j in range(starts[u], ends[u], _stride(ends[u] - starts[u], ways, most)):
            wanted[indices[j]] |= ends[indices[j]] > indices.size


@njit(cache=True, nogil=True)
def _is_shared(us: Ids, vs: Ids, i: int, v: int, times: int) -> bool:
    """Whether that many pairs from number i on have the node v."""
    if i + times > us.size:
        return False
    shared = True
    for k in range(i, i + times):
        shared &= us[k] == v or vs[k] == v
    return shared


@njit(cache=True, nogil=True)
def _steps(size: int) -> int:
    """Looks at a sorted row of this size that find a node in it."""
    steps = 1
    while size > 1:
        size //= 2
        steps += 1
    return steps


@njit(cache=True, nogil=True)
def _local_walks(
    starts: Ids,
    ends: Ids,
    indices: Neighbours,
    us: Ids,
    vs: Ids,
    most: int,
    first: int,
    near: Ids,
    out: Scores,
) -> None:
    """What is near the dearer end of pair i is marked by ``first + i``, unless it is marked already.

    So pairs of one hub that come one after the other cost no more than their other ends do. For fewer pairs than it
    would be worth, nodes are looked up in the sorted row of the hub.
    """
    marked, mark = -1, first
    for i in range(us.size):
        out[i] = 0.0
        u, v, ways = _ends(starts, ends, indices, us[i], vs[i], most)
        degree_u, degree_v = ends[u] - starts[u], ends[v] - starts[v]
        kept = u == marked and degree_u > most  # the next pairs may have that hub too
        if (
            v != marked
            and not kept
            and (degree_v <= most or _is_shared(us, vs, i, v, degree_v // (4 * most)))
        ):
            marked, mark = v, first + i
            for j in range(starts[v], ends[v]):
                near[indices[j]] = mark

        few, many = (u, v) if degree_u <= degree_v else (v, u)
        if _has(starts, ends, indices, few, many):
            out[i, 0] = 1.0
        skip = _skip(min(degree_u, degree_v), most, 8)
        for j in range(starts[few], ends[few], skip):
            w = indices[j]
            if (near[w] == mark) if many == marked else _has(starts, ends, indices, many, w):
                degree = ends[w] - starts[w]
                out[i, 1] += skip
                out[i, 2] += skip / np.log(max(degree, 2))  # a leaf is common to its neighbour and itself
                out[i, 3] += skip / degree

        stride = _stride(ends[u] - starts[u], ways, most)
        looks = 0  # the neighbours that are drawn may be the hubs among them
        for j in range(starts[u], ends[u], stride):
            degree = ends[indices[j]] - starts[indices[j]]
            looks += min(degree, degree_v * _steps(degree))
        part = 1 if looks <= 2 * most else 1 + 8 * looks // most
        for place, j in enumerate(range(starts[u], ends[u], stride)):
            w = indices[j]
            if w == v:
                continue
            degree = ends[w] - starts[w]
            walks, weighted = 0.0, 0.0
            if degree <= degree_v * _steps(degree):
                for k in range(starts[w] + place % part, ends[w], part):
                    z = indices[k]
                    if z != u and ((near[z] == mark) if v == marked else _has(starts, ends, indices, v, z)):
                        walks += 1.0
                        weighted += 1.0 / (ends[z] - starts[z])
            else:
                for k in range(starts[v] + place % part, ends[v], part):
                    z = indices[k]
                    if z != u and _has(starts, ends, indices, w, z):
                        walks += 1.0
                        weighted += 1.0 / (ends[z] - starts[z])
            out[i, 4] += stride * part * walks
            out[i, 5] += stride * part * weighted / degree
