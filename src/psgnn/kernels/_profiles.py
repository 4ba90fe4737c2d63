"""Statistics of rows of hops and channels, in one pass over the anchors of each pair or node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psgnn.kernels._compile import njit

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
HOP_STATISTICS, CHANNEL_STATISTICS = 9, 7


@njit(cache=True, nogil=True)
def hop_profiles(
    hops: npt.NDArray[np.int16], counts: IntArray, us: IntArray, vs: IntArray, unknown: float, out: Floats
) -> None:
    """Statistics of ``|d(u, a) - d(v, a)|`` and ``d(u, a) + d(v, a)`` over the anchors, ``out [P, 9]``.

    Columns: the largest difference (a lower bound of d(u, v)) and its log, the smallest sum (an upper bound; `unknown`
    if the two nodes share no anchor), its log and its inverse, mean and root mean square of the differences, the share
    of anchors at equal distance, and of those that only one of the two reaches. ``counts [P]`` anchors are not padding.
    """
    for i in range(us.size):
        shared, single, equal = 0, 0, 0
        lower, upper, total, squares = 0.0, np.float64(unknown), 0.0, 0.0
        for k in range(counts[i]):
            a, b = hops[us[i], k], hops[vs[i], k]
            if a >= 0 and b >= 0:
                apart = abs(np.float64(a) - b)
                shared += 1
                equal += a == b
                total += apart
                squares += apart * apart
                lower = max(lower, apart)
                upper = min(upper, np.float64(a) + b)
            elif a >= 0 or b >= 0:
                single += 1
        many = max(shared, 1)
        out[i, 0], out[i, 1] = lower, np.log1p(lower)
        out[i, 2], out[i, 3], out[i, 4] = upper, np.log1p(upper), 1 / (1 + upper)
        out[i, 5], out[i, 6] = total / many, np.sqrt(squares / many)
        out[i, 7], out[i, 8] = equal / many, single / max(counts[i], 1)


@njit(cache=True, nogil=True)
def channel_profiles(
    channels: Floats, first: int, counts: IntArray, us: IntArray, vs: IntArray, out: Floats
) -> None:
    """Statistics of the channels from `first` on, ``out [P, 7 C]``, seven for each.

    Columns: mean, root mean square and maximum of ``|x_u - x_v|`` over the anchors; the correlation of the two rows;
    the largest ``x_u + x_v`` (an anchor near both); sum and difference of the rows' means.
    """
    for i in range(us.size):
        many = max(counts[i], 1)
        for c in range(first, channels.shape[2]):
            total, squares, most, closest = 0.0, 0.0, 0.0, -1e30
            sum_a, sum_b, aa, bb, ab = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(counts[i]):
                a, b = np.float64(channels[us[i], k, c]), np.float64(channels[vs[i], k, c])
                apart = abs(a - b)
                total += apart
                squares += apart * apart
                most = max(most, apart)
                closest = max(closest, a + b)
                sum_a += a
                sum_b += b
                aa += a * a
                bb += b * b
                ab += a * b
            mean_a, mean_b = sum_a / many, sum_b / many
            cov = ab / many - mean_a * mean_b
            var = (aa / many - mean_a * mean_a) * (bb / many - mean_b * mean_b)
            at = 7 * (c - first)
            out[i, at], out[i, at + 1], out[i, at + 2] = total / many, np.sqrt(squares / many), most
            out[i, at + 3] = cov / np.sqrt(max(var, 0.0) + 1e-8)
            out[i, at + 4] = closest
            out[i, at + 5], out[i, at + 6] = mean_a + mean_b, abs(mean_a - mean_b)


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


@njit(cache=True, nogil=True)
def look_up(bounds: Floats, table: Floats, values: Floats, out: Floats) -> None:
    """Replace values ``[P, S]`` by the entries ``[S, B]`` of the bins that they are in, ``bounds [S, B - 1]``."""
    for p in range(values.shape[0]):
        for s in range(values.shape[1]):
            place = 0
            for b in range(bounds.shape[1]):
                place += bounds[s, b] < values[p, s]
            out[p, s] = table[s, place]
