"""Exact centralities of every node, ``[N]``, with networkx's definitions, on all cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import distance_sums
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency
from psgnn.kernels._anchors import add_flow
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
        add_flow(adjacency.indptr, adjacency.indices, piece, pieces, split_evenly, scores)
        return scores

    scores = np.asarray(
        sum(parallel_map(part, range(pieces), 3 * adjacency.indices.size * adjacency.num_nodes))
    )
    if not np.isfinite(scores).all():
        raise InputError(
            "the number of shortest paths exceeds what float64 holds; choose another anchor rule"
        )
    return scores / max((adjacency.num_nodes - 1) * (adjacency.num_nodes - 2), 1)
