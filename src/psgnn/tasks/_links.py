"""The links that a link task asks about, and the graphs without some of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, Graph, GraphBatch, IntArray, to_numpy
from psgnn.graph._kinds import Kinds, Numbers
from psgnn.graph._pair_space import PairSpace, TwoSided, pair_space
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


def countable(graph: Graph) -> tuple[int, int]:
    """How many links and how many pairs of nodes a task can ask about."""
    n = graph.num_nodes
    if graph.sides is None:
        return graph.num_edges, n * (n - 1) // (1 if graph.directed else 2)
    space = TwoSided(np.array([0, n]), np.asarray(graph.sides), graph.directed)
    return int(space.holds(graph.edges).sum()), int(space.sizes[0])


def sorted_edges(adjacency: Adjacency) -> IntArray:
    """Every edge once as ``[2, E]`` with ``u < v``, sorted by ``(v, u)``: in the order in which pairs are ranked."""
    edges: IntArray = edges_below(adjacency.indptr, adjacency.indices)
    return edges


def union_of_edges(edges: IntArray, ptr: IntArray) -> GraphBatch:
    """The union of graphs from edges ``u < v`` that are sorted by ``(v, u)``: the rows of half a CSR."""
    u, v = edges
    half = running_total(np.bincount(v, minlength=int(ptr[-1]))), u.astype(np.int32)
    return GraphBatch(Adjacency(*mirror(*half)), ptr)


def given_pairs(
    parts: Mapping[str, npt.ArrayLike], links: IntArray, space: PairSpace, num_nodes: int
) -> dict[str, IntArray]:
    """The pairs of a given split by name, sorted by rank, once every pair is found to stand there once.

    ``links [2, E]`` are those of the graph.
    """
    ranks = {name: np.sort(space.rank(_pairs(name, part, space, num_nodes))) for name, part in parts.items()}
    everything = np.concatenate([*ranks.values(), space.rank(links)])
    source = np.repeat(np.arange(len(parts) + 1), [*map(len, ranks.values()), links.shape[1]])
    order = np.argsort(everything, kind="stable")
    twice = np.flatnonzero(np.diff(everything[order]) == 0)
    if twice.size:
        first, second = source[order[twice[0] : twice[0] + 2]]
        names = (*parts, "the training edges")
        u, v = space.unrank(everything[order[twice[:1]]])[:, 0]
        where = f"twice in {names[first]}" if first == second else f"in {names[first]} and {names[second]}"
        raise InputError(f"the pair ({u}, {v}) is {where}; every pair may stand in one place only, once")
    return {name: space.unrank(rank) for name, rank in ranks.items()}


def _pairs(name: str, values: Any, space: PairSpace, num_nodes: int) -> IntArray:
    """The pairs of one part of a split, ``[2, P]``, as the space writes them."""
    pairs = to_numpy(values)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or not pairs.size or pairs.dtype.kind not in "iu":
        raise InputError(f"{name} must be integers of shape [2, P], found {pairs.dtype} {list(pairs.shape)}")
    wrong = np.flatnonzero(
        (pairs.min(axis=0) < 0) | (pairs.max(axis=0) >= num_nodes) | (pairs[0] == pairs[1])
    )
    if wrong.size:
        u, v = pairs[:, wrong[0]]
        raise InputError(
            f"{name} has ({u}, {v}) at place {wrong[0]}, which are not two nodes of 0..{num_nodes - 1}"
        )
    pairs = space.oriented(pairs.astype(np.int64))
    outside = np.flatnonzero(~space.holds(pairs))
    if outside.size:
        u, v = pairs[:, outside[0]]
        raise InputError(
            f"{name} has ({u}, {v}) at place {outside[0]}, which is not a pair of the two sides; "
            "give a node from each"
        )
    return pairs
