"""Hard negatives: unlinked pairs that resemble positives, so that they cannot be told apart by degree or distance.

A hard negative keeps one end of a positive and replaces the other, by a node of the same degree
(``by="degree"``) or at the same distance from the kept end (``by="distance"``), both in the visible graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import Adjacency, IntArray
from psgnn.graph._sampling import NonEdges, distinct_integers, pair_code
from psgnn.kernels._compile import njit

TRIES = 8  # random nodes looked at before all of a run are
# With "distance", the kept ends of a split's models are so few that searching from all of them follows no more
# edges than SEARCH_STEPS, some seconds of work, but never fewer than MIN_SOURCES.
SEARCH_STEPS = 2**30
MIN_SOURCES = 256
AS_MODEL = -1  # the degree or distance is that of the model
UNREACHABLE = 2**62

_Ids = npt.NDArray[np.int32]


def hard_negatives(
    by: str,
    positives: Sequence[IntArray],
    counts: IntArray,
    visible: Adjacency,
    full: Adjacency,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Negatives ``[2, counts[i]]`` for the positives of train, val and test of a graph; no pair is drawn twice.

    Every negative has a positive of its split as its model; positives are models equally often, up to one.
    The end of higher degree is kept: there are more nodes that can stand for the other one. Among
    the free nodes that match, the draw is uniform; without any, it is among those of the nearest degree or
    distance (unreachable counts as one hop beyond the farthest). Where the kept end is linked or paired with all
    nodes, the other end is kept, and if that fails too, the negative is uniform among the pairs that are left.

    Training edges are one hop apart, as no unlinked pair is: with ``"distance"``, negatives of train keep an end
    of a training edge, but are as far apart as the positives of val. Test has the first choice and train the
    last. On graphs of more than some 20,000 nodes, ``"distance"`` takes a random part of the positives as
    models, each several times.
    """
    most = full.num_nodes
    if by == "distance":
        most = max(MIN_SOURCES, SEARCH_STEPS // (visible.num_nodes + visible.indices.size))
    taken = full
    keys = np.empty(0, np.int64)
    parts = [keys] * 3
    for place in (2, 1, 0):
        ends = _models(positives[place], int(counts[place]), visible, most, rng)
        wanted = np.full(ends.shape[1], AS_MODEL)
        if by == "distance" and place == 0:
            wanted = np.resize(rng.permutation(keys), ends.shape[1])  # the distances in val
        pairs, keys = _draw(by, ends, wanted, visible, taken, rng)
        if place > 0:
            taken = _with_pairs(taken, pairs)
        parts[place] = pairs[:, np.argsort(pair_code(pairs))]
    return parts


def _models(
    positives: IntArray, count: int, visible: Adjacency, most: int, rng: np.random.Generator
) -> IntArray:
    """The end to replace and the end to keep of ``count`` models, ``[2, P]``, in random order.

    There are at most ``most`` distinct ends to keep: models that come after are replaced by the first ones.
    """
    models = positives[:, np.resize(rng.permutation(positives.shape[1]), count)]
    by_degree = np.argsort(visible.degrees[models] + rng.random(models.shape), axis=0)  # ties at random
    ends = np.take_along_axis(models, by_degree, axis=0)
    _, first = np.unique(ends[1], return_index=True)
    if first.size <= most:
        return ends
    return ends[:, np.resize(np.arange(np.sort(first)[most]), count)]


def _draw(
    by: str,
    ends: IntArray,
    wanted: IntArray,
    visible: Adjacency,
    taken: Adjacency,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """A negative ``[2, P]`` for each model, and the degree or distance ``[P]`` that it was to have."""
    pairs, keys = np.full(ends.shape, -1, dtype=np.int64), wanted.copy()
    for other, kept in (ends, ends[::-1]):
        missing = np.flatnonzero(pairs[0] < 0)
        asked = missing[np.argsort(kept[missing], kind="stable")]
        found, keys[asked] = _replacements(
            visible.indptr,
            visible.indices,
            taken.indptr,
            taken.indices,
            kept[asked],
            other[asked],
            wanted[asked],
            by == "distance",
            rng,
        )
        pairs[:, asked] = np.where(found < 0, -1, np.sort([kept[asked], found], axis=0))
        if (found >= 0).all():
            break
        taken = _with_pairs(taken, np.sort([kept[asked], found], axis=0)[:, found >= 0])
    missing = np.flatnonzero(pairs[0] < 0)
    if missing.size:
        pool = NonEdges(np.array([0, taken.num_nodes]), taken.edges())
        pairs[:, missing] = pool.unrank(distinct_integers(int(pool.sizes[0]), missing.size, rng))
    if by == "distance":
        component = visible.components
        keys[component[ends[0]] != component[ends[1]]] = UNREACHABLE
    return pairs, keys


def _with_pairs(adjacency: Adjacency, pairs: IntArray) -> Adjacency:
    """The graph with these pairs as further edges."""
    rows, cols = np.concatenate([adjacency.edges(), pairs], axis=1)
    return Adjacency.from_edges(rows, cols, adjacency.num_nodes)


@njit(cache=True, nogil=True)
def _replacements(
    indptr: IntArray,
    indices: _Ids,
    taken_indptr: IntArray,
    taken_indices: _Ids,
    kept: IntArray,
    other: IntArray,
    wanted: IntArray,
    by_distance: bool,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
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
def _add_level(
    indptr: IntArray, indices: _Ids, hops: IntArray, order: IntArray, keys: IntArray, size: int
) -> int:
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
def _nearest_free(
    order: IntArray, keys: IntArray, key: int, mark: IntArray, u: int, rng: np.random.Generator
) -> int:
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
def _any_free(nodes: IntArray, mark: IntArray, u: int, rng: np.random.Generator) -> int:
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
