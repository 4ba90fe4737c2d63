"""Exact centralities of every node, ``[N]``, with networkx's definitions, on all cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import distance_sums
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency
from psgnn.kernels._bfs import NO_CUTOFF, queue_bfs
from psgnn.kernels._compile import njit
from psgnn.kernels._parallel import num_threads, parallel_map

Scores = npt.NDArray[np.float64]


def degree(adjacency: Adjacency) -> Scores:
    """Share of the other nodes that are neighbours."""
    return adjacency.degrees / max(adjacency.num_nodes - 1, 1)


def closeness(adjacency: Adjacency) -> Scores:
    r"""Wasserman and Faust's :math:`\frac{r}{N - 1} \frac{r}{\sum_u d(u, v)}`, r other nodes in reach."""
    far, _, reached = distance_sums(adjacency)
    return np.asarray(reached**2 / np.maximum(far, 1) / max(adjacency.num_nodes - 1, 1))


def harmonic(adjacency: Adjacency) -> Scores:
    r"""Sum of inverse distances, :math:`\sum_u 1 / d(u, v)`."""
    return np.asarray(distance_sums(adjacency)[1])


def betweenness(adjacency: Adjacency) -> Scores:
    """Share of all shortest paths that pass through the node (Brandes)."""
    return _flow(adjacency, split_evenly=False)


def load(adjacency: Adjacency) -> Scores:
    """Betweenness where a node hands its packets on to its predecessors in equal parts (Newman, Goh)."""
    return _flow(adjacency, split_evenly=True)


def _flow(adjacency: Adjacency, *, split_evenly: bool) -> Scores:
    pieces = num_threads()

    def part(piece: int) -> Scores:
        scores = np.zeros(adjacency.num_nodes)
        _add_flow(adjacency.indptr, adjacency.indices, piece, pieces, split_evenly, scores)
        return scores

    scores = np.asarray(
        sum(parallel_map(part, range(pieces), 3 * adjacency.indices.size * adjacency.num_nodes))
    )
    if not np.isfinite(scores).all():
        raise InputError(
            "the number of shortest paths exceeds what float64 holds; choose another anchor rule"
        )
    return scores / max((adjacency.num_nodes - 1) * (adjacency.num_nodes - 2), 1)


@njit(cache=True, nogil=True)
def _add_flow(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    first: int,
    stride: int,
    split_evenly: bool,
    scores: Scores,
) -> None:
    """Brandes' accumulation from the sources ``first, first + stride, ...``."""
    num_nodes = indptr.size - 1
    hops = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    paths = np.ones(num_nodes)
    flow = np.zeros(num_nodes)
    seed = np.empty(1, np.int64)
    for source in range(first, num_nodes, stride):
        seed[0] = source
        reached = queue_bfs(indptr, indices, seed, hops, queue, NO_CUTOFF)
        paths[source] = 1.0
        for place in range(reached):
            v = queue[place]
            flow[v] = 0.0
            if place and not split_evenly:
                paths[v] = 0.0
                for i in range(indptr[v], indptr[v + 1]):
                    if hops[indices[i]] == hops[v] - 1:
                        paths[v] += paths[indices[i]]
        for place in range(reached - 1, 0, -1):
            w = queue[place]
            scores[w] += flow[w]
            ways = paths[w]
            if split_evenly:
                ways = 0.0
                for i in range(indptr[w], indptr[w + 1]):
                    ways += hops[indices[i]] == hops[w] - 1
            share = (1.0 + flow[w]) / ways
            for i in range(indptr[w], indptr[w + 1]):
                v = indices[i]
                if hops[v] == hops[w] - 1:
                    flow[v] += share if split_evenly else share * paths[v]
