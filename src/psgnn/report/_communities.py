"""Communities of a graph, for colours where no classes are known: Louvain's method (Blondel et al. 2008)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._drawing import move_nodes

MOST_LEVELS = 12

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
        move_nodes(indptr, indices, np.asarray(matrix.data, np.float64), degrees, order, labels)
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
