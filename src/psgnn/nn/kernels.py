"""The message of an anchor, for all nodes and anchors in one pass that never stores ``[N, K, R]``.

Letters: ``table [D, R]`` one row a distinct distance, ``near [N, K]`` which row of it, ``base [N, R]`` the
node's own part, ``far [M, R]`` the anchor's own part and ``who [N, K]`` which row of it (both of size 0 if
unused), ``weight [G, K]`` of each anchor and ``graph [N]``. The pre-activation of node v and anchor k is

    add:       table[near[v, k]] + far[who[v, k]] + base[v]
    multiply:  table[near[v, k]] * far[who[v, k]] + base[v]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[Any]
Ids = npt.NDArray[np.int32]


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _preactivation(
    table: Floats, near: int, base: Floats, far: Floats, who: int, multiply: bool, out: Floats
) -> None:
    if far.size == 0:
        for r in range(out.size):
            out[r] = table[near, r] + base[r]
    elif multiply:
        for r in range(out.size):
            out[r] = table[near, r] * far[who, r] + base[r]
    else:
        for r in range(out.size):
            out[r] = table[near, r] + far[who, r] + base[r]


@njit(cache=True, nogil=True, fastmath=True)
def pool_forward(
    table: Floats, near: Ids, base: Floats, far: Floats, who: Ids, multiply: bool,
    weight: Floats, graph: npt.NDArray[np.int64], first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v] = sum_k weight[graph[v], k] relu(pre[v, k])``, ``[N, R]``, for the rows given."""
    pre = np.empty(base.shape[1], base.dtype)
    for v in range(first, last):
        out[v, :] = 0
        for k in range(near.shape[1]):
            w = weight[graph[v], k]
            if w == 0:
                continue
            _preactivation(table, near[v, k], base[v], far, who[v, k] if who.size else 0, multiply, pre)
            for r in range(pre.size):
                out[v, r] += w * max(pre[r], 0)


@njit(cache=True, nogil=True, fastmath=True)
def read_forward(
    table: Floats, near: Ids, base: Floats, far: Floats, who: Ids, multiply: bool,
    weight: Floats, graph: npt.NDArray[np.int64], readout: Floats, first: int, last: int, out: Floats,
) -> None:  # fmt: skip
    """``out[v, k] = weight[graph[v], k] (readout . relu(pre[v, k]))``, ``[N, K]``, for the rows given."""
    pre = np.empty(base.shape[1], base.dtype)
    for v in range(first, last):
        for k in range(near.shape[1]):
            w = weight[graph[v], k]
            out[v, k] = 0
            if w == 0:
                continue
            _preactivation(table, near[v, k], base[v], far, who[v, k] if who.size else 0, multiply, pre)
            total = base.dtype.type(0)
            for r in range(pre.size):
                total += readout[r] * max(pre[r], 0)
            out[v, k] = w * total


@njit(cache=True, nogil=True, fastmath=True)
def backward(
    table: Floats, near: Ids, base: Floats, far: Floats, who: Ids, multiply: bool,
    weight: Floats, graph: npt.NDArray[np.int64], readout: Floats, first: int, last: int, grad_out: Floats,
    grad_table: Floats, grad_base: Floats, grad_far: Floats, grad_weight: Floats, grad_readout: Floats,
) -> None:  # fmt: skip
    """Gradients of `read_forward` (readout of size R) or `pool_forward` (of size 0), added to those given."""
    width = base.shape[1]
    pre = np.empty(width, base.dtype)
    step = np.empty(width, base.dtype)
    reads = readout.size > 0
    for v in range(first, last):
        g = graph[v]
        for k in range(near.shape[1]):
            w = weight[g, k]
            row, other = near[v, k], who[v, k] if who.size else 0
            _preactivation(table, row, base[v], far, other, multiply, pre)
            total = base.dtype.type(0)
            for r in range(width):
                active = max(pre[r], 0)
                slope = grad_out[v, k] * readout[r] if reads else grad_out[v, r]
                total += slope * active
                step[r] = w * slope if pre[r] > 0 else 0
                if reads:
                    grad_readout[r] += w * grad_out[v, k] * active
            grad_weight[g, k] += total
            if w == 0:
                continue
            for r in range(width):
                grad_base[v, r] += step[r]
            if far.size == 0:
                for r in range(width):
                    grad_table[row, r] += step[r]
            elif multiply:
                for r in range(width):
                    grad_table[row, r] += step[r] * far[other, r]
                    grad_far[other, r] += step[r] * table[row, r]
            else:
                for r in range(width):
                    grad_table[row, r] += step[r]
                    grad_far[other, r] += step[r]
