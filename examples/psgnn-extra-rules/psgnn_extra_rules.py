"""An anchor rule and a pair rule that psgnn finds through the entry points in pyproject.toml."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.graph import Adjacency, GraphBatch


def core(adjacency: Adjacency, k: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the k nodes of the highest core number; ties go to the higher degree, then by chance."""
    numbers = core_numbers(adjacency)
    order = np.lexsort((rng.permutation(adjacency.num_nodes), -adjacency.degrees, -numbers))
    return order[:k]


def core_numbers(adjacency: Adjacency) -> npt.NDArray[np.int64]:
    """Return the core number of every node, ``[N]``: peel off the nodes of the lowest degree, layer by layer."""
    degrees = adjacency.degrees.copy()
    numbers = np.zeros(adjacency.num_nodes, np.int64)
    left = np.ones(adjacency.num_nodes, dtype=bool)
    number = 0
    while left.any():
        number = max(number, int(degrees[left].min()))
        peeled = np.flatnonzero(left & (degrees <= number))
        numbers[peeled] = number
        left[peeled] = False
        for node in peeled:
            degrees[adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]]] -= 1
    return numbers


def sorensen(union: GraphBatch, pairs: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """Return the common neighbours of each pair divided by the sum of the two degrees, ``[P]``."""
    indptr, indices = union.adjacency.indptr, union.adjacency.indices
    common = np.empty(pairs.shape[1])
    for i, (u, v) in enumerate(pairs.T):
        of_u, of_v = indices[indptr[u] : indptr[u + 1]], indices[indptr[v] : indptr[v + 1]]
        common[i] = np.intersect1d(of_u, of_v, assume_unique=True).size
    degrees = union.adjacency.degrees
    return common / np.maximum(degrees[pairs[0]] + degrees[pairs[1]], 1)
