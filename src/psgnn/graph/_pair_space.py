"""Which pairs of nodes can be linked: any two, ordered ones, or one from each side.

A *pair space* numbers the pairs of a batch graph by graph, as a `psgnn.graph._sampling.Pool` does, and finds the number
of a pair. It also says how a pair is written (`oriented`), so that the same link always looks the same:
``u < v`` in undirected graphs, source and target in directed ones.

`KnownLinks` are the links of a batch that are pairs of its space, and the graphs without some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._kinds import Kinds, Numbers
from psgnn.graph._sampling import NonEdges, WithinBlocks, block_of, running_total
from psgnn.kernels._csr import edges_below, mirror

Mask = npt.NDArray[np.bool_]


class PairSpace(Protocol):
    """The numbered pairs of a batch of graphs; pairs are int64 ``[2, P]`` in ids of the batch."""

    @property
    def ordered(self) -> bool:
        """Whether the order of its nodes is part of a pair."""

    @property
    def plain(self) -> bool:
        """Whether any two nodes of a graph are a pair, in no order."""

    @property
    def sizes(self) -> IntArray:
        """Pairs of every graph, ``[G]``."""

    @property
    def starts(self) -> IntArray:
        """Rank of the first pair of every graph and, last, their number, ``[G + 1]``."""

    def rank(self, pairs: IntArray) -> IntArray:
        """The ranks ``[P]`` of pairs of the space, as `oriented` writes them."""

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""

    def oriented(self, pairs: IntArray) -> IntArray:
        """The same pairs, each in the order in which the space writes it."""

    def holds(self, pairs: IntArray) -> Mask:
        """Which pairs of nodes of one graph are pairs of the space, ``[P]``."""

    def questions(self, links: IntArray) -> IntArray:
        """The node that asks and its partner, ``[2, Q]``, of links ``[2, P]``; both ends ask where they are alike."""

    def partners(self, node: int) -> IntArray:
        """The nodes that a node is the first of a question with, sorted: all it may be linked to."""


class Unordered(WithinBlocks):
    """Any two different nodes of a graph, written ``u < v``."""

    ordered, plain = False, True

    def oriented(self, pairs: IntArray) -> IntArray:
        """The smaller id first."""
        return np.sort(pairs, axis=0)

    def holds(self, pairs: IntArray) -> Mask:
        """All but a node with itself."""
        return np.asarray(pairs[0] != pairs[1])

    def questions(self, links: IntArray) -> IntArray:
        """Each end asks for the other."""
        return np.concatenate([links, links[::-1]], axis=1)

    def partners(self, node: int) -> IntArray:
        """All other nodes of the graph."""
        return _others(self.ptr, node)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Source and target, any two different nodes of a graph; sorted by ``(graph, source, target)``."""

    ptr: IntArray
    ordered, plain = True, False

    @cached_property
    def sizes(self) -> IntArray:
        """Pairs of every graph, ``[G]``."""
        nodes: IntArray = np.diff(self.ptr)
        return nodes * (nodes - 1)

    @cached_property
    def starts(self) -> IntArray:
        """Rank of the first pair of every graph and, last, their number, ``[G + 1]``."""
        return running_total(self.sizes)

    def rank(self, pairs: IntArray) -> IntArray:
        """The ranks ``[P]`` of pairs of different nodes."""
        graph = block_of(self.ptr, pairs[0])
        sources, targets = pairs - self.ptr[graph]
        width = np.diff(self.ptr)[graph] - 1
        ranks: IntArray = self.starts[graph] + sources * width + targets - (targets > sources)
        return ranks

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        graph = block_of(self.starts, ranks)
        sources, targets = np.divmod(ranks - self.starts[graph], np.diff(self.ptr)[graph] - 1)
        return np.stack([sources, targets + (targets >= sources)]) + self.ptr[graph]

    def oriented(self, pairs: IntArray) -> IntArray:
        """As they are: the order is part of the pair."""
        return pairs

    def holds(self, pairs: IntArray) -> Mask:
        """All but a node with itself."""
        return np.asarray(pairs[0] != pairs[1])

    def questions(self, links: IntArray) -> IntArray:
        """The source asks for the target."""
        return links

    def partners(self, node: int) -> IntArray:
        """All other nodes of the graph, as targets."""
        return _others(self.ptr, node)


@dataclass(frozen=True, eq=False)
class TwoSided:
    """A node of side 0 and one of side 1, sorted by ``(graph, node of side 0, node of side 1)``.

    ``sides [N]`` is -1 for nodes that are in no pair. In a directed graph the node of side 0 is the source; in an
    undirected one pairs are written ``u < v``.
    """

    ptr: IntArray
    sides: npt.NDArray[np.int8]
    ordered: bool = False
    plain = False

    @cached_property
    def _nodes(self) -> tuple[IntArray, IntArray]:
        """The nodes of the two sides, sorted."""
        return np.flatnonzero(self.sides == 0), np.flatnonzero(self.sides == 1)

    @cached_property
    def _bounds(self) -> IntArray:
        """Where the nodes of every graph begin among those of each side, ``[2, G + 1]``."""
        return np.stack([np.searchsorted(nodes, self.ptr) for nodes in self._nodes])

    @cached_property
    def _place(self) -> IntArray:
        """The place of every node among those of its side in all graphs, ``[N]``."""
        place = np.full(self.sides.size, -1, np.int64)
        for nodes in self._nodes:
            place[nodes] = np.arange(nodes.size)
        return place

    @cached_property
    def sizes(self) -> IntArray:
        """Pairs of every graph, ``[G]``."""
        first, second = np.diff(self._bounds, axis=1)
        return np.asarray(first * second)

    @cached_property
    def starts(self) -> IntArray:
        """Rank of the first pair of every graph and, last, their number, ``[G + 1]``."""
        return running_total(self.sizes)

    def rank(self, pairs: IntArray) -> IntArray:
        """The ranks ``[P]`` of pairs of the space, in either order."""
        swapped = self.sides[pairs[0]] == 1
        first, second = self._place[np.where(swapped, pairs[::-1], pairs)]
        graph = block_of(self.ptr, pairs[0])
        width = np.diff(self._bounds[1])[graph]
        ranks: IntArray = (first - self._bounds[0][graph]) * width + second - self._bounds[1][graph]
        return ranks + self.starts[graph]

    def unrank(self, ranks: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of these ranks."""
        graph = block_of(self.starts, ranks)
        first, second = np.divmod(ranks - self.starts[graph], np.maximum(np.diff(self._bounds[1])[graph], 1))
        pairs = np.stack(
            [self._nodes[0][first + self._bounds[0][graph]], self._nodes[1][second + self._bounds[1][graph]]]
        )
        return self.oriented(pairs)

    def oriented(self, pairs: IntArray) -> IntArray:
        """The node of side 0 first in a directed graph, the smaller id in an undirected one."""
        return pairs if self.ordered else np.sort(pairs, axis=0)

    def holds(self, pairs: IntArray) -> Mask:
        """Those with a node from each side, from side 0 to side 1 where the graph is directed."""
        first, second = self.sides[pairs]
        forward = (first == 0) & (second == 1)
        return np.asarray(forward if self.ordered else forward | ((first == 1) & (second == 0)))

    def questions(self, links: IntArray) -> IntArray:
        """The node of side 0 asks for that of side 1."""
        return np.where(self.sides[links[0]] == 0, links, links[::-1])

    def partners(self, node: int) -> IntArray:
        """The nodes of side 1 for a node of side 0; none for the others, who are not asked."""
        if self.sides[node] != 0:
            return np.empty(0, np.int64)
        graph = int(np.searchsorted(self.ptr, node, side="right")) - 1
        return self._nodes[1][self._bounds[1][graph] : self._bounds[1][graph + 1]]


def pair_space(batch: GraphBatch) -> PairSpace:
    """The pairs that links of the batch can be."""
    kinds = batch.kinds
    if kinds is not None and kinds.sides is not None:
        return TwoSided(batch.ptr, kinds.sides, kinds.directed)
    return Ordered(batch.ptr) if kinds is not None and kinds.directed else Unordered(batch.ptr)


def links_of(batch: GraphBatch, space: PairSpace | None = None) -> IntArray:
    """The links of the batch that are pairs of its space, ``[2, E]``; links inside a side are left out."""
    edges: IntArray = batch.adjacency.edges() if batch.kinds is None else batch.kinds.edges
    space = space or pair_space(batch)
    return edges if space.plain else np.asarray(edges[:, space.holds(edges)])


def unlinked_pairs(batch: GraphBatch, *links: IntArray) -> NonEdges:
    """The pairs that are not links of the batch, nor any of these further ones ``[2, P]``."""
    space = pair_space(batch)
    known = links_of(batch, space)
    if links:
        ranks = [space.rank(space.oriented(part)) for part in (known, *links)]
        known = space.unrank(np.unique(np.concatenate(ranks)))
    return NonEdges(space, known)


def asked(space: PairSpace, pairs: IntArray) -> IntArray:
    """Pairs ``[2, P]`` with the node that asks first; where both do, as they are."""
    return pairs if space.plain else space.questions(pairs)


def rivals_of(
    space: PairSpace, graph_of: IntArray, links: IntArray, others: IntArray, taken: IntArray
) -> IntArray:
    """For each link ``[2, L]`` an unlinked pair with the same first node; both nodes in the order of a question.

    The second node is that of a pair of `others` ``[2, L]``. That pair itself is the rival where the new one would be
    one of the sorted ranks `taken`, or no pair of one graph.
    """
    first, found = asked(space, links)[0], np.empty_like(links)
    # Graph by graph, so that most nodes meet one of their own graph.
    order, theirs = (np.argsort(graph_of[nodes], kind="stable") for nodes in (first, others[0]))
    found[:, order] = asked(space, others)[:, theirs]
    changed = np.stack([first, found[1]])
    fits = (changed[0] != changed[1]) & (graph_of[changed[0]] == graph_of[changed[1]])
    changed = np.where(fits, changed, found)
    ranks = space.rank(space.oriented(changed))
    known = taken[np.searchsorted(taken, ranks).clip(max=taken.size - 1)] == ranks
    return np.where(known, found, changed)


def _others(ptr: IntArray, node: int) -> IntArray:
    graph = int(np.searchsorted(ptr, node, side="right")) - 1
    nodes = np.arange(ptr[graph], ptr[graph + 1])
    return np.asarray(nodes[nodes != node])


class KnownLinks:
    """The links of a batch that are pairs of its space, ``pairs [2, E]``, sorted by rank; ``counts [G]`` per graph.

    What is not a pair, such as a link inside a side, belongs to the structure: it is seen, and never asked about.
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
        """The graphs with these links alone, sorted by rank, and with what is not a pair.

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
