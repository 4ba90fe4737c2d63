"""Candidate pairs for missing links, found without looking at all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.kernels._compile import njit
from psgnn.kernels._parallel import num_threads, parallel_rows

MOST_STEPS = 5000  # that the walks from one node may take, for each of their lengths
LEAF = 96  # nodes that are compared with one another at the end of a tree
TREES = 4

Partners = npt.NDArray[np.int32]  # [N, c], -1 where there are fewer


def pairs_of(partners: Partners) -> IntArray:
    """Every node with its partners, ``[2, P]``."""
    rows, places = np.nonzero(partners >= 0)
    return np.stack([rows, partners[rows, places].astype(np.int64)])


def walk_partners(adjacency: Adjacency, count: int) -> Partners:
    """For every node, `count` nodes two steps away and `count` three steps away, ``[N, 2 count]``.

    Those that most short walks lead to, each walk weighted by one over the degrees on its way. From nodes of many
    neighbours every n-th way is taken, so that a node costs at most `MOST_STEPS`.
    """
    partners = np.full((adjacency.num_nodes, 2 * count), -1, np.int32)

    def piece(first: int, last: int) -> None:
        _walk(adjacency.indptr, adjacency.indices, first, MOST_STEPS, partners[first:last])

    steps = 100.0 * adjacency.indices.size
    parallel_rows(piece, adjacency.num_nodes, steps, parts=8 * num_threads())
    return partners


@njit(cache=True, nogil=True)
def _walk(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], first: int, most: int, out: Partners
) -> None:
    num_nodes = indptr.size - 1
    count = out.shape[1] // 2
    two, three = np.zeros(num_nodes), np.zeros(num_nodes)
    touched, further = np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32)
    linked = np.full(num_nodes, -1, np.int64)
    best = np.empty(count)
    for i in range(out.shape[0]):
        u = first + i
        linked[u] = u
        cost = 0
        for j in range(indptr[u], indptr[u + 1]):
            w = indices[j]
            linked[w] = u
            cost += indptr[w + 1] - indptr[w]
        stride = 1 + cost // most
        reached, cost = 0, 0
        for j in range(indptr[u], indptr[u + 1]):
            w = indices[j]
            share = 1.0 / (indptr[w + 1] - indptr[w])
            for k in range(indptr[w] + j % stride, indptr[w + 1], stride):
                z = indices[k]
                if two[z] == 0.0:
                    touched[reached] = z
                    reached += 1
                    cost += indptr[z + 1] - indptr[z]
                two[z] += share
        stride = 1 + cost // most
        beyond = 0
        for j in range(reached):
            z = touched[j]
            if z == u:
                continue
            share = two[z] / (indptr[z + 1] - indptr[z])
            for k in range(indptr[z] + j % stride, indptr[z + 1], stride):
                x = indices[k]
                if two[x] == 0.0 and linked[x] != u:
                    if three[x] == 0.0:
                        further[beyond] = x
                        beyond += 1
                    three[x] += share
        _keep_best(two, touched[:reached], linked, u, best, out[i, :count])
        _keep_best(three, further[:beyond], linked, u, best, out[i, count:])


@njit(cache=True, nogil=True)
def _keep_best(
    mass: npt.NDArray[np.float64],
    touched: npt.NDArray[np.int32],
    linked: npt.NDArray[np.int64],
    u: int,
    best: npt.NDArray[np.float64],
    out: npt.NDArray[np.int32],
) -> None:
    """Write the unlinked nodes of largest mass into `out`, and set the mass back to zero."""
    kept = 0
    for z in touched:
        value = mass[z]
        mass[z] = 0.0
        if linked[z] == u or (kept == out.size and value <= best[kept - 1]):
            continue
        if kept < out.size:
            kept += 1
        place = kept - 1
        while place > 0 and best[place - 1] < value:
            best[place], out[place] = best[place - 1], out[place - 1]
            place -= 1
        best[place], out[place] = value, z


def nearest_partners(
    union: GraphBatch, h: Floats, count: int, *, dot: bool, rng: np.random.Generator
) -> Partners:
    """For every node, nodes of its graph that are near in the embedding ``h [N, d]``, ``[N, TREES count]``.

    Near is a small distance, or with `dot` a large product. Trees halve the nodes along random directions until so few
    are left that all of them are compared: O(N log N), and what one tree separates another may not.
    """
    partners = np.full((union.num_nodes, TREES * count), -1, np.int32)
    for tree in range(TREES):
        columns = partners[:, tree * count : (tree + 1) * count]
        for g in range(union.num_graphs):
            waiting = [np.arange(union.ptr[g], union.ptr[g + 1])]
            while waiting:
                nodes = waiting.pop()
                if nodes.size > LEAF:
                    waiting += _halves(nodes, h, rng)
                elif nodes.size > 1:
                    _compare(nodes, h[nodes], columns, dot)
    return partners


def _halves(nodes: IntArray, h: Floats, rng: np.random.Generator) -> list[IntArray]:
    one, other = h[rng.choice(nodes, 2, replace=False)]
    along = h[nodes] @ (one - other)
    # Equal nodes are not kept on one side by their numbers.
    order = np.lexsort([rng.random(nodes.size), along])
    return list(np.array_split(nodes[order], 2))


def _compare(nodes: IntArray, h: Floats, columns: Partners, dot: bool) -> None:
    product = h @ h.T
    near = product if dot else 2 * product - np.diag(product)
    np.fill_diagonal(near, -np.inf)
    count = min(columns.shape[1], nodes.size - 1)
    places = np.argpartition(-near, count - 1, axis=1)[:, :count]
    columns[nodes, :count] = nodes[places]


def prominent_pairs(union: GraphBatch, prominence: npt.NDArray[Any], count: int) -> IntArray:
    """All pairs among the `count` most prominent nodes of each graph, ``[2, P]``."""
    found = []
    for first, last in zip(union.ptr[:-1], union.ptr[1:], strict=True):
        top = first + np.argsort(-prominence[first:last], kind="stable")[:count]
        places = np.triu_indices(top.size, 1)
        found.append(np.stack([top[places[0]], top[places[1]]]))
    return np.concatenate(found, axis=1)
