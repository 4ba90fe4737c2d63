"""The message of an anchor, for all nodes and anchors in one pass that never stores ``[N, K, R]``.

Letters: ``table [D, R]`` one row a distinct distance, ``near [N, K]`` which row of it, ``base [N, R]`` the
node's own part, ``who [N, K]`` the anchor, whose own part is ``term [M, R]`` or ``factor [M, R]``,
``weight [G, K]`` of each anchor, zero for one that is only padding and is passed over, and ``graph [N]``. The
pre-activation of node v and anchor k is

    table[near[v, k]] + base[v]
    table[near[v, k]] + term[who[v, k]] + base[v]
    table[near[v, k]] * factor[who[v, k]] + base[v]

What is not there is None: numba compiles every form for itself, and only a loop over R without choices becomes vector
code. Rows of anchors are in random places; that of the anchor `NEXT` ones ahead is sent for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from psgnn.intrinsics import prefetch

Floats = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]
Graphs = npt.NDArray[np.int64]

NEXT = 2
LINE = 16  # numbers that come from memory together


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _add_active(
    w: float,
    step: Floats,
    own: Floats,
    term: Floats | None,
    factor: Floats | None,
    anchor: int,
    out: Floats,
) -> None:
    """``out += w relu(pre)`` of one node and anchor."""
    zero = own.dtype.type(0)
    if factor is not None:
        other = factor[anchor]
        for r in range(own.size):
            out[r] += w * max(step[r] * other[r] + own[r], zero)
    elif term is not None:
        other = term[anchor]
        for r in range(own.size):
            out[r] += w * max(step[r] + other[r] + own[r], zero)
    else:
        for r in range(own.size):
            out[r] += w * max(step[r] + own[r], zero)


@njit(cache=True, nogil=True, fastmath=True)
def pool_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v] = sum_k weight[graph[v], k] relu(pre[v, k])``, ``[N, R]``, for the rows given."""
    for v in range(first, last):
        out[v] = 0
        for k in range(near.shape[1]):
            w, anchor = weight[graph[v], k], 0 if who is None else who[v, k]
            if factor is not None and who is not None and k + NEXT < near.shape[1]:
                for r in range(0, base.shape[1], LINE):
                    prefetch(factor, who[v, k + NEXT] * base.shape[1] + r)
            if w != 0:
                _add_active(w, table[near[v, k]], base[v], term, factor, anchor, out[v])


@njit(cache=True, nogil=True, fastmath=True)
def read_forward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, readout: Floats, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v, k] = weight[graph[v], k] (readout . relu(pre[v, k]))``, ``[N, K]``, for the rows given."""
    active, one = np.empty_like(readout), base.dtype.type(1)
    for v in range(first, last):
        for k in range(near.shape[1]):
            if weight[graph[v], k] == 0:
                out[v, k] = 0
                continue
            active[:] = 0
            anchor = 0 if who is None else who[v, k]
            _add_active(one, table[near[v, k]], base[v], term, factor, anchor, active)
            total = base.dtype.type(0)
            for r in range(readout.size):
                total += readout[r] * active[r]
            out[v, k] = weight[graph[v], k] * total


@njit(cache=True, nogil=True, fastmath=True)
def backward(
    table: Floats, near: Ids, base: Floats, term: Floats | None, factor: Floats | None, who: Ids | None,
    weight: Floats, graph: Graphs, readout: Floats | None, first: int, last: int, grad_out: Floats,
    grad_table: Floats, grad_base: Floats, grad_anchor: Floats, grad_weight: Floats, grad_readout: Floats | None,
) -> None:  # fmt: skip
    """Gradients of `read_forward`, or without ``readout`` of `pool_forward`, added to those given."""
    zero, grad_own = base.dtype.type(0), np.empty(base.shape[1], base.dtype)
    for v in range(first, last):
        g, own = graph[v], base[v]
        grad_own[:] = 0
        for k in range(near.shape[1]):
            w = weight[g, k]
            if w == 0:
                continue
            if factor is not None and who is not None and k + NEXT < near.shape[1]:
                for r in range(0, base.shape[1], LINE):
                    prefetch(factor, who[v, k + NEXT] * base.shape[1] + r)
                    prefetch(grad_anchor, who[v, k + NEXT] * base.shape[1] + r)
            step, grad_step = table[near[v, k]], grad_table[near[v, k]]
            anchor = 0 if who is None else who[v, k]
            if readout is None:
                scale, slope = base.dtype.type(1), grad_out[v]
            else:
                scale, slope = grad_out[v, k], readout
            total, push = zero, w * scale
            if factor is not None:
                other, grad_other = factor[anchor], grad_anchor[anchor]
                for r in range(grad_own.size):
                    pre = step[r] * other[r] + own[r]
                    active = max(pre, zero)
                    total += slope[r] * active
                    if grad_readout is not None:
                        grad_readout[r] += push * active
                    passed = push * slope[r] if pre > 0 else zero
                    grad_own[r] += passed
                    grad_step[r] += passed * other[r]
                    grad_other[r] += passed * step[r]
            elif term is not None:
                other, grad_other = term[anchor], grad_anchor[anchor]
                for r in range(grad_own.size):
                    pre = step[r] + other[r] + own[r]
                    active = max(pre, zero)
                    total += slope[r] * active
                    if grad_readout is not None:
                        grad_readout[r] += push * active
                    passed = push * slope[r] if pre > 0 else zero
                    grad_own[r] += passed
                    grad_step[r] += passed
                    grad_other[r] += passed
            else:
                for r in range(grad_own.size):
                    pre = step[r] + own[r]
                    active = max(pre, zero)
                    total += slope[r] * active
                    if grad_readout is not None:
                        grad_readout[r] += push * active
                    passed = push * slope[r] if pre > 0 else zero
                    grad_own[r] += passed
                    grad_step[r] += passed
            grad_weight[g, k] += scale * total
        for r in range(grad_own.size):
            grad_base[v, r] += grad_own[r]
