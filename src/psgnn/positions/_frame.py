"""Kept coordinates: the same anchors, scales and axes on a graph that has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from psgnn.distances._oracle import DistanceOracle
from psgnn.distances._propagation import Floats
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.graph._sampling import pair_code
from psgnn.positions._measure import HEATS, Parts, Positions, positions_of
from psgnn.positions._spectral import ITERATIONS, STEPS
from psgnn.positions._view import View

LEAST_COMMON_LINKS = (
    0.1  # of those between common nodes; with fewer it is another graph that happens to use the names
)
SIZE, SHARE = 5, 6  # the roles that are about a node's component
BLOCK = 2**14  # nodes


@dataclass(frozen=True, eq=False)
class Match:
    """Which nodes of new graphs are nodes of old ones: ``old [N]`` is the old id of each new node, -1 if it is new."""

    before: GraphBatch
    after: GraphBatch
    old: IntArray

    @cached_property
    def new(self) -> IntArray:
        """The new id of each old node, -1 if it is gone."""
        found = np.full(self.before.num_nodes, -1, np.int64)
        common = np.flatnonzero(self.old >= 0)
        found[self.old[common]] = common
        return found

    @cached_property
    def changed(self) -> npt.NDArray[np.bool_]:
        """The new nodes, and those whose links changed, a mask ``[N]``."""
        mask = self.old < 0
        came = self._unknown(self.after.adjacency.edges(), self.old, self.before)
        went = self._unknown(self.before.adjacency.edges(), self.new, self.after)
        mask[came.ravel()] = True
        ends = self.new[went.ravel()]
        mask[ends[ends >= 0]] = True
        return mask

    @property
    def same_links(self) -> float:
        """The share of the old links between common nodes that are still there; 1 if there were none."""
        edges = self.before.adjacency.edges()
        edges = edges[:, (self.new[edges] >= 0).all(axis=0)]
        return 1 - int(self._unknown(edges, self.new, self.after).shape[1]) / max(int(edges.shape[1]), 1)

    @staticmethod
    def _unknown(edges: IntArray, ids: IntArray, other: GraphBatch) -> IntArray:
        """Those of the links ``[2, E]`` that the other graphs, in which nodes have these ids, do not have."""
        there = np.sort(ids[edges], axis=0)
        known = (there[0] >= 0) & np.isin(pair_code(there), pair_code(other.adjacency.edges()))
        return edges[:, ~known]

    def carry(self, anchors: IntArray) -> tuple[IntArray, dict[int, int]]:
        """Old anchors ``[G, K]`` as new ids, and for each that is gone the old id of the node that replaces it.

        That is the nearest node in the old graph that is still there and no anchor; of equals, the one with most links.
        """
        carried = np.where(anchors >= 0, self.new[anchors], -1)
        replaced: dict[int, int] = {}
        lost = (anchors >= 0) & (carried < 0)
        taken = np.zeros(self.after.num_nodes, np.bool_)
        taken[carried[carried >= 0]] = True
        oracle = DistanceOracle(self.before)
        for g, place in np.argwhere(lost).tolist():
            table = np.full((self.before.num_graphs, 1), -1, np.int64)
            table[g] = anchors[g, place]
            hops = oracle.hops(table)[:, 0]
            here = np.flatnonzero((self.new >= 0) & (self.before.graph_of == g))
            free = here[~taken[self.new[here]]]
            some = free if free.size else here  # a graph that shrank has an anchor twice
            far = np.where(hops[some] >= 0, hops[some].astype(np.int64), np.iinfo(np.int64).max)
            best = int(some[np.lexsort((-self.before.adjacency.degrees[some], far))[0]])
            carried[g, place] = self.new[best]
            taken[self.new[best]] = True
            replaced[int(anchors[g, place])] = best
        return carried, replaced


def match_graphs(
    before: GraphBatch, old_names: Sequence[Sequence[str]], after: GraphBatch, names: Sequence[Sequence[str]]
) -> Match | str:
    """Match the nodes of new graphs to those of as many old ones by name, or say why they are other graphs."""
    if before.num_graphs != after.num_graphs:
        return f"there are {after.num_graphs} graphs, and the run has {before.num_graphs}"
    old = np.full(after.num_nodes, -1, np.int64)
    for g, (known, asked) in enumerate(zip(old_names, names, strict=True)):
        place = {name: int(before.ptr[g]) + v for v, name in enumerate(known)}
        found = np.array([place.get(name, -1) for name in asked], np.int64)
        if (found < 0).all():
            return "no node has a name of the run's graph"
        old[after.ptr[g] : after.ptr[g + 1]] = found
    match = Match(before, after, old)
    if match.same_links < LEAST_COMMON_LINKS:
        return "the names are those of the run's graph, but hardly any link is"
    return match


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates that a view keeps: those of an old view, seen from its anchors ``nodes [G, K]``."""

    view: View
    nodes: IntArray
    match: Match

    def positions(self, parts: Parts) -> Positions:
        """The old positions."""
        return positions_of(self.view, self.nodes, parts)

    def over(self, union: GraphBatch) -> Frame:
        """The frame of the same new nodes with other links."""
        return replace(self, match=replace(self.match, after=union))

    def keep_component_sizes(self, roles: Floats) -> Floats:
        """The roles ``[N, 10]`` with the sizes of components as they were in the old graphs.

        Otherwise the whole graph would move with every node that comes. A component is the old one with which it has
        the most nodes in common. One of new nodes alone has its own size.
        """
        before, after, old = self.match.before, self.match.after, self.match.old
        parts, known = after.adjacency.components, before.adjacency.components
        sizes = np.bincount(parts)
        common = np.flatnonzero(old >= 0)
        codes, counts = np.unique(
            parts[common].astype(np.int64) * before.num_nodes + known[old[common]], return_counts=True
        )
        order = np.argsort(counts, kind="stable")  # the largest comes last and counts
        sizes[codes[order] // before.num_nodes] = np.bincount(known)[codes[order] % before.num_nodes]
        kept = roles.copy()
        kept[:, SIZE] = np.log(sizes[parts])
        kept[:, SHARE] = np.minimum(sizes[parts] / before.sizes[after.graph_of], 1)
        return kept

    @cached_property
    def unmoved(self) -> npt.NDArray[np.bool_]:
        """Nodes that are too far from any change for it to reach their rows of the spectral basis, a mask ``[N]``."""
        (changed,) = np.nonzero(self.match.changed)
        if not changed.size:
            return np.ones(self.match.old.size, np.bool_)
        ends = np.array([0, changed.size])
        hops, _ = DistanceOracle(self.match.after).nearest(changed, ends, ITERATIONS * STEPS)
        return np.asarray(hops[:, 0] < 0)


def heated_rows(positions: Positions, nodes: IntArray) -> list[Floats]:
    """Unit vectors along the smoothed spectral rows of some nodes, one ``[n, r]`` for each time of heat."""
    rows, values = positions.basis[nodes], positions.values[positions.view.union.graph_of[nodes]]
    found = []
    for time in HEATS:
        place = rows * (np.exp(-time / 2 * (1 - values)) * (values != 0)).astype(np.float32)
        found.append(place / np.maximum(np.linalg.norm(place, axis=1, keepdims=True), 1e-12))
    return found


def aligned_rows(positions: Positions, nodes: IntArray) -> list[Floats]:
    """`heated_rows` in the axes of the view's frame: turned, and the old ones where nothing has changed."""
    frame: Frame | None = positions.view.frame
    rows = heated_rows(positions, nodes)
    if frame is None:
        return rows
    graph = positions.view.union.graph_of[nodes]
    turns = _turns(positions, frame)
    for time in range(len(HEATS)):
        for g in np.unique(graph):
            rows[time][graph == g] = rows[time][graph == g] @ turns[time, g]
    same = frame.unmoved[nodes]
    old = heated_rows(frame.positions(positions.parts), frame.match.old[nodes[same]])
    for time, kept in enumerate(old):
        rows[time][same] = kept
    return rows


def _turns(positions: Positions, frame: Frame) -> Floats:
    """The rotations ``[T, G, r, r]`` that bring common nodes nearest to their old rows, kept with the view.

    Eigenvectors of another graph have signs and rotations of their own (orthogonal Procrustes). Distances stay.
    """
    view = positions.view
    if view.turns is None or view.turns[0] is not positions:
        old, width = frame.positions(positions.parts), positions.basis.shape[1]
        products = np.zeros((len(HEATS), view.union.num_graphs, width, width))
        for g in range(view.union.num_graphs):
            nodes = np.arange(view.union.ptr[g], view.union.ptr[g + 1])
            common = nodes[frame.match.old[nodes] >= 0]
            for start in range(0, common.size, BLOCK):
                some = common[start : start + BLOCK]
                pairs = zip(
                    heated_rows(positions, some), heated_rows(old, frame.match.old[some]), strict=True
                )
                for time, (ours, theirs) in enumerate(pairs):
                    products[time, g] += ours.T.astype(np.float64) @ theirs
        left, _, right = np.linalg.svd(products)
        view.turns = positions, (left @ right).astype(np.float32)
    found: Floats = view.turns[1]
    return found
