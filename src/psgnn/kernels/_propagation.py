"""Sums over the neighbours of a block of rows ``first:last``: steps of walks, smoothing and degrees around."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit
from psgnn.kernels._llvm import LINE, add_rows

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, fastmath=True)
def spread_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    x: Floats,
    inward: Floats,
    outward: Floats,
    y: Floats,
    first: int,
    last: int,
) -> None:
    """Rows ``first:last`` of ``y = diag(outward) A diag(inward) x``; an isolated node keeps its row."""
    width = x.shape[1]
    for v in range(first, last):
        row = y[v]
        if indptr[v] == indptr[v + 1]:
            for k in range(width):  # an assignment of slices takes seconds to compile
                row[k] = x[v, k]
            continue
        for k in range(width):
            row[k] = 0.0
        for i in range(indptr[v], indptr[v + 1]):
            u = indices[i]
            share = inward[u]
            for k in range(width):
                row[k] += share * x[u, k]
        for k in range(width):
            row[k] *= outward[v]


@njit(cache=True, nogil=True, fastmath=True)
def _add_neighbours(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], x: Floats, v: int, y: Floats
) -> None:
    """Add the rows of x of the neighbours of v to its row of y, another array; both have whole lines."""
    first, last, width = indptr[v], indptr[v + 1], x.shape[1]
    column = 0
    while column + 4 * LINE <= width:
        add_rows(x, indices, first, last, y, v * width + column, column, 4)
        column += 4 * LINE
    if column + 2 * LINE <= width:
        add_rows(x, indices, first, last, y, v * width + column, column, 2)
        column += 2 * LINE
    if column < width:
        add_rows(x, indices, first, last, y, v * width + column, column, 1)


@njit(cache=True, nogil=True, fastmath=True)
def walk_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    shares: Floats,
    inward: Floats,
    weights: Floats,
    sums: Floats,
    y: Floats,
    first: int,
    last: int,
) -> None:
    """Rows ``first:last`` of a step of the walk: ``y = diag(inward) A shares``, and each of the sums gets its weight of
    ``A shares``; an isolated node keeps its row."""
    for v in range(first, last):
        row = y[v]
        if indptr[v] == indptr[v + 1]:
            for k in range(row.size):
                row[k] = shares[v, k]
        else:
            for k in range(row.size):
                row[k] = 0.0
        _add_neighbours(indptr, indices, shares, v, y)
        for j in range(weights.size):
            total = sums[j, v]
            for k in range(total.size):
                total[k] += weights[j] * row[k]
        for k in range(row.size):
            row[k] *= inward[v]


@njit(cache=True, nogil=True, fastmath=True)
def smooth_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    x: Floats,
    kept: np.float32,
    weights: Floats,
    everywhere: Floats,
    graph_of: npt.NDArray[np.int64],
    y: Floats,
    first: int,
    last: int,
) -> None:
    """Rows ``first:last`` of ``y = kept x + diag(weights) (A x + everywhere[graph_of])``."""
    for v in range(first, last):
        row = y[v]
        for k in range(row.size):
            row[k] = everywhere[graph_of[v], k]
        _add_neighbours(indptr, indices, x, v, y)
        for k in range(row.size):
            row[k] = kept * x[v, k] + weights[v] * row[k]


@njit(cache=True, nogil=True)
def degree_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    degrees: npt.NDArray[np.int64],
    logs: Doubles,
    out: Doubles,
    first: int,
    last: int,
) -> None:
    """The ``degrees [N]`` of the neighbours of the nodes ``first:last``, ``out [4, N]``; ``logs[d]`` is ``log1p(d)``.

    Rows: the sum of their logs, the sum of degrees, the number of leaves, the largest degree.
    """
    for v in range(first, last):
        total, walks, leaves, largest = 0.0, 0, 0, 0
        for i in range(indptr[v], indptr[v + 1]):
            degree = degrees[indices[i]]
            total += logs[degree]
            walks += degree
            leaves += degree == 1
            largest = max(largest, degree)
        out[0, v], out[1, v], out[2, v], out[3, v] = total, walks, leaves, largest


@njit(cache=True, nogil=True)
def sum_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: Doubles,
    out: Doubles,
    first: int,
    last: int,
) -> None:
    """The sum of the neighbours' values for the nodes ``first:last``."""
    for v in range(first, last):
        total = 0.0
        for i in range(indptr[v], indptr[v + 1]):
            total += values[indices[i]]
        out[v] = total
