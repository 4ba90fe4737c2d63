"""Exact hop-distance kernels, compiled by numba and cached on disk.

A *lane* is one breadth-first search. Its seeds may be several nodes: the distance is then that to the
nearest of them, which is what P-GNN's anchor sets need and what lets one lane serve the j-th anchor
of every graph of a disjoint union.

Inner loops index with unsigned integers: numba lets a signed index count from the end of an array, and asking
whether it does takes half of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

LANES = 64  # searches in one machine word
NO_CUTOFF = 2**31 - 1

# What the searches return.
DONE = 0
TOO_DEEP = 1  # a distance does not fit the dtype of the output
TOO_SLOW = 2  # so few nodes are settled after PROBE_LEVELS that one queue a lane is faster

# Measured on grids, road networks, caveman and power-law graphs: a graph that has settled less than
# a quarter of its (node, lane) pairs after this many levels has a large diameter.
PROBE_LEVELS = 24
PROBE_SETTLED = 0.25
# Scan all unfinished nodes (pull) once the frontier's edges exceed this share of all edges.
PULL_SHARE = 0.06


@njit(cache=True, nogil=True)
def _count_ones(word: np.uint64) -> np.uint64:
    """Ones of a word. The compiler knows this loop and makes one instruction of it."""
    count, zero, one = np.uint64(0), np.uint64(0), np.uint64(1)
    while word != zero:
        word &= word - one
        count += one
    return count


@njit(cache=True, nogil=True)
def _trailing_zeros(word: np.uint64) -> np.uint64:
    """Zeros below the lowest one of a word that is not zero."""
    return _count_ones(~word & (word - np.uint64(1)))  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def bitset_bfs(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    nodes: npt.NDArray[np.int64],
    lanes: npt.NDArray[np.int64],
    dist: npt.NDArray[Any],
    column: int,
    deepest: int,
    cutoff: int,
    probe: bool,
    sums: npt.NDArray[np.float64],
) -> int:
    """Up to 64 searches at once: bit ``j`` of a node's word is lane ``j``.

    ``nodes[i]`` seeds lane ``lanes[i]``. Writes lane ``j``'s hops into ``dist[:, column + j]``,
    prefilled by the caller with the mark of "unreachable", and adds to ``sums [3, N]``, over the lanes that reach a
    node, the distance, its inverse and one; either array may have size 0 and is then left alone. Levels with
    a small frontier are pushed along its edges, the others pulled by the nodes that still miss lanes.
    Returns DONE, TOO_DEEP, or (only with `probe`) TOO_SLOW.
    """
    num_nodes = indptr.size - 1
    starts, neighbours = indptr.view(np.uint64), indices.view(np.uint32)
    write, add = dist.size > 0, sums.size > 0
    seen = np.zeros(num_nodes, np.uint64)
    frontier = np.zeros(num_nodes, np.uint64)
    found = np.zeros(num_nodes, np.uint64)
    queue = np.empty(num_nodes, np.uint32)
    touched = np.empty(num_nodes, np.uint32)
    zero, one = np.uint64(0), np.uint64(1)

    full = zero
    size = 0
    for i in range(nodes.size):
        bit = one << np.uint64(lanes[i])
        full |= bit
        if found[nodes[i]] == zero:
            touched[size] = nodes[i]
            size += 1
        found[nodes[i]] |= bit
    settled = 0.0
    first = np.uint64(column)
    wanted = PROBE_SETTLED * num_nodes * _count_ones(full)

    level = 0
    while True:
        # Settle the nodes found on this level; they are the next frontier.
        work = np.int64(0)
        for i in range(size):
            v = np.uint64(touched[i])
            new = found[v]
            seen[v] |= new
            work += np.int64(starts[v + one] - starts[v])
            count = _count_ones(new)
            settled += count
            if add and level > 0:
                sums[0, v] += count * level
                sums[1, v] += count / level
                sums[2, v] += count
            if write:
                while new != zero:
                    dist[v, first + _trailing_zeros(new)] = level
                    new &= new - one
        for i in range(size):
            queue[i] = touched[i]
        frontier, found = found, frontier
        frontier_size = size
        if frontier_size == 0 or level == cutoff:
            return DONE
        if level == deepest:
            return TOO_DEEP
        if probe and level == PROBE_LEVELS and settled < wanted:
            return TOO_SLOW

        size = 0
        if work > PULL_SHARE * indices.size:
            for u in range(np.uint64(num_nodes)):
                v = np.uint64(u)
                missing = full & ~seen[v]
                if missing != zero:
                    new = zero
                    for i in range(starts[v], starts[v + one]):
                        new |= frontier[neighbours[i]]
                        if new & missing == missing:
                            break
                    new &= missing
                    if new != zero:
                        found[v] = new
                        touched[size] = v
                        size += 1
        else:
            for i in range(frontier_size):
                v = np.uint64(queue[i])
                reach = frontier[v]
                for j in range(starts[v], starts[v + one]):
                    w = neighbours[j]
                    new = reach & ~seen[w]
                    if new != zero:
                        if found[w] == zero:
                            touched[size] = w
                            size += 1
                        found[w] |= new
        for i in range(frontier_size):
            frontier[queue[i]] = zero
        level += 1


@njit(cache=True, nogil=True)
def queue_bfs(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    seeds: npt.NDArray[np.int64],
    hops: npt.NDArray[np.int32],
    queue: npt.NDArray[np.int32],
    cutoff: int,
) -> int:
    """One search: fills ``hops [N]`` (-1 = unreachable) and ``queue`` with the nodes in order of distance.

    Returns how many nodes were reached.
    """
    starts, neighbours = indptr.view(np.uint64), indices.view(np.uint32)
    one = np.uint64(1)
    hops[:] = -1
    size = 0
    for seed in seeds:
        if hops[seed] < 0:
            hops[seed] = 0
            queue[size] = seed
            size += 1
    head = 0
    while head < size:
        v = np.uint64(queue[head])
        head += 1
        next_hop = hops[v] + 1
        if next_hop > cutoff:
            break
        for i in range(starts[v], starts[v + one]):
            w = neighbours[i]
            if hops[w] < 0:
                hops[w] = next_hop
                queue[size] = w
                size += 1
    return size


@njit(cache=True, nogil=True)
def queue_columns(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    nodes: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    dist: npt.NDArray[Any],
    column: int,
    unreachable: int,
    deepest: int,
    cutoff: int,
) -> int:
    """One queue a lane: lane ``j`` is seeded by ``nodes[starts[j]:starts[j + 1]]``.

    Writes ``dist[:, column + j]``, and `unreachable` where there is no way. Returns DONE or TOO_DEEP.
    """
    num_nodes = indptr.size - 1
    num_lanes = starts.size - 1
    strip = min(8, num_lanes)  # lanes searched before their rows are written out together
    hops = np.empty((strip, num_nodes), np.int32)
    queue = np.empty(num_nodes, np.int32)
    for first in range(0, num_lanes, strip):
        width = min(strip, num_lanes - first)
        for j in range(width):
            seeds = nodes[starts[first + j] : starts[first + j + 1]]
            reached = queue_bfs(indptr, indices, seeds, hops[j], queue, cutoff)
            if reached and hops[j, queue[reached - 1]] > deepest:
                return TOO_DEEP
        for v in range(num_nodes):
            for j in range(width):
                dist[v, column + first + j] = hops[j, v] if hops[j, v] >= 0 else unreachable
    return DONE


@njit(cache=True, nogil=True)
def queue_sums(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    first: int,
    stride: int,
    cutoff: int,
    sums: npt.NDArray[np.float64],
) -> None:
    """What `bitset_bfs` adds to `sums`, for the nodes ``first, first + stride, ...``, one queue each."""
    num_nodes = indptr.size - 1
    hops = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    seed = np.empty(1, np.int64)
    for v in range(first, num_nodes, stride):
        seed[0] = v
        reached = queue_bfs(indptr, indices, seed, hops, queue, cutoff)
        for i in range(1, reached):
            sums[0, v] += hops[queue[i]]
            sums[1, v] += 1 / hops[queue[i]]
        sums[2, v] += reached - 1


@njit(cache=True, nogil=True)
def nearest_members(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    nodes: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    first: int,
    stride: int,
    hops: npt.NDArray[np.int16],
    who: npt.NDArray[np.int32],
    cutoff: int,
) -> None:
    """For the sets ``first, first + stride, ...``: hops to the nearest member and which it is, ``[N, L]``.

    Both are prefilled with -1. Of equally near members, the one that stands first in the set wins.
    """
    queue = np.empty(indptr.size - 1, np.int32)
    for j in range(first, starts.size - 1, stride):
        size = 0
        for node in nodes[starts[j] : starts[j + 1]]:
            if hops[node, j] < 0:
                hops[node, j], who[node, j] = 0, node
                queue[size] = node
                size += 1
        head = 0
        while head < size:
            v = queue[head]
            head += 1
            if hops[v, j] == cutoff:
                break
            for i in range(indptr[v], indptr[v + 1]):
                w = indices[i]
                if hops[w, j] < 0:
                    hops[w, j], who[w, j] = hops[v, j] + 1, who[v, j]
                    queue[size] = w
                    size += 1
