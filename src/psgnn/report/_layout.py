"""Where to draw the nodes: two dimensions out of distances to pivots, O(N K)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.anchors._greedy import farthest_first
from psgnn.distances._engine import hop_columns
from psgnn.graph._graph import Adjacency

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


def caveman_layout(communities: int, size: int) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` of the connected caveman graph: a ring of rings.

    The first node of a community looks at the community before it and the last at the one after it, as the edges
    between them run.
    """
    clockwise = np.pi / 2 - 2 * np.pi * np.arange(communities) / communities
    slots = np.insert(np.arange(size - 1), size // 2, size - 1)  # the last node opposite to the first
    angle = np.empty(size)
    angle[slots] = np.pi / 2 + 2 * np.pi * np.arange(size) / size
    radius = 0.68 * np.sin(np.pi / max(communities, 2))  # rings that do not touch
    centres = np.stack([np.cos(clockwise), np.sin(clockwise)], axis=1)
    turned = clockwise[:, None] + angle
    rings = radius * np.stack([np.cos(turned), np.sin(turned)], axis=2)  # [C, S, 2]
    places = centres[:, None] + rings
    return np.asarray(places.reshape(-1, 2) / (1 + radius))


def lattice_layout(rows: int, cols: int) -> npt.NDArray[np.float64]:
    """Positions ``[N, 2]`` in [-1, 1] of the grid, the first row on top."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    longest = max(rows - 1, cols - 1, 1)
    return np.stack([2 * col - cols + 1, rows - 1 - 2 * row], axis=1) / longest


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
