"""Draws of pairs: ranks of pairs, and nodes that replace an end of a pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Ids = npt.NDArray[np.int64]
Neighbours = npt.NDArray[np.int32]

TRIES = 8  # random nodes looked at before all of a run are
AS_MODEL = -1  # the degree or distance is that of the model


@njit(cache=True, nogil=True)
def count_at_most(values: Ids, asked: Ids) -> Ids:
    """How many of the values are not above each of what is asked, ``[P]``; both are sorted, so one pass tells."""
    counts = np.empty(asked.size, np.int64)
    below = 0
    for i in range(asked.size):
        while below < values.size and values[below] <= asked[i]:
            below += 1
        counts[i] = below
    return counts


@njit(cache=True, nogil=True)
def pair_of_code(codes: Ids) -> Ids:
    """Undo `psgnn.graph._sampling.pair_code`, exactly, for every graph of up to 2^31 nodes, ``[2, P]``."""
    pairs = np.empty((2, codes.size), np.int64)
    for i in range(codes.size):
        code = codes[i]
        v = np.int64(np.sqrt(2.0 * code) + 0.5)
        # The float root is off by at most one, in either direction.
        if v * (v - 1) // 2 > code:
            v -= 1
        if v * (v + 1) // 2 <= code:
            v += 1
        pairs[0, i] = code - v * (v - 1) // 2
        pairs[1, i] = v
    return pairs


@njit(cache=True, nogil=True)
def replacements(
    indptr: Ids,
    indices: Neighbours,
    taken_indptr: Ids,
    taken_indices: Neighbours,
    kept: Ids,
    other: Ids,
    wanted: Ids,
    by_distance: bool,
    rng: np.random.Generator,
) -> tuple[Ids, Ids]:
    """For every ``kept[i]``, which are sorted, a node of key ``wanted[i]``, and the key; -1 if no node is free.

    The key is the degree, or the hops from the kept end; ``AS_MODEL`` stands for that of ``other[i]``. ``order``
    lists nodes by their key, with ``"distance"`` only as far as needed. A node is free if it is not linked to
    the kept end in the taken graph and not drawn with it yet.
    """
    num_nodes = indptr.size - 1
    out = np.full(kept.size, -1, np.int64)
    mark = np.full(num_nodes, -1, np.int64)  # the kept end that a node is not free for
    latest = np.full(num_nodes, -1, np.int64)  # the last draw of a node, and before each draw the one before
    before = np.full(kept.size, -1, np.int64)
    key_of = np.full(num_nodes, -1, np.int64)
    order = np.empty(num_nodes, np.int64)
    keys = np.empty(num_nodes, np.int64)
    size = 0
    if not by_distance:
        key_of[:] = indptr[1:] - indptr[:-1]
        order[:] = np.argsort(key_of, kind="mergesort")
        keys[:] = key_of[order]
        size = num_nodes
    for i in range(kept.size):
        u, v = kept[i], other[i]
        if i == 0 or u != kept[i - 1]:
            mark[u] = u
            for j in range(taken_indptr[u], taken_indptr[u + 1]):
                mark[taken_indices[j]] = u
            draw = latest[u]
            while draw >= 0:
                mark[kept[draw]] = u
                draw = before[draw]
            if by_distance:
                for j in range(size):
                    key_of[order[j]] = -1
                key_of[u] = keys[0] = 0
                order[0] = u
                size = 1
        if wanted[i] == AS_MODEL:
            while key_of[v] < 0:
                size = _add_level(indptr, indices, key_of, order, keys, size)
            wanted[i] = key_of[v]
        while keys[size - 1] < wanted[i] and size < num_nodes:
            size = _add_level(indptr, indices, key_of, order, keys, size)
        key = min(wanted[i], keys[size - 1])
        w = _nearest_free(order[:size], keys[:size], key, mark, u, rng)
        # What was found may be no nearer than the levels that have not been searched.
        while size < num_nodes and (w < 0 or abs(key_of[w] - key) > keys[size - 1] - key):
            size = _add_level(indptr, indices, key_of, order, keys, size)
            w = _nearest_free(order[:size], keys[:size], key, mark, u, rng)
        out[i] = w
        if w >= 0:
            mark[w] = u
            before[i] = latest[w]
            latest[w] = i
    return out, wanted


@njit(cache=True, nogil=True)
def _add_level(indptr: Ids, indices: Neighbours, hops: Ids, order: Ids, keys: Ids, size: int) -> int:
    """Search one level further, or add all nodes that cannot be reached as if they were that level."""
    level = keys[size - 1] + 1
    new_size = size
    for place in range(np.searchsorted(keys[:size], level - 1), size):
        v = order[place]
        for j in range(indptr[v], indptr[v + 1]):
            w = indices[j]
            if hops[w] < 0:
                hops[w] = level
                order[new_size] = w
                new_size += 1
    if new_size == size:
        for w in range(hops.size):
            if hops[w] < 0:
                hops[w] = level
                order[new_size] = w
                new_size += 1
    keys[size:new_size] = level
    return new_size


@njit(cache=True, nogil=True)
def _nearest_free(order: Ids, keys: Ids, key: int, mark: Ids, u: int, rng: np.random.Generator) -> int:
    """A random node of those with the nearest key that are not marked ``u``; -1 if all are."""
    low, high = np.searchsorted(keys, key), np.searchsorted(keys, key, side="right")
    start, stop = low, high
    while True:
        w: int = _any_free(order[start:stop], mark, u, rng)
        if w >= 0 or (low == 0 and high == keys.size):
            return w
        down = key - keys[low - 1] if low > 0 else keys[-1] + 1
        up = keys[high] - key if high < keys.size else keys[-1] + 1
        if down < up or (down == up and rng.random() < 0.5):
            start, stop = np.searchsorted(keys, keys[low - 1]), low
            low = start
        else:
            start, stop = high, np.searchsorted(keys, keys[high], side="right")
            high = stop


@njit(cache=True, nogil=True)
def _any_free(nodes: Ids, mark: Ids, u: int, rng: np.random.Generator) -> int:
    """A random node that is not marked ``u``; -1 if all are."""
    w: int
    for _ in range(min(TRIES, nodes.size)):
        w = nodes[rng.integers(0, nodes.size)]
        if mark[w] != u:
            return w
    if nodes.size:
        first = rng.integers(0, nodes.size)
        for i in range(nodes.size):
            w = nodes[(first + i) % nodes.size]
            if mark[w] != u:
                return w
    return -1
