"""Columns of exact shortest path lengths, for graphs whose edges have lengths."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, IntArray, to_numpy
from psgnn.kernels._compile import parallel_rows
from psgnn.kernels._lengths import arcs_of, breadth_first_order, eliminate, fill_lengths

Lengths = npt.NDArray[np.float32]  # -1 = unreachable or beyond the cutoff

_FLOAT32 = np.finfo(np.float32)
BUCKETS_PER_ARC = 4  # measured on roads: with more of them, nodes are hardly ever taken twice
MOST_BUCKETS = 2**14  # as a heap is faster than a look at many empty buckets
SAMPLE = 4096  # arcs whose median is the usual length
STEPS_PER_ARC = 16  # an arc of a search takes as long as this many simple steps


class LengthSearch:
    """Shortest path lengths on one graph, prepared once for any number of searches.

    Lengths are added in float64 and given as float32. Nodes of one or two neighbours are left out of the searches,
    which changes the order of the additions. So a length may differ from that of another program in the last bit
    of a float32, but not if the lengths of edges are integers or other multiples of a power of two. Directed graphs
    are searched as they are, from the sources along the edges.

    Args:
        adjacency: The graph, direction and length of its edges ignored.
        edges: Its edges, ``[2, E]``, in any order; of parallel edges the shortest counts.
        lengths: ``[E]``, checked by `check_lengths`.
        directed: Whether an edge leads from its first node to its second only.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        edges: IntArray,
        lengths: npt.NDArray[np.float64],
        *,
        directed: bool = False,
    ) -> None:
        # Neighbours get numbers near each other, so that their memory is near too.
        order = breadth_first_order(adjacency.indptr, adjacency.indices)
        rank = _inverse(order)
        *graph, opposite = arcs_of(rank[edges[0]], rank[edges[1]], lengths, order.size, directed)
        self._eliminated = 0
        if not directed:
            places, self._eliminated, *graph = eliminate(*graph, opposite)
            order, rank = order[places], _inverse(places)[rank]
        self._order, self._rank, self._graph = order, rank, tuple(graph)
        self._step, self._num_buckets = self._buckets()

    def columns(
        self, nodes: IntArray, starts: IntArray | None = None, *, cutoff: float | None = None
    ) -> Lengths:
        """Lengths from the nearest node of each set to every node, float32 ``[N, L]``.

        Set ``j`` is ``nodes[starts[j]:starts[j + 1]]``; without `starts`, every node is a set of its own.
        """
        starts = np.arange(nodes.size + 1) if starts is None else starts
        out = np.empty((self._order.size, starts.size - 1), np.float32)
        most = float(_FLOAT32.max) if cutoff is None else check_cutoff(cutoff)
        arguments = self._rank[nodes], starts, most, self._step, self._num_buckets

        def block(first: int, last: int) -> None:
            fill_lengths(self._order, self._eliminated, *self._graph, *arguments, first, last, out)

        parallel_rows(block, out.shape[1], STEPS_PER_ARC * self._graph[1].size * out.shape[1])
        return out

    def _buckets(self) -> tuple[float, int]:
        """The length of a step and the number of buckets; no buckets where some arcs are much too long for them."""
        indptr, _, arcs = self._graph
        core = arcs[indptr[self._eliminated] :]
        usual = core if core.size else arcs
        if usual.size == 0:
            return 1.0, 0
        step = float(np.median(usual[:: usual.size // SAMPLE + 1])) / BUCKETS_PER_ARC
        needed = float(arcs.max()) / step + 2
        return step, 0 if needed > MOST_BUCKETS else 1 << int(needed).bit_length()


def _inverse(order: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The place of every node in the order."""
    places = np.empty_like(order)
    places[order] = np.arange(order.size, dtype=np.int32)
    return places


def check_lengths(
    lengths: npt.ArrayLike, edges: IntArray, names: Sequence[str] | None = None
) -> npt.NDArray[np.float64]:
    """The lengths as float64 ``[E]``, or an error that names the first edge whose length is none."""
    found = to_numpy(lengths)
    if found.shape != (edges.shape[1],) or (found.size and found.dtype.kind not in "fiu"):
        raise InputError(
            f"lengths must be numbers of shape [{edges.shape[1]}], one per edge, "
            f"found {found.dtype} of shape {list(found.shape)}"
        )
    found = np.ascontiguousarray(found, np.float64)
    wrong = np.flatnonzero(~((found >= _FLOAT32.tiny) & (found <= _FLOAT32.max)))
    if wrong.size:
        u, v = edges[:, wrong[0]].tolist()
        ends = f"{u} - {v}" if names is None else f"'{names[u]}' - '{names[v]}'"
        raise InputError(
            f"edge {ends} has the length {found[wrong[0]]:g}; lengths must be positive and finite, "
            f"{_FLOAT32.tiny:.2g} to {_FLOAT32.max:.2g}"
        )
    if found.sum() > _FLOAT32.max:
        raise InputError(
            f"the lengths add up to more than the {_FLOAT32.max:.2g} that float32 holds; use a larger unit"
        )
    return found


def check_cutoff(cutoff: Any) -> float:
    """The longest length that is asked for, as a float32 holds it."""
    if not isinstance(cutoff, Real) or not float(cutoff) >= 0:
        raise InputError(f"cutoff={cutoff!r} is not a length of 0 or more")
    return min(float(cutoff), float(_FLOAT32.max))
