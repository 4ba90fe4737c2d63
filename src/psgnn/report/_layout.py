"""Where a page draws the nodes (pivot scaling, springs for small graphs), and in which colours (communities)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from psgnn.anchors._greedy import farthest_first
from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._drawing import move_nodes, spring

PIVOTS = 50


def pivot_layout(adjacency: Adjacency, seed: int = 0) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` in [-1, 1] by pivot multidimensional scaling (Brandes and Pich 2007).

    The distances to farthest-first pivots are squared, double-centred and projected on their two main
    directions. Nodes at the same distances to all pivots would coincide; they are laid on a small spiral.
    """
    rng = np.random.default_rng(seed)
    pivots = farthest_first(adjacency, min(PIVOTS, adjacency.num_nodes), rng)
    hops = hop_columns(adjacency, pivots).astype(np.float64)
    hops[hops < 0] = hops.max() + 2
    squares = hops**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, directions = np.linalg.eigh(centred.T @ centred)
    places = centred @ directions[:, ::-1][:, :2]
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 1)))
    places /= max(float(np.abs(places).max()), 1e-12)
    return np.asarray(places + _spiral_of_equals(places))


def _spiral_of_equals(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Offsets ``[N, 2]`` that separate nodes at (almost) the same place, on a sunflower spiral."""
    cells = np.unique(np.round(places, 2), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], cells[order])
    rank = np.empty(cells.size)
    rank[order] = np.arange(cells.size) - first
    radius = 0.015 * np.sqrt(rank)
    angle = rank * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


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


MOST_SPRUNG_NODES = 3000  # a step compares all pairs
STEPS = 120

Places = npt.NDArray[np.float64]


def place_nodes(adjacency: Adjacency, seed: int = 0) -> Places:
    """Positions ``[N, 2]`` in [-1, 1]."""
    if adjacency.num_nodes < 2:
        return np.zeros((adjacency.num_nodes, 2))
    places = pivot_layout(adjacency, seed)
    if adjacency.num_nodes > MOST_SPRUNG_NODES:
        return _drawn_in(places)
    # Nodes at one place would push one another nowhere.
    places = places + np.random.default_rng(seed).normal(0, 1e-3, places.shape)
    spring(places, *adjacency.edges(), STEPS)
    return _scaled(places)


def _drawn_in(places: Places) -> Places:
    """The same with the few nodes that are far out closer: parts without links to the rest would shrink it to a dot."""
    places = places - np.median(places, axis=0)
    radius = np.maximum(np.linalg.norm(places, axis=1), 1e-12)
    usual = max(float(np.quantile(radius, 0.98)), 1e-12)
    wanted = np.where(radius > usual, usual * (1 + 0.15 * np.log(radius / usual)), radius)
    return _scaled(places * (wanted / radius)[:, None])


def _scaled(places: Places) -> Places:
    """The same around the middle of [-1, 1], filling it."""
    places = places - (places.max(axis=0) + places.min(axis=0)) / 2
    return np.asarray(places / max(float(np.abs(places).max()), 1e-12))
