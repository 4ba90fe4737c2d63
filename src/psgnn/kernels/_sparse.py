"""Sums over neighbours and dot products of pairs, with their gradients, without a row per edge or pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit
from psgnn.kernels._llvm import WRITTEN, add, given

Floats = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=True)
def sum_rows(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    x: Floats,
    first: int,
    last: int,
    out: Floats,
) -> None:
    """``out[v]``, for the rows given, is the sum of ``x`` over the neighbours of v."""
    width = x.shape[1]
    for v in range(first, last):
        out[v] = 0
        for e in range(indptr[v], indptr[v + 1]):
            there, here = indices[e] * width, v * width
            for r in range(width):
                add(out, here + r, given(x, there + r), WRITTEN)


@njit(cache=True, nogil=True, fastmath=True)
def sum_weighted(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], weight: Floats, x: Floats, out: Floats
) -> None:
    """``out[v, h] += sum_e weight[e, h] x[indices[e], h]``."""
    heads, width = x.shape[1], x.shape[2]
    for v in range(x.shape[0]):
        for e in range(indptr[v], indptr[v + 1]):
            for h in range(heads):
                w, there, here = weight[e, h], (indices[e] * heads + h) * width, (v * heads + h) * width
                for r in range(width):
                    add(out, here + r, w * given(x, there + r), WRITTEN)


@njit(cache=True, nogil=True, fastmath=True)
def sum_weighted_backward(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], weight: Floats, x: Floats, grad: Floats,
    grad_weight: Floats, grad_x: Floats,
) -> None:  # fmt: skip
    """Gradients of `sum_weighted`; that of x is added to what is given."""
    heads, width = x.shape[1], x.shape[2]
    for v in range(x.shape[0]):
        for e in range(indptr[v], indptr[v + 1]):
            for h in range(heads):
                w, there, here = weight[e, h], (indices[e] * heads + h) * width, (v * heads + h) * width
                dot = x.dtype.type(0)
                for r in range(width):
                    slope = given(grad, here + r)
                    dot += slope * given(x, there + r)
                    add(grad_x, there + r, w * slope, WRITTEN)
                grad_weight[e, h] = dot


@njit(cache=True, nogil=True, fastmath=True)
def dots(h: Floats, pairs: npt.NDArray[np.int64], out: Floats) -> None:
    """``out[p] = h[pairs[0, p]] . h[pairs[1, p]]``."""
    for p in range(pairs.shape[1]):
        a, b = h[pairs[0, p]], h[pairs[1, p]]
        total = h.dtype.type(0)
        for r in range(a.size):
            total += a[r] * b[r]
        out[p] = total


@njit(cache=True, nogil=True, fastmath=True)
def dots_backward(h: Floats, pairs: npt.NDArray[np.int64], grad: Floats, grad_h: Floats) -> None:
    """The gradient of `dots`, added to what is given."""
    width = h.shape[1]
    for p in range(pairs.shape[1]):
        a, b, slope = pairs[0, p] * width, pairs[1, p] * width, grad[p]
        for r in range(width):
            add(grad_h, a + r, slope * given(h, b + r), WRITTEN)
        for r in range(width):
            add(grad_h, b + r, slope * given(h, a + r), WRITTEN)
