"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

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
