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
    ``sqrt(outer[b])``, over ``sqrt(inner[a])``, over both roots, over both numbers. Of more than `most` walks of two
    steps from a node, some ``most / 16`` stand for all. A node of more than `most` last arcs is looked for from some
    ``most / 64`` of the nodes that are reached in two steps.
    """
    num_nodes = indptr.size - 1
    # What leads to a node: plainly, over the root of `inner`, and over `inner`; and whether anything does.
    reach = np.zeros((num_nodes, 4))
    touched, reached = np.empty(num_nodes, np.int32), 0
    for i in range(us.size):
        u, v = us[i], vs[i]
        if i == 0 or u != us[i - 1]:
            for j in range(reached):
                b = touched[j]
                reach[b] = 0.0
            reached, ways = 0, 0
            for j in range(indptr[u], indptr[u + 1]):
                a = indices[j]
                ways += next_indptr[a + 1] - next_indptr[a]
            stride, ahead = 1 if ways <= most else 1 + 16 * ways // most, 0
            for j in range(indptr[u], indptr[u + 1]):
                a = indices[j]
                step = weights[j] * stride
                k = next_indptr[a] + ahead  # steps of a stride go on from row to row
                while k < next_indptr[a + 1]:
                    b = next_indices[k]
                    if not reach[b, 3]:
                        reach[b, 3] = 1.0
                        touched[reached] = b
                        reached += 1
                    weight = step * next_weights[k]
                    reach[b, 0] += weight
                    reach[b, 1] += weight / np.sqrt(inner[a])
                    reach[b, 2] += weight / inner[a]
                    k += stride
                ahead = k - next_indptr[a + 1]
        out[i, 0], out[i, 1] = reach[v, 0], reach[v, 2]
        one, other, both, all_over = 0.0, 0.0, 0.0, 0.0
        start, stop = last_indptr[v], last_indptr[v + 1]
        short = stop - start <= most
        stride = 1 if short else 1 + 64 * reached // most
        for k in range(0, stop - start if short else reached, stride):
            if short:
                j = start + k
                b = last_indices[j]
            else:  # fewer are reached than lead to a hub
                b = touched[k]
                j = start + np.searchsorted(last_indices[start:stop], b)
                if j == stop or last_indices[j] != b:
                    continue
            if reach[b, 3] and b != u:
                weight, root = last_weights[j] * stride, np.sqrt(outer[b])
                one += reach[b, 0] * weight / root
                other += reach[b, 1] * weight
                both += reach[b, 1] * weight / root
                all_over += reach[b, 2] * weight / outer[b]
        out[i, 2], out[i, 3], out[i, 4], out[i, 5] = one, other, both, all_over
