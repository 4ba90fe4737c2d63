"""What edges and nodes carry besides being there: direction, strength, length, time and side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError

if TYPE_CHECKING:
    from psgnn.graph._graph import Adjacency, Graph, IntArray

Numbers = npt.NDArray[np.float64]
PER_EDGE = ("strengths", "lengths", "times", "last_times")


@dataclass(frozen=True, eq=False)
class Arcs:
    """Directed edges as CSR with sorted rows: node ``u`` points to ``indices[indptr[u]:indptr[u + 1]]``.

    ``order [A]`` is the place of each entry in the list of edges that the arcs were made from.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    order: IntArray

    @classmethod
    def of(cls, sources: IntArray, targets: IntArray, num_nodes: int) -> Arcs:
        """Sort the edges by source, then by target."""
        order = np.lexsort((targets, sources))
        counts = np.bincount(sources, minlength=num_nodes)
        return cls(np.concatenate([[0], np.cumsum(counts)]), targets[order].astype(np.int32), order)

    @cached_property
    def degrees(self) -> IntArray:
        """Arcs of every node, ``[N]``."""
        return np.diff(self.indptr)

    @cached_property
    def _codes(self) -> IntArray:
        nodes = np.arange(self.indptr.size - 1)
        return np.asarray(np.repeat(nodes, self.degrees) * nodes.size + self.indices)

    def places(self, sources: IntArray, targets: IntArray) -> IntArray:
        """The places of arcs among the entries, -1 where there is no such arc."""
        wanted = sources * (self.indptr.size - 1) + targets
        if not self._codes.size:
            return np.full(wanted.size, -1)
        place = np.searchsorted(self._codes, wanted).clip(max=self._codes.size - 1)
        return np.where(self._codes[place] == wanted, place, -1)


@dataclass(frozen=True, eq=False)
class Kinds:
    """What a batch of graphs knows about its edges ``[2, E]`` and nodes; None where it knows nothing.

    ``edges`` are arcs (source, target) if ``directed``, otherwise every edge once with ``u < v``. ``strengths``,
    ``lengths``, ``times`` and ``last_times`` have a number per edge. Times are seconds since 1970, when the edge was
    first and last seen. ``sides [N]`` is 0 or 1, and -1 for nodes that are in no pair.
    """

    edges: IntArray
    num_nodes: int
    directed: bool = False
    strengths: Numbers | None = None
    lengths: Numbers | None = None
    times: Numbers | None = None
    last_times: Numbers | None = None
    sides: npt.NDArray[np.int8] | None = None
    side_names: tuple[str, str] = ("source", "target")

    @classmethod
    def of(cls, graphs: Sequence[Graph], ptr: IntArray) -> Kinds | None:
        """The kinds of graphs side by side, or None if all of them are plain."""
        kinds = {graph.kind for graph in graphs}
        if len(kinds) > 1:
            names = sorted(" and ".join(sorted(kind)) or "plain" for kind in kinds)
            raise InputError(
                f"graphs of different kinds are together ({', '.join(names)}); give graphs of one kind"
            )
        kind = next(iter(kinds))
        if not kind:
            return None

        def joined(name: str) -> npt.NDArray[np.float64] | None:
            columns = [getattr(graph, name) for graph in graphs]
            return None if columns[0] is None else np.concatenate(columns)

        edges = np.concatenate(
            [graph.edges + start for graph, start in zip(graphs, ptr, strict=False)], axis=1
        )
        sides = (
            None
            if graphs[0].sides is None
            else np.concatenate([np.asarray(g.sides, np.int8) for g in graphs])
        )
        columns = {name: joined(name) for name in PER_EDGE}
        return cls(
            edges, int(ptr[-1]), "directed" in kind, sides=sides, side_names=graphs[0].side_names, **columns
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the edges and nodes have: ``directed``, ``lengths``, ``sides``, ``strengths``, ``times``; sorted."""
        parts = {"directed": self.directed or None, "lengths": self.lengths, "sides": self.sides}
        parts |= {"strengths": self.strengths, "times": self.times}
        return tuple(name for name, part in parts.items() if part is not None)

    def keep(self, which: npt.NDArray[np.bool_] | IntArray) -> Kinds:
        """The same with these edges alone, by a mask or by their places, in that order."""
        kept: dict[str, Any] = {name: getattr(self, name) for name in PER_EDGE}
        kept = {name: None if column is None else column[which] for name, column in kept.items()}
        return replace(self, edges=self.edges[:, which], **kept)

    def only(self, nodes: npt.NDArray[np.bool_]) -> Kinds:
        """The same of some nodes alone, a mask ``[N]`` of whole components, which are numbered anew."""
        kept = self.keep(nodes[self.edges[0]])
        number = np.cumsum(nodes) - 1
        sides = None if self.sides is None else self.sides[nodes]
        return replace(kept, edges=number[kept.edges], num_nodes=int(nodes.sum()), sides=sides)

    @cached_property
    def outgoing(self) -> Arcs:
        """From every node along its edges; of an undirected graph both directions."""
        sources, targets = self._both
        return Arcs.of(sources, targets, self.num_nodes)

    @cached_property
    def incoming(self) -> Arcs:
        """From every node against its edges; of an undirected graph both directions."""
        sources, targets = self._both
        return Arcs.of(targets, sources, self.num_nodes)

    @property
    def _both(self) -> IntArray:
        return self.edges if self.directed else np.concatenate([self.edges, self.edges[::-1]], axis=1)

    def along(self, column: Numbers, arcs: Arcs) -> Numbers:
        """A number per edge, in the order of the entries of `outgoing` or `incoming`."""
        return np.asarray(column[arcs.order % self.edges.shape[1]])

    def of_adjacency(self, column: Numbers, adjacency: Adjacency) -> Numbers:
        """A number per edge, ``[2E]`` in the order of ``adjacency.indices``; two opposite arcs add up."""
        sources, targets = np.concatenate([self.edges, self.edges[::-1]], axis=1)
        places = np.concatenate([np.arange(self.edges.shape[1])] * 2)
        # Every row of the adjacency is sorted, so the codes of its entries are.
        codes = adjacency.rows.astype(np.int64) * self.num_nodes + adjacency.indices
        out = np.zeros(codes.size)
        np.add.at(out, np.searchsorted(codes, sources * self.num_nodes + targets), column[places])
        return out


def merged_graph(
    ends: IntArray,
    num_nodes: int,
    *,
    directed: bool,
    strengths: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    **fields: Any,
) -> Graph:
    """Build a graph from links ``[2, L]`` that may be there several times; self-loops are dropped.

    The strengths of parallel links add up, the shortest length counts, and the first and last time are kept.
    """
    from psgnn.graph._graph import Adjacency, Graph

    keep = ends[0] != ends[1]
    sources, targets = ends[:, keep] if directed else np.sort(ends[:, keep], axis=0)
    codes, which = np.unique(sources * num_nodes + targets, return_inverse=True)
    links = np.stack(np.divmod(codes, num_nodes))

    def merge(values: npt.ArrayLike, by: np.ufunc, start: float) -> Numbers:
        found = np.full(codes.size, start)
        by.at(found, which, np.asarray(values, np.float64)[keep])
        return found

    if strengths is not None:
        fields["strengths"] = merge(strengths, np.add, 0.0)
    if lengths is not None:
        fields["lengths"] = merge(lengths, np.minimum, np.inf)
    if times is not None:
        fields["times"] = merge(times, np.minimum, np.inf)
        fields["last_times"] = merge(times, np.maximum, -np.inf)
    adjacency = Adjacency.from_edges(links[0], links[1], num_nodes)
    return Graph(adjacency, arcs=links if directed else None, **fields)
