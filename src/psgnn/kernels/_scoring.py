"""Candidates for missing links by short walks, and isotonic regression for their probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Partners = npt.NDArray[np.int32]  # [N, c], -1 where there are fewer
NOTHING = np.zeros(0, np.bool_)


def walk_partners(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], first: int, most: int, out: Partners
) -> None:
    """Fill the rows ``out [n, 2 c]`` of the nodes from `first` on: c unlinked nodes two steps away, c three steps away.

    Walks count one over the degrees along them. Where walks of a length would take more than `most` steps, every n-th
    is taken.
    """
    walk_partners_within(indptr[:-1], indptr[1:], indices, first, most, NOTHING, out)


@njit(cache=True, nogil=True)
def walk_partners_within(
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    first: int,
    most: int,
    wanted: npt.NDArray[np.bool_],
    out: Partners,
) -> None:
    """`walk_partners` in a part of a graph: node v has the neighbours ``indices[starts[v]:ends[v]]``.

    A row that ends beyond `indices` is missing. It is marked in ``wanted [N]``, and the walks go on without it.
    """
    num_nodes = starts.size
    count = out.shape[1] // 2
    two, three = np.zeros(num_nodes), np.zeros(num_nodes)
    touched, further = np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32)
    linked = np.full(num_nodes, -1, np.int64)
    best = np.empty(count)
    for i in range(out.shape[0]):
        u = first + i
        linked[u] = u
        cost = 0
        for j in range(starts[u], ends[u]):
            w = indices[j]
            linked[w] = u
            cost += ends[w] - starts[w]
        stride = 1 + cost // most
        reached, cost = 0, 0
        for j in range(starts[u], ends[u]):
            w = indices[j]
            if ends[w] > indices.size:
                wanted[w] = True
                continue
            share = 1.0 / (ends[w] - starts[w])
            for k in range(starts[w] + j % stride, ends[w], stride):
                z = indices[k]
                if two[z] == 0.0:
                    touched[reached] = z
                    reached += 1
                    cost += ends[z] - starts[z]
                two[z] += share
        stride = 1 + cost // most
        beyond = 0
        for j in range(reached):
            z = touched[j]
            if z == u:
                continue
            if ends[z] > indices.size:
                wanted[z] = True
                continue
            share = two[z] / (ends[z] - starts[z])
            for k in range(starts[z] + j % stride, ends[z], stride):
                x = indices[k]
                if two[x] == 0.0 and linked[x] != u:
                    if three[x] == 0.0:
                        further[beyond] = x
                        beyond += 1
                    three[x] += share
        _keep_best(two, touched[:reached], linked, u, best, out[i, :count])
        _keep_best(three, further[:beyond], linked, u, best, out[i, count:])


@njit(cache=True, nogil=True)
def _keep_best(
    mass: npt.NDArray[np.float64],
    touched: npt.NDArray[np.int32],
    linked: npt.NDArray[np.int64],
    u: int,
    best: npt.NDArray[np.float64],
    out: npt.NDArray[np.int32],
) -> None:
    """Write the unlinked nodes of largest mass into `out`, and set the mass back to zero."""
    kept = 0
    for z in touched:
        value = mass[z]
        mass[z] = 0.0
        if linked[z] == u or (kept == out.size and value <= best[kept - 1]):
            continue
        if kept < out.size:
            kept += 1
        place = kept - 1
        while place > 0 and best[place - 1] < value:
            best[place], out[place] = best[place - 1], out[place - 1]
            place -= 1
        best[place], out[place] = value, z


Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def pool_adjacent(values: Floats, weights: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Fit the nearest non-decreasing sequence to weighted values: the starts of its blocks and their means."""
    starts = np.empty(values.size, np.int64)
    means, totals = np.empty(values.size), np.empty(values.size)
    count = 0
    for i in range(values.size):
        starts[count], means[count], totals[count] = i, values[i], weights[i]
        count += 1
        while count > 1 and means[count - 2] >= means[count - 1]:
            total = totals[count - 2] + totals[count - 1]
            means[count - 2] = (
                means[count - 2] * totals[count - 2] + means[count - 1] * totals[count - 1]
            ) / total
            totals[count - 2] = total
            count -= 1
    return starts[:count].copy(), means[:count].copy()
