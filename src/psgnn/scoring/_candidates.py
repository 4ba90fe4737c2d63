"""Candidate pairs for missing links, found without looking at all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.kernels import _scoring as kernels
from psgnn.kernels._compile import num_threads, parallel_rows

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
        kernels.walk_partners(adjacency.indptr, adjacency.indices, first, MOST_STEPS, partners[first:last])

    steps = 100.0 * adjacency.indices.size
    parallel_rows(piece, adjacency.num_nodes, steps, parts=8 * num_threads())
    return partners


def near_partners(adjacency: Adjacency, nodes: IntArray, count: int) -> IntArray:
    """Some nodes, each with its partners of `walk_partners`, ``[2, P]``."""
    partners = np.full((nodes.size, 2 * count), -1, np.int32)
    for i, node in enumerate(nodes.tolist()):
        kernels.walk_partners(adjacency.indptr, adjacency.indices, node, MOST_STEPS, partners[i : i + 1])
    rows, partner = pairs_of(partners)
    return np.stack([nodes[rows], partner])


def nearest_partners(
    union: GraphBatch, h: Floats, count: int, *, dot: bool, rng: np.random.Generator, trees: int = TREES
) -> Partners:
    """For every node, nodes of its graph that are near in the embedding ``h [N, d]``, ``[N, trees count]``.

    Near is a small distance, or with `dot` a large product. Trees halve the nodes along random directions until so few
    are left that all of them are compared: O(N log N), and what one tree separates another may not.
    """
    partners = np.full((union.num_nodes, trees * count), -1, np.int32)
    for tree in range(trees):
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


def prominence(union: GraphBatch) -> npt.NDArray[Any]:
    """Links of every node; where links have times, those of the newest tenth, and then all."""
    degrees, kinds = union.adjacency.degrees, union.kinds
    if kinds is None or kinds.times is None:
        return degrees
    times = kinds.times if kinds.last_times is None else kinds.last_times
    newest = kinds.edges[:, times >= np.quantile(times, 0.9)]
    recent = np.bincount(newest.ravel(), minlength=union.num_nodes)
    return np.asarray(recent + degrees / (1 + degrees.max(initial=0)))


def most_prominent(union: GraphBatch, prominence: npt.NDArray[Any], g: int, count: int) -> IntArray:
    """The `count` most prominent nodes of a graph, or of each of its sides."""
    nodes = np.arange(union.ptr[g], union.ptr[g + 1])
    sides = None if union.kinds is None else union.kinds.sides
    parts = [nodes] if sides is None else [nodes[sides[nodes] == side] for side in (0, 1)]
    return np.concatenate([part[np.argsort(-prominence[part], kind="stable")[:count]] for part in parts])


def prominent_pairs(union: GraphBatch, prominence: npt.NDArray[Any], count: int) -> IntArray:
    """All pairs among the `count` most prominent nodes of each graph, or of its sides, ``[2, P]``."""
    found = []
    for g in range(union.num_graphs):
        top = most_prominent(union, prominence, g, count)
        places = np.triu_indices(top.size, 1)
        found.append(np.stack([top[places[0]], top[places[1]]]))
    return np.concatenate(found, axis=1)
