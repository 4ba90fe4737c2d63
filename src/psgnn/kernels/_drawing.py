"""How a page draws a graph: communities for colours (Louvain), springs for places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Ids = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

MOST_PASSES = 20


@njit(cache=True, nogil=True)
def move_nodes(
    indptr: Ids, indices: Ids, weights: Doubles, degrees: Doubles, order: Ids, labels: Ids
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


@njit(cache=True, nogil=True)
def spring(places: Doubles, us: Ids, vs: Ids, steps: int) -> None:
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
