"""Where the page draws the nodes: pivot scaling, and for small graphs springs that pull it apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import Adjacency, IntArray
from psgnn.kernels._compile import njit
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


@njit(cache=True, nogil=True)
def spring(places: Places, us: IntArray, vs: IntArray, steps: int) -> None:
    """Fruchterman and Reingold's forces, in place: links pull, all pairs push, a weak pull to the middle.

    The pull keeps parts of the graph that are not connected in sight.
    """
    n = places.shape[0]
    length = 2.0 / np.sqrt(n)
    force = np.empty_like(places)
    for step in range(steps):
        for v in range(n):
            for k in range(2):
                force[v, k] = -3.0 * places[v, k]
        for u in range(n):
            for v in range(u):
                x, y = places[u, 0] - places[v, 0], places[u, 1] - places[v, 1]
                push = length * length / max(x * x + y * y, 1e-9)
                force[u, 0] += push * x
                force[u, 1] += push * y
                force[v, 0] -= push * x
                force[v, 1] -= push * y
        for i in range(us.size):
            u, v = us[i], vs[i]
            x, y = places[u, 0] - places[v, 0], places[u, 1] - places[v, 1]
            pull = np.sqrt(x * x + y * y) / length
            force[u, 0] -= pull * x
            force[u, 1] -= pull * y
            force[v, 0] += pull * x
            force[v, 1] += pull * y
        most = 0.1 * (1 - step / steps) + 0.002
        for v in range(n):
            size = np.sqrt(force[v, 0] ** 2 + force[v, 1] ** 2)
            scale = min(size, most) / max(size, 1e-12)
            places[v, 0] += scale * force[v, 0]
            places[v, 1] += scale * force[v, 1]
