"""Exact shortest path lengths on graphs whose edges have lengths, compiled by numba and cached on disk.

Dead ends and the bends of a road offer a search no choice. So nodes of one or two neighbours are *eliminated* first,
one after another: an arc between the two neighbours takes the place of a node, with the length of the way through it.
The nodes that are left are the *core*. A search goes from its source up to the core and through it. Then the
eliminated nodes get their lengths in reverse order, as the least over their two neighbours. That is one pass for
`WIDTH` searches at once, without a queue.

Inner loops index with unsigned integers, as in `_bfs`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Nodes = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

WIDTH = 8  # searches of one pass: their float64 lengths fill a line of the processor's cache
SHORT = 8  # arcs of a row that is searched for a parallel arc
FEW = 0.01  # a pass that eliminates less than this share of the nodes is the last
NONE = np.uint32(2**32 - 1)
OUTSIDE = np.int32(-1)  # the bucket of a node that waits in none
PATIENCE = 3  # turns per node that a search with buckets may take, before it starts again with a heap


@njit(cache=True, nogil=True)
def arcs_of(
    rows: Nodes, cols: Nodes, lengths: Floats, num_nodes: int, directed: bool
) -> tuple[Ints, Nodes, Floats, Ints]:
    """Edges as CSR, in both directions unless directed, and for each arc the place of the opposite one.

    Rows keep the order of the input and its parallel edges; self-loops are dropped. Directed arcs have no opposite.
    """
    indptr = np.zeros(num_nodes + 1, np.int64)
    for i in range(rows.size):
        if rows[i] != cols[i]:
            indptr[rows[i] + 1] += 1
            if not directed:
                indptr[cols[i] + 1] += 1
    for v in range(num_nodes):
        indptr[v + 1] += indptr[v]
    heads = np.empty(indptr[num_nodes], np.int32)
    arcs = np.empty(heads.size, np.float64)
    opposite = np.empty(0 if directed else heads.size, np.int64)
    place = indptr[:-1].copy()
    for i in range(rows.size):
        u, v = rows[i], cols[i]
        if u != v:
            there = place[u]
            place[u] += 1
            heads[there], arcs[there] = v, lengths[i]
            if not directed:
                back = place[v]
                place[v] += 1
                heads[back], arcs[back] = u, lengths[i]
                opposite[there], opposite[back] = back, there
    return indptr, heads, arcs, opposite


@njit(cache=True, nogil=True)
def breadth_first_order(indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> Nodes:
    """All nodes, neighbours near each other, component after component."""
    num_nodes = indptr.size - 1
    order = np.empty(num_nodes, np.int32)
    seen = np.zeros(num_nodes, np.uint8)
    size, head = 0, 0
    for start in range(num_nodes):
        if seen[start]:
            continue
        seen[start] = 1
        order[size] = start
        size += 1
        while head < size:
            v = order[head]
            head += 1
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if not seen[w]:
                    seen[w] = 1
                    order[size] = w
                    size += 1
    return order


@njit(cache=True, nogil=True)
def eliminate(
    indptr: Ints, heads: Nodes, arcs: Floats, opposite: Ints
) -> tuple[Nodes, int, Ints, Nodes, Floats]:
    """Eliminate nodes of up to two neighbours from what `arcs_of` gives; heads, arcs and opposite are overwritten.

    Returns the nodes in a new order, how many of them are eliminated (they come first), and the arcs as CSR by the
    places in this order. Arcs of an eliminated node lead to later places, the others stay in the core.
    """
    num_nodes = indptr.size - 1
    degree = np.diff(indptr)
    places = np.empty(num_nodes, np.int32)
    left = (
        np.arange(num_nodes).astype(np.int32)[::-1].copy()
    )  # trees have their leaves last: one pass is enough
    out_indptr = np.zeros(num_nodes + 1, np.int64)
    out = np.empty(heads.size, np.int32)
    out_arcs = np.empty(heads.size, np.float64)
    gone, num_left, end = 0, num_nodes, 0
    few = False
    while num_left > 0 and not few:
        kept = 0
        for at in range(num_left):
            v = left[at]
            if degree[v] > 2:
                left[kept] = v
                kept += 1
                continue
            first = end
            a = b = np.int64(-1)  # arcs that lead back to v
            for i in range(indptr[v], indptr[v + 1]):
                if heads[i] >= 0:
                    out[end], out_arcs[end] = heads[i], arcs[i]
                    end += 1
                    a, b = opposite[i], a
            places[gone] = v
            gone += 1
            out_indptr[gone] = end
            if end - first == 2 and out[first] != out[first + 1]:
                _bypass(indptr, heads, arcs, opposite, degree, a, b)
            else:
                for i in range(first, end):
                    degree[out[i]] -= 1
                    heads[a] = -1
                    a = b
        few = num_left - kept <= FEW * num_nodes
        num_left = kept
    for i in range(num_left):
        v = left[num_left - 1 - i]
        places[gone + i] = v
        for j in range(indptr[v], indptr[v + 1]):
            if heads[j] >= 0:
                out[end], out_arcs[end] = heads[j], arcs[j]
                end += 1
        out_indptr[gone + i + 1] = end
    rank = np.empty(num_nodes, np.int32)
    for i in range(num_nodes):
        rank[places[i]] = i
    for i in range(end):
        out[i] = rank[out[i]]
    return places, gone, out_indptr, out[:end], out_arcs[:end]


@njit(cache=True, nogil=True)
def _bypass(indptr: Ints, heads: Nodes, arcs: Floats, opposite: Ints, degree: Ints, a: int, b: int) -> None:
    """Join the two arcs that lead to an eliminated node, from x at `a` and from y at `b`, to arcs between x and y."""
    x, y = heads[opposite[a]], heads[opposite[b]]
    through = arcs[a] + arcs[b]
    for row, other in ((x, y), (y, x)):
        if indptr[row + 1] - indptr[row] <= SHORT:
            for i in range(indptr[row], indptr[row + 1]):
                if heads[i] == other:
                    arcs[i] = arcs[opposite[i]] = min(arcs[i], through)
                    heads[a] = heads[b] = -1
                    degree[x] -= 1
                    degree[y] -= 1
                    return
            break
    heads[a], heads[b] = y, x
    arcs[a] = arcs[b] = through
    opposite[a], opposite[b] = b, a


@njit(cache=True, nogil=True)
def _bucket_search(
    indptr: Ints,
    heads: Nodes,
    arcs: Floats,
    seeds: Nodes,
    bound: float,
    step: float,
    found: Floats,
    touched: Nodes,
    buckets: npt.NDArray[np.uint32],
    bucket_of: Nodes,
    after: npt.NDArray[np.uint32],
    before: npt.NDArray[np.uint32],
) -> int:
    """Search from the seeds in order of lengths, `step` by `step`; a node that gets shorter again is taken again.

    A bucket is a linked list of the nodes of one step. Buckets are used in turn, so that they reach further than any
    arc. Fills `found` (infinite before) and `touched`, and returns the number T of touched nodes. A search that takes
    nodes again and again, or meets many empty buckets, is given up: the result is -T - 1.
    """
    starts, neighbours = indptr.view(np.uint64), heads.view(np.uint32)
    one, mask = np.uint64(1), np.uint64(buckets.size - 1)
    size, waiting, turns = 0, 0, 0
    for seed in seeds:
        if found[seed] > 0:
            found[seed] = 0
            touched[size] = seed
            size += 1
            after[seed], before[seed] = buckets[0], NONE
            if buckets[0] != NONE:
                before[buckets[0]] = seed
            buckets[0], bucket_of[seed] = seed, 0
            waiting += 1
    most = PATIENCE * (indptr.size - 1)
    bucket = np.uint64(0)
    while waiting > 0:
        turns += 1
        if turns > most:
            buckets[:] = NONE
            for i in range(size):
                bucket_of[touched[i]] = OUTSIDE
            return -size - 1
        if buckets[bucket] == NONE:
            bucket = (bucket + one) & mask
            continue
        v = np.uint64(buckets[bucket])
        second = after[v]
        buckets[bucket] = second
        if second != NONE:
            before[second] = NONE
        bucket_of[v] = OUTSIDE
        waiting -= 1
        length = found[v]
        for i in range(starts[v], starts[v + one]):
            w = np.uint64(neighbours[i])
            through = length + arcs[i]
            if not (through < found[w] and through <= bound):
                continue
            if found[w] == np.inf:
                touched[size] = w
                size += 1
            found[w] = through
            new = np.uint64(np.int64(through / step)) & mask
            old = bucket_of[w]
            if old == OUTSIDE:
                waiting += 1
            elif np.uint64(old) == new:
                continue
            else:
                left, right = before[w], after[w]
                if left == NONE:
                    buckets[old] = right
                else:
                    after[left] = right
                if right != NONE:
                    before[right] = left
            second = buckets[new]
            after[w], before[w] = second, NONE
            if second != NONE:
                before[second] = w
            buckets[new], bucket_of[w] = w, new
    return size


@njit(cache=True, nogil=True)
def _heap_search(
    indptr: Ints,
    heads: Nodes,
    arcs: Floats,
    seeds: Nodes,
    bound: float,
    found: Floats,
    touched: Nodes,
    keys: Floats,
    heap: Nodes,
) -> int:
    """Dijkstra's search, for arcs of very different lengths: the same as `_bucket_search`, bit by bit.

    The heap has four children per entry. It keeps outdated entries, so it needs room for all arcs and seeds. `keys`
    beyond its end are infinite, three of them beyond its room.
    """
    starts, neighbours = indptr.view(np.uint64), heads.view(np.uint32)
    zero, one, two, three, four = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    count, size = 0, zero
    for seed in seeds:
        if found[seed] > 0:
            found[seed] = 0
            touched[count] = seed
            count += 1
            keys[size], heap[size] = 0, seed
            size += one
    while size > zero:
        length, v = keys[0], np.uint64(heap[0])
        size -= one
        key, last = keys[size], heap[size]
        keys[size] = np.inf
        hole, child = zero, one
        while child < size:
            low = child + np.uint64(keys[child + one] < keys[child])
            high = child + two + np.uint64(keys[child + three] < keys[child + two])
            best = high if keys[high] < keys[low] else low
            if keys[best] >= key:
                break
            keys[hole], heap[hole] = keys[best], heap[best]
            hole = best
            child = four * hole + one
        if size > zero:
            keys[hole], heap[hole] = key, last
        if length > found[v]:
            continue
        for i in range(starts[v], starts[v + one]):
            w = np.uint64(neighbours[i])
            through = length + arcs[i]
            if not (through < found[w] and through <= bound):
                continue
            if found[w] == np.inf:
                touched[count] = w
                count += 1
            found[w] = through
            hole = size
            size += one
            while hole > zero:
                parent = (hole - one) >> two
                if keys[parent] <= through:
                    break
                keys[hole], heap[hole] = keys[parent], heap[parent]
                hole = parent
            keys[hole], heap[hole] = through, w
    return count


@njit(cache=True, nogil=True)
def _sweep(indptr: Ints, heads: Nodes, arcs: Floats, eliminated: int, rows: Floats) -> None:
    """Give eliminated nodes their lengths, the last one first, in ``rows [N * WIDTH]``."""
    starts, neighbours = indptr.view(np.uint64), heads.view(np.uint32)
    one, width = np.uint64(1), np.uint64(WIDTH)
    for i in range(eliminated):
        v = np.uint64(eliminated - 1 - i)
        own = v * width
        for j in range(starts[v], starts[v + one]):
            other, arc = np.uint64(neighbours[j]) * width, arcs[j]
            for lane in range(width):
                through, known = rows[other + lane] + arc, rows[own + lane]
                rows[own + lane] = through if through < known else known


@njit(cache=True, nogil=True)
def fill_lengths(
    order: Nodes,
    eliminated: int,
    indptr: Ints,
    heads: Nodes,
    arcs: Floats,
    seeds: Nodes,
    starts: Ints,
    cutoff: float,
    step: float,
    num_buckets: int,
    first: int,
    last: int,
    out: npt.NDArray[np.float32],
) -> None:
    """Write columns ``first:last`` of `out` ``[N, L]``: the length from the nearest node of each set, -1 if none.

    Set ``j`` is ``seeds[starts[j]:starts[j + 1]]``, by places in `order`. Lengths that exceed the cutoff as float32
    are -1 too. Without buckets (a power of two, or 0) searches use a heap.
    """
    num_nodes = order.size
    most = np.float32(cutoff)
    bound = np.float64(most) * (1 + 1e-6)  # beyond this, nothing is rounded to the cutoff
    found = np.full(num_nodes, np.inf)
    touched = np.empty(num_nodes, np.int32)
    buckets = np.full(num_buckets, NONE, np.uint32)
    bucket_of = np.full(num_nodes, OUTSIDE, np.int32)
    after, before = np.empty(num_nodes, np.uint32), np.empty(num_nodes, np.uint32)
    heap, keys = np.empty(0, np.int32), np.empty(0, np.float64)
    rows = np.full(num_nodes * WIDTH, np.inf)
    for block in range(first, last, WIDTH):
        width = min(WIDTH, last - block)
        for lane in range(width):
            own = seeds[starts[block + lane] : starts[block + lane + 1]]
            size = -1
            if num_buckets > 0:
                size = _bucket_search(
                    indptr, heads, arcs, own, bound, step, found, touched, buckets, bucket_of, after, before
                )
            if size < 0:
                for i in range(-size - 1):
                    found[touched[i]] = np.inf
                if heap.size == 0:
                    heap = np.empty(heads.size + num_nodes, np.int32)
                    keys = np.full(heap.size + 3, np.inf)
                size = _heap_search(indptr, heads, arcs, own, bound, found, touched, keys, heap)
            for i in range(size):
                v = np.int64(touched[i])
                rows[v * WIDTH + lane] = found[v]
                found[v] = np.inf
        _sweep(indptr, heads, arcs, eliminated, rows)
        for i in range(num_nodes):
            for lane in range(width):
                length = np.float32(rows[i * WIDTH + lane])
                out[order[i], block + lane] = length if length <= most else np.float32(-1)
        rows[:] = np.inf
