"""The links of a batch that are pairs of its space, and the graphs without some of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._kinds import Kinds, Numbers
from psgnn.graph._pair_space import pair_space
from psgnn.graph._sampling import running_total
from psgnn.kernels._csr import edges_below, mirror


class KnownLinks:
    """The links of a batch that are pairs of its space, ``pairs [2, E]``, sorted by rank; ``counts [G]`` per graph.

    What is no pair, such as a link inside a side, belongs to the structure: it is seen, and never asked about.
    """

    def __init__(self, full: GraphBatch) -> None:
        self.full, self.space = full, pair_space(full)
        if full.kinds is None:
            self.pairs = sorted_edges(full.adjacency)
        else:
            inside = np.flatnonzero(self.space.holds(full.kinds.edges))
            ranks = self.space.rank(full.kinds.edges[:, inside])
            order = np.argsort(ranks)
            self._ranks, self._places = ranks[order], inside[order]
            self.pairs = full.kinds.edges[:, self._places]
        self.counts = np.bincount(full.graph_of[self.pairs[0]], minlength=full.num_graphs)

    @property
    def times(self) -> Numbers | None:
        """When each of the links was first seen, ``[E]``."""
        kinds = self.full.kinds
        return None if kinds is None or kinds.times is None else kinds.times[self._places]

    def window(self, links: IntArray, seen: float) -> tuple[IntArray, IntArray, Numbers]:
        """Of links ``[2, L]`` the oldest share `seen` of each graph, those that came next, and the last moment seen.

        A quarter as many come next as are seen, as validation and test come after training. The moments are ``[G]``.
        """
        kinds, graph = self.full.kinds, self.full.graph_of[links[0]]
        assert kinds is not None
        assert kinds.times is not None
        times = kinds.times[self._places[np.searchsorted(self._ranks, self.space.rank(links))]]
        order = np.lexsort((times, graph))
        counts = np.bincount(graph, minlength=self.full.num_graphs)
        place = np.empty(times.size, np.int64)
        place[order] = np.arange(times.size) - running_total(counts)[graph[order]]
        cut = np.maximum(np.rint(seen * counts), 1)
        shown = place < cut[graph]
        asked = ~shown & (place < np.ceil(1.25 * cut)[graph])
        until = np.full(counts.size, -np.inf)
        np.maximum.at(until, graph[shown], times[shown])
        return links[:, shown], links[:, asked], until

    def visible(self, shown: IntArray, until: Numbers | None = None) -> GraphBatch:
        """The graphs with these links alone, sorted by rank, and with what is no pair.

        ``until [G]`` is the last moment of each graph that is seen.
        """
        kinds = self.full.kinds
        if kinds is None:
            return union_of_edges(shown, self.full.ptr)
        keep = np.ones(kinds.edges.shape[1], bool)
        keep[self._places] = False
        keep[self._places[np.searchsorted(self._ranks, self.space.rank(shown))]] = True
        if until is not None:
            assert kinds.times is not None
            last = until[self.full.graph_of[kinds.edges[0]]]
            keep &= kinds.times <= last
            kinds = _as_of(kinds, last)
        kept = kinds.keep(keep)
        adjacency = Adjacency.from_edges(kept.edges[0], kept.edges[1], self.full.num_nodes)
        return GraphBatch(adjacency, self.full.ptr, kept)


def _as_of(kinds: Kinds, last: Numbers) -> Kinds:
    """Forget what edges got after the last moment that is seen, ``[E]``.

    How much of its strength an edge had by then is not known if it was seen again later. Such an edge has the
    smallest strength, or strengths would tell which nodes are active in the future.
    """
    if kinds.last_times is None or kinds.times is None:
        return kinds
    again = kinds.last_times > last
    strengths = kinds.strengths
    if strengths is not None and again.any():
        strengths = np.where(again, strengths.min(), strengths)
    return replace(kinds, last_times=np.where(again, kinds.times, kinds.last_times), strengths=strengths)


def sorted_edges(adjacency: Adjacency) -> IntArray:
    """Every edge once as ``[2, E]`` with ``u < v``, sorted by ``(v, u)``: in the order in which pairs are ranked."""
    edges: IntArray = edges_below(adjacency.indptr, adjacency.indices)
    return edges


def union_of_edges(edges: IntArray, ptr: IntArray) -> GraphBatch:
    """The union of graphs from edges ``u < v`` that are sorted by ``(v, u)``: the rows of half a CSR."""
    u, v = edges
    half = running_total(np.bincount(v, minlength=int(ptr[-1]))), u.astype(np.int32)
    return GraphBatch(Adjacency(*mirror(*half)), ptr)
