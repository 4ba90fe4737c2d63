"""What two positions say, in numbers that depend neither on the size of the graph nor on the number of anchors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.kernels._compile import parallel_rows
from psgnn.kernels._pairs import NOTHING, local_walks_within, pair_hops_within
from psgnn.kernels._profiles import CHANNEL_STATISTICS, HOP_STATISTICS, channel_profiles, hop_profiles
from psgnn.positions._kinds import CHANNEL_NAMES, HOP_NAMES, kind_columns, kind_statistics
from psgnn.positions._measure import Parts, Positions
from psgnn.positions._roles import ROLES
from psgnn.positions._view import FEATURE_STATISTICS

Doubles = npt.NDArray[np.float64]

HEAT_TIMES = (1.0, 4.0, 16.0)
TRUNCATIONS = (8, 16, 32, 64)
FARTHEST = 16  # most hops between the nodes of a pair; more count as these
UNKNOWN_HOPS = 4.0 * FARTHEST  # the upper bound of a pair that shares no anchor
PIECE = 4096  # pairs that one thread describes at once, at most

_KERNELS = (
    *(f"heat {time:g}" for time in HEAT_TIMES), "resolvent", *(f"squares, {r} vectors" for r in TRUNCATIONS)
)  # fmt: skip
_LOGGED_KERNELS = 4  # of the first of them the value itself is used too, not the cosine alone
_LOCAL = (
    "linked", "log common neighbours", "log Adamic-Adar", "log resource allocation", "log three-step walks",
    "log of resource allocation", "log of weighted three-step walks", "cosine of neighbours", "Jaccard of neighbours",
    "three-step walks by degrees", "two-step walk", "three-step walk", "hops", "proximity", "two hops", "three hops",
    "far or unreachable",
)  # fmt: skip
_HOP_COLUMNS = 5  # of them, the last


def statistic_names(parts: Parts) -> list[str]:
    """The columns of `pair_statistics`."""
    names = _plain_names(parts)
    names += [name for _, name in kind_columns(parts.kinds, roles=parts.roles)]
    return names + list(FEATURE_STATISTICS) * parts.pair_features


def _plain_names(parts: Parts) -> list[str]:
    """Those that any graph has."""
    names = list(HOP_NAMES) * parts.hops
    names += [f"{channel}: {what}" for channel in parts.channels[2 * parts.hops :] for what in CHANNEL_NAMES]
    if parts.spectral:
        names += [f"{kernel}, cosine" for kernel in _KERNELS]
        names += [f"{kernel}, value" for kernel in _KERNELS[:_LOGGED_KERNELS]]
    if parts.roles:
        names += [f"{role}: {what}" for what in ("sum", "difference", "smaller") for role in ROLES]
    return names + list(_LOCAL) * parts.local


def statistic_groups(parts: Parts) -> list[str]:
    """The kind of evidence that each column of `pair_statistics` is: hops, walks, spectral, roles, local, a kind, or
    features."""
    sizes = {
        "hops": len(HOP_NAMES) * parts.hops,
        "walks": len(CHANNEL_NAMES) * (len(parts.channels) - 2 * parts.hops),
        "spectral": (len(_KERNELS) + _LOGGED_KERNELS) * parts.spectral,
        "roles": 3 * len(ROLES) * parts.roles,
        "local": len(_LOCAL) * parts.local,
    }
    found = [group for group, size in sizes.items() for _ in range(size)]
    found += [group for group, _ in kind_columns(parts.kinds, roles=parts.roles)]
    return found + ["features"] * (len(FEATURE_STATISTICS) * parts.pair_features)


@dataclass(frozen=True, eq=False)
class Rows:
    """What pairs are described by: rows of nodes and the links around them, of whole graphs or of parts of them.

    ``starts``, ``ends`` and ``neighbours`` are as for `psgnn.kernels._pairs.pair_hops_within`; ``sizes [G]`` counts the
    nodes of the whole graphs. All else is as in `Positions`.
    """

    parts: Parts
    graph_of: IntArray
    sizes: IntArray
    counts: IntArray
    hops: npt.NDArray[np.int16]
    channels: Floats
    basis: Floats
    values: Floats
    roles: Floats
    starts: IntArray
    ends: IntArray
    neighbours: npt.NDArray[np.int32]

    @classmethod
    def of(cls, positions: Positions) -> Rows:
        """Those of all nodes of a view."""
        union = positions.view.union
        adjacency = union.adjacency
        return cls(
            positions.parts, union.graph_of, union.sizes, positions.counts, positions.hops, positions.channels,
            positions.basis, positions.values, positions.roles, adjacency.indptr[:-1], adjacency.indptr[1:],
            adjacency.indices,
        )  # fmt: skip


def statistics_of_rows(rows: Rows, us: IntArray, vs: IntArray) -> Floats:
    """`pair_statistics` of nodes of plain graphs whose rows are here, ``[P, S]``."""
    out = np.empty((us.size, len(_plain_names(rows.parts))), np.float32)
    split, hops = _split(rows.parts), np.zeros(us.size)
    for start in range(0, us.size, PIECE):
        some = slice(start, start + PIECE)
        _fill(rows, us[some], vs[some], out[some, :split])
        _fill_without_anchors(rows, us[some], vs[some], hops[some], out[some, split:])
    _estimate_unknown(rows, us, vs, hops, out)
    return out


def _split(parts: Parts) -> int:
    """The first of the columns that do not depend on anchors."""
    return len(_plain_names(parts)) - (3 * len(ROLES) * parts.roles + len(_LOCAL) * parts.local)


def _estimate_unknown(rows: Rows, us: IntArray, vs: IntArray, hops: Doubles, out: Floats) -> None:
    """Fill the columns of hops of the pairs whose search for them ended early."""
    unknown = np.flatnonzero(hops < -1)
    if unknown.size:
        found = _estimated_hops(rows, us[unknown], vs[unknown], hops[unknown])
        out[unknown, -_HOP_COLUMNS:] = _of_hops(found).T


def pair_statistics(positions: Positions, pairs: IntArray) -> Floats:
    """All statistics of pairs ``[2, P]``, ``[P, S]``, O(P K) and for ``local`` the pairs' neighbourhoods.

    A pair looks at a bounded number of edges, ``Parts.pair_looks``. Where the search for its hops ends before they are
    found, they are estimated from the hops to the anchors.
    """
    parts = positions.parts
    whole = np.empty((pairs.shape[1], len(statistic_names(parts))), np.float32)
    out = whole[:, : len(_plain_names(parts))]
    split, rows = _split(parts), Rows.of(positions)
    recent = positions.view.alike("statistics", list[tuple[IntArray, Floats, Doubles]])
    known = next((kept for kept in recent if kept[0] is pairs), None)
    hops = np.zeros(out.shape[0])  # as `pair_hops` gives them
    if known is not None:
        out[:, split:], hops = known[1:]
    # Products of matrices round by their shape, so pieces depend on the pairs and not on the number of cores.
    pieces = max(-(-out.shape[0] // PIECE), 2)

    of_features = whole[:, whole.shape[1] - len(FEATURE_STATISTICS) * parts.pair_features :]
    of_kinds = whole[:, out.shape[1] : whole.shape[1] - of_features.shape[1]]
    if parts.kinds:
        positions.kind_measures.prepare()
    measures = positions.feature_measures if parts.pair_features else None

    def piece(first: int, last: int) -> None:
        us, vs = np.ascontiguousarray(pairs[:, first:last])
        _fill(rows, us, vs, out[first:last, :split])
        if known is None:
            _fill_without_anchors(rows, us, vs, hops[first:last], out[first:last, split:])
        if parts.kinds:
            kind_statistics(positions, us, vs, of_kinds[first:last])
        if measures is not None:
            measures.statistics(us, vs, of_features[first:last])

    steps = out.shape[0] * 20.0 * (1 + positions.channels[0].size)
    parallel_rows(piece, out.shape[0], steps, parts=pieces)
    if known is None and positions.view.shared is not None:
        recent[:] = [*recent[-1:], (pairs, out[:, split:].copy(), hops)]
    _estimate_unknown(rows, pairs[0], pairs[1], hops, out)
    return whole


def _fill(rows: Rows, us: IntArray, vs: IntArray, out: Floats) -> None:
    """What is seen from the anchors."""
    parts, graph = rows.parts, rows.graph_of[us]
    counts = rows.counts[graph]
    place = 0
    if parts.hops:
        block = np.empty((us.size, HOP_STATISTICS), np.float32)
        hop_profiles(rows.hops, counts, us, vs, UNKNOWN_HOPS, block)
        out[:, :HOP_STATISTICS] = block
        place = HOP_STATISTICS
    first = 2 * parts.hops
    width = CHANNEL_STATISTICS * (len(parts.channels) - first)
    block = np.empty((us.size, width), np.float32)
    channel_profiles(rows.channels, first, counts, us, vs, block)
    out[:, place : place + width] = block
    place += width
    if parts.spectral:
        out[:, place:] = _spectral(rows, us, vs, graph)


def _fill_without_anchors(rows: Rows, us: IntArray, vs: IntArray, hops: Doubles, out: Floats) -> None:
    """What the nodes and the links around them say: the roles, then the local statistics; and the hops."""
    parts = rows.parts
    split = 3 * len(ROLES) * parts.roles
    if parts.roles:
        out[:, :split] = _roles(rows.roles[us], rows.roles[vs])
    if parts.local:
        out[:, split:] = _local(rows, us, vs, hops)


def _spectral(rows: Rows, us: IntArray, vs: IntArray, graph: IntArray) -> Floats:
    r"""Kernels :math:`\sum_j f(\lambda_j) u_j(x) u_j(y)` in the anchor-spectral basis: cosines, then signed logs."""
    values = rows.values  # [G, r]
    present = values != 0
    weights = [np.exp(-time * (1 - values)) * present for time in HEAT_TIMES]
    weights.append(present / (1.05 - np.minimum(values, 1)))
    leading = np.arange(values.shape[1])
    weights += [np.maximum(values, 0) ** 2 * (leading < r) for r in TRUNCATIONS]
    stacked = np.stack(weights, axis=2).astype(np.float32)  # [G, r, Q]
    a, b = rows.basis[us], rows.basis[vs]

    def kernel(product: Floats) -> Floats:
        if stacked.shape[0] == 1:
            return np.asarray(product @ stacked[0])
        return np.asarray(np.einsum("pr,prq->pq", product, stacked[graph]))

    cross, norms = kernel(a * b), np.sqrt(kernel(a * a) * kernel(b * b) + 1e-20)
    scaled = cross[:, :_LOGGED_KERNELS] * rows.sizes[graph, None]
    return np.concatenate([cross / norms, np.sign(scaled) * np.log1p(np.abs(scaled))], axis=1)


def _roles(a: Floats, b: Floats) -> Floats:
    return np.concatenate([a + b, np.abs(a - b), np.minimum(a, b)], axis=1)


def _local(rows: Rows, us: IntArray, vs: IntArray, hops: Doubles) -> Floats:
    """Common neighbours, short walks and hops of the pairs; the hops are also written to `hops`."""
    links, looks = (rows.starts, rows.ends, rows.neighbours), rows.parts.pair_looks
    walks = np.empty((us.size, 6))
    local_walks_within(*links, us, vs, looks, walks)
    pair_hops_within(*links, us, vs, FARTHEST, hops, NOTHING, looks // 2)
    linked, common, _, allocated, three, weighted = walks.T
    degrees = [rows.ends[nodes] - rows.starts[nodes] for nodes in (us, vs)]
    product = (degrees[0] + 1.0) * (degrees[1] + 1.0)
    total = degrees[0] + degrees[1] + 2.0
    columns = [
        linked, *np.log1p(walks[:, 1:5]).T, np.log(allocated + 1e-3), np.log(weighted + 1e-3),
        common / np.sqrt(product), common / (total - common), three / product,
        np.log(allocated / np.sqrt(product) + 1e-4), np.log(weighted / np.sqrt(product) + 1e-4),
        *_of_hops(hops),
    ]  # fmt: skip
    return np.stack(columns, axis=1).astype(np.float32)


def _of_hops(hops: Doubles) -> Doubles:
    """The columns that say how far apart the nodes are, ``[5, P]``."""
    far = np.where(hops < 0, FARTHEST + 1, hops)
    return np.stack([far, 1 / (1 + far), hops == 2, hops == 3, hops < 0])


def _estimated_hops(rows: Rows, us: IntArray, vs: IntArray, searched: Doubles) -> Doubles:
    """Hops between nodes that the search did not find to meet: halfway between the bounds, -1 beyond `FARTHEST`.

    They are farther apart than the search went, and than the difference of their hops to any anchor. The way over an
    anchor is no shorter. An anchor that reaches one of them alone shows that there is no way.
    """
    a, b = rows.hops[us].astype(np.float64), rows.hops[vs].astype(np.float64)
    reach_a, reach_b = a >= 0, b >= 0
    both = reach_a & reach_b
    lower = np.maximum(-1 - searched, np.where(both, np.abs(a - b), 0).max(axis=1, initial=0))
    upper = np.where(both, a + b, np.inf).min(axis=1, initial=np.inf)
    upper[~np.isfinite(upper)] = FARTHEST + 1
    hops = np.floor((lower + np.maximum(upper, lower)) / 2)
    hops[(hops > FARTHEST) | (reach_a != reach_b).any(axis=1)] = -1
    return np.asarray(hops)
