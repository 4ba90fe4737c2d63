"""Messages of anchors in one pass that never stores ``[N, K, R]``, and sums over neighbours.

Letters: ``table [D, R]`` one row a distinct distance, ``near [N, K]`` which row of it, ``base [N, R]`` the
node's own part, ``who [N, K]`` the anchor, whose own part is ``term [M, R]`` or ``factor [M, R]``,
``weight [G, K]`` of each anchor, zero for one that is only padding and is passed over, and ``graph [N]``. The
pre-activation of node v and anchor k is

    table[near[v, k]] + base[v]
    table[near[v, k]] + term[who[v, k]] + base[v]
    table[near[v, k]] * factor[who[v, k]] + base[v]

What is not there is None: numba compiles every form for itself, without the choices. Arrays that are added to share
no memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

Floats = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]
Graphs = npt.NDArray[np.int64]


@njit(cache=True, nogil=True, fastmath=True)
def _pre(
    table: Floats,
    step: int,
    base: Floats,
    v: int,
    term: Floats | None,
    factor: Floats | None,
    anchor: int,
    r: int,
) -> float:
    """One number of a pre-activation, from the rows of its parts."""
    if factor is not None:
        return table[step, r] * factor[anchor, r] + base[v, r]  # type: ignore[no-any-return]
    if term is not None:
        return table[step, r] + term[anchor, r] + base[v, r]  # type: ignore[no-any-return]
    return table[step, r] + base[v, r]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True, fastmath=True)
def pool_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v] = sum_k weight[graph[v], k] relu(pre[v, k])``, ``[N, R]``, for the rows given."""
    zero, width = base.dtype.type(0), base.shape[1]
    for v in range(first, last):
        out[v] = 0
        for k in range(near.shape[1]):
            w = weight[graph[v], k]
            if w == 0:
                continue
            step, anchor = near[v, k], 0 if who is None else who[v, k]
            for r in range(width):
                out[v, r] += w * max(_pre(table, step, base, v, term, factor, anchor, r), zero)


@njit(cache=True, nogil=True, fastmath=True)
def read_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, readout: Floats, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v, k] = weight[graph[v], k] (readout . relu(pre[v, k]))``, ``[N, K]``, for the rows given."""
    zero, width = base.dtype.type(0), base.shape[1]
    for v in range(first, last):
        for k in range(near.shape[1]):
            total, w = zero, weight[graph[v], k]
            if w != 0:
                step, anchor = near[v, k], 0 if who is None else who[v, k]
                for r in range(width):
                    total += readout[r] * max(_pre(table, step, base, v, term, factor, anchor, r), zero)
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
        g = graph[v]
        for k in range(near.shape[1]):
            w = weight[g, k]
            if w == 0:
                continue
            step, anchor = near[v, k], 0 if who is None else who[v, k]
            scale = one if readout is None else grad_out[v, k]
            total, push = zero, w * scale
            for r in range(width):
                pre = _pre(table, step, base, v, term, factor, anchor, r)
                slope = grad_out[v, r] if readout is None else readout[r]
                active = max(pre, zero)
                passed = push * slope if pre > 0 else zero
                total += slope * active
                grad_base[v, r] += passed
                if grad_readout is not None:
                    grad_readout[r] += push * active
                if factor is not None:
                    grad_table[step, r] += passed * factor[anchor, r]
                    grad_anchor[anchor, r] += passed * table[step, r]
                else:
                    grad_table[step, r] += passed
                if term is not None:
                    grad_anchor[anchor, r] += passed
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
            u = indices[e]
            for r in range(width):
                out[v, r] += x[u, r]


@njit(cache=True, nogil=True, fastmath=True)
def sum_weighted(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], weight: Floats, x: Floats, out: Floats
) -> None:
    """``out[v, h] += sum_e weight[e, h] x[indices[e], h]``."""
    heads, width = x.shape[1], x.shape[2]
    for v in range(x.shape[0]):
        for e in range(indptr[v], indptr[v + 1]):
            for h in range(heads):
                w, u = weight[e, h], indices[e]
                for r in range(width):
                    out[v, h, r] += w * x[u, h, r]


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
                w, u, dot = weight[e, h], indices[e], x.dtype.type(0)
                for r in range(width):
                    dot += grad[v, h, r] * x[u, h, r]
                    grad_x[u, h, r] += w * grad[v, h, r]
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
        a, b, slope = pairs[0, p], pairs[1, p], grad[p]
        for r in range(width):
            grad_h[a, r] += slope * h[b, r]
        for r in range(width):
            grad_h[b, r] += slope * h[a, r]
