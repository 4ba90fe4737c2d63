"""Sums over many columns of hops, node by node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit


@njit(cache=True, nogil=True)
def add_moments(
    hops: npt.NDArray[np.int16], weights: npt.NDArray[np.int64], out: npt.NDArray[np.int64]
) -> None:
    """Add to ``out [N, 3]``, over the columns that reach a node (0 and more): weights, hops and squared hops."""
    for v in range(hops.shape[0]):
        count, total, squares = np.int64(0), np.int64(0), np.int64(0)
        for j in range(hops.shape[1]):
            hop = np.int64(hops[v, j])
            if hop >= 0:
                count += weights[j]
                total += weights[j] * hop
                squares += weights[j] * hop * hop
        out[v, 0] += count
        out[v, 1] += total
        out[v, 2] += squares
