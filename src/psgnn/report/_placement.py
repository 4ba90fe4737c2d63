"""Where the page draws the nodes: pivot scaling, and for small graphs springs that pull it apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import Adjacency
from psgnn.kernels._drawing import spring
from psgnn.report._layout import pivot_layout

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
