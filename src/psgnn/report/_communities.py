"""Communities of a graph, for colours where no classes are known: Louvain's method (Blondel et al. 2008)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._compile import njit

MOST_LEVELS = 12
MOST_PASSES = 20

Floats = npt.NDArray[np.float64]


def find_communities(adjacency: Adjacency, seed: int = 0) -> IntArray:
    """The community of every node, int64 ``[N]``, the largest first; a node without links is one of its own.

    Nodes move to the neighbouring community that raises the modularity most until none moves; then communities
    become the nodes of a smaller graph, and so on.
    """
    rng = np.random.default_rng(seed)
    size = adjacency.num_nodes
    matrix = csr_array(
        (np.ones(adjacency.indices.size), adjacency.indices, adjacency.indptr), shape=(size, size)
    )
    found = np.arange(size)
    for _ in range(MOST_LEVELS):
        labels = np.arange(matrix.shape[0])
        order = rng.permutation(matrix.shape[0])
        degrees: Floats = np.asarray(matrix.sum(axis=1)).ravel()
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        _move(indptr, indices, np.asarray(matrix.data, np.float64), degrees, order, labels)
        _, labels = np.unique(labels, return_inverse=True)
        found = labels[found]
        count = int(labels.max(initial=-1)) + 1
        if count == matrix.shape[0]:
            break
        wide = matrix.tocoo()
        matrix = coo_array((wide.data, (labels[wide.row], labels[wide.col])), shape=(count, count)).tocsr()
    rank = np.empty(int(found.max(initial=-1)) + 1, np.int64)
    rank[np.argsort(-np.bincount(found), kind="stable")] = np.arange(rank.size)
    return rank[found]


@njit(cache=True, nogil=True)
def _move(
    indptr: IntArray, indices: IntArray, weights: Floats, degrees: Floats, order: IntArray, labels: IntArray
) -> None:
    """Move nodes between communities, in place, until a pass over all of them moves none."""
    total = degrees.sum()
    if total == 0:
        return
    inside = degrees.copy()  # summed degree of every community
    to = np.zeros(labels.size)  # weight from the node at hand to every community
    for _ in range(MOST_PASSES):
        moved = 0
        for v in order:
            own = labels[v]
            inside[own] -= degrees[v]
            for i in range(indptr[v], indptr[v + 1]):
                if indices[i] != v:
                    to[labels[indices[i]]] += weights[i]
            best, most = own, to[own] - degrees[v] * inside[own] / total
            for i in range(indptr[v], indptr[v + 1]):
                other = labels[indices[i]]
                gain = to[other] - degrees[v] * inside[other] / total
                if gain > most + 1e-9:
                    best, most = other, gain
            for i in range(indptr[v], indptr[v + 1]):
                to[labels[indices[i]]] = 0.0
            labels[v] = best
            inside[best] += degrees[v]
            moved += best != own
        if moved == 0:
            break
