"""Weighted walks of two and three steps along given arcs, from the first node of each pair to the second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Ids = npt.NDArray[np.int64]
Neighbours = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]

WAYS = 6  # columns that `weighted_ways` writes


@njit(cache=True, nogil=True)
def weighted_ways(
    indptr: Ids,
    indices: Neighbours,
    weights: Scores,
    next_indptr: Ids,
    next_indices: Neighbours,
    next_weights: Scores,
    last_indptr: Ids,
    last_indices: Neighbours,
    last_weights: Scores,
    inner: Scores,
    outer: Scores,
    us: Ids,
    vs: Ids,
    most: int,
    out: Scores,
) -> None:
    """Walks ``u -> a -> b -> v``, each weighted by the product of its arcs, ``out [P, 6]``; equal `us` stand together.

    The first step follows the first arcs, the second the next; a row of the last arcs lists the nodes ``b`` that lead
    to it. Columns: walks of two steps ``u -> a -> v``, and these over ``inner[a]``; walks of three steps over
    ``sqrt(outer[b])``, over ``sqrt(inner[a])``, over both roots, over both numbers. From a node of more than `most`
    walks of two steps every n-th of them stands for the others. A node of more than `most` last arcs is looked for from
    some ``most / 8`` of the nodes that are reached in two steps.
    """
    num_nodes = indptr.size - 1
    plain, rooted, shared = np.zeros(num_nodes), np.zeros(num_nodes), np.zeros(num_nodes)
    touched, reached = np.empty(num_nodes, np.int32), 0
    seen = np.zeros(num_nodes, np.bool_)
    for i in range(us.size):
        u, v = us[i], vs[i]
        if i == 0 or u != us[i - 1]:
            for j in range(reached):
                b = touched[j]
                plain[b] = rooted[b] = shared[b] = 0.0
                seen[b] = False
            reached, ways = 0, 0
            for j in range(indptr[u], indptr[u + 1]):
                ways += next_indptr[indices[j] + 1] - next_indptr[indices[j]]
            stride, ahead = 1 + ways // most, 0
            for j in range(indptr[u], indptr[u + 1]):
                a = indices[j]
                step = weights[j] * stride
                start = next_indptr[a] + ahead
                ahead = (ahead - (next_indptr[a + 1] - next_indptr[a])) % stride
                for k in range(start, next_indptr[a + 1], stride):
                    b = next_indices[k]
                    if not seen[b]:
                        seen[b] = True
                        touched[reached] = b
                        reached += 1
                    weight = step * next_weights[k]
                    plain[b] += weight
                    rooted[b] += weight / np.sqrt(inner[a])
                    shared[b] += weight / inner[a]
        out[i, 0], out[i, 1] = plain[v], shared[v]
        one, other, both, all_over = 0.0, 0.0, 0.0, 0.0
        start, stop = last_indptr[v], last_indptr[v + 1]
        short = stop - start <= most
        stride = 1 if short else 1 + 8 * reached // most
        for k in range(0, stop - start if short else reached, stride):
            if short:
                j = start + k
                b = last_indices[j]
            else:  # fewer are reached than lead to a hub
                b = touched[k]
                j = start + np.searchsorted(last_indices[start:stop], b)
                if j == stop or last_indices[j] != b:
                    continue
            if seen[b] and b != u:
                weight, root = last_weights[j] * stride, np.sqrt(outer[b])
                one += plain[b] * weight / root
                other += rooted[b] * weight
                both += rooted[b] * weight / root
                all_over += shared[b] * weight / outer[b]
        out[i, 2], out[i, 3], out[i, 4], out[i, 5] = one, other, both, all_over
