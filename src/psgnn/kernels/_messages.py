"""Messages of anchors in one pass that never stores ``[N, K, R]``, and sums over neighbours.

Letters: ``table [D, R]`` one row a distinct distance, ``near [N, K]`` which row of it, ``base [N, R]`` the
node's own part, ``who [N, K]`` the anchor, whose own part is ``term [M, R]`` or ``factor [M, R]``,
``weight [G, K]`` of each anchor, zero for one that is only padding and is passed over, and ``graph [N]``. The
pre-activation of node v and anchor k is

    table[near[v, k]] + base[v]
    table[near[v, k]] + term[who[v, k]] + base[v]
    table[near[v, k]] * factor[who[v, k]] + base[v]

What is not there is None: numba compiles every form for itself, without the choices. Rows begin at ``row * R`` of
their array. Arrays that are added to share no memory, and saying so makes the short loops over R several times as fast
(`psgnn.kernels._llvm.add`). Rows of anchors are in random places; that of the anchor `NEXT` ones ahead is sent for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit
from psgnn.kernels._llvm import LINE, WRITTEN, add, given, prefetch

Floats = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]
Graphs = npt.NDArray[np.int64]

NEXT = 2
OWN, TABLE, ANCHOR, READOUT = 1, 2, 3, 4  # what is added to


@njit(cache=True, nogil=True, fastmath=True)
def _pre(
    table: Floats, step: int, base: Floats, own: int, term: Floats | None, factor: Floats | None, anchor: int
) -> float:
    """One number of a pre-activation, from the places of its parts."""
    if factor is not None:
        return given(table, step) * given(factor, anchor) + given(base, own)  # type: ignore[no-any-return]
    if term is not None:
        return given(table, step) + given(term, anchor) + given(base, own)  # type: ignore[no-any-return]
    return given(table, step) + given(base, own)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, fastmath=True)
def pool_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v] = sum_k weight[graph[v], k] relu(pre[v, k])``, ``[N, R]``, for the rows given."""
    zero, width = base.dtype.type(0), base.shape[1]
    for v in range(first, last):
        out[v] = 0
        own = v * width
        for k in range(near.shape[1]):
            if factor is not None and who is not None and k + NEXT < near.shape[1]:
                for r in range(0, width, LINE):
                    prefetch(factor, who[v, k + NEXT] * width + r)
            w = weight[graph[v], k]
            if w == 0:
                continue
            step, anchor = near[v, k] * width, 0 if who is None else who[v, k] * width
            for r in range(width):
                pre = _pre(table, step + r, base, own + r, term, factor, anchor + r)
                add(out, own + r, w * max(pre, zero), OWN)


@njit(cache=True, nogil=True, fastmath=True)
def read_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, readout: Floats, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v, k] = weight[graph[v], k] (readout . relu(pre[v, k]))``, ``[N, K]``, for the rows given."""
    zero, width = base.dtype.type(0), base.shape[1]
    for v in range(first, last):
        own = v * width
        for k in range(near.shape[1]):
            total, w = zero, weight[graph[v], k]
            if w != 0:
                step, anchor = near[v, k] * width, 0 if who is None else who[v, k] * width
                for r in range(width):
                    pre = _pre(table, step + r, base, own + r, term, factor, anchor + r)
                    total += given(readout, r) * max(pre, zero)
            out[v, k] = w * total


@njit(cache=True, nogil=True, fastmath=True)
def backward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, readout: Floats | None, first: int, last: int, grad_out: Floats,
    grad_table: Floats, grad_base: Floats, grad_anchor: Floats, grad_weight: Floats, grad_readout: Floats | None,
) -> None:  # fmt: skip
    """Gradients of `read_forward`, or without ``readout`` of `pool_forward`, added to those given."""
    zero, one, width = base.dtype.type(0), base.dtype.type(1), base.shape[1]
    for v in range(first, last):
        g, own = graph[v], v * width
        for k in range(near.shape[1]):
            if factor is not None and who is not None and k + NEXT < near.shape[1]:
                for r in range(0, width, LINE):
                    prefetch(factor, who[v, k + NEXT] * width + r)
                    prefetch(grad_anchor, who[v, k + NEXT] * width + r)
            w = weight[g, k]
            if w == 0:
                continue
            step, anchor = near[v, k] * width, 0 if who is None else who[v, k] * width
            scale = one if readout is None else grad_out[v, k]
            total, push = zero, w * scale
            for r in range(width):
                pre = _pre(table, step + r, base, own + r, term, factor, anchor + r)
                slope = given(grad_out, own + r) if readout is None else given(readout, r)
                active = max(pre, zero)
                passed = push * slope if pre > 0 else zero
                total += slope * active
                add(grad_base, own + r, passed, OWN)
                if grad_readout is not None:
                    add(grad_readout, r, push * active, READOUT)
                if factor is not None:
                    add(grad_table, step + r, passed * given(factor, anchor + r), TABLE)
                    add(grad_anchor, anchor + r, passed * given(table, step + r), ANCHOR)
                else:
                    add(grad_table, step + r, passed, TABLE)
                if term is not None:
                    add(grad_anchor, anchor + r, passed, ANCHOR)
            grad_weight[g, k] += scale * total


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
