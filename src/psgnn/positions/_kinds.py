"""What two positions say in graphs that have more than plain edges: directions, sides, strengths, lengths or times.

A *lens* weighs the links of the graph: every link the same, by its strength, by the inverse of its length, or by how
recent it is. Through each lens pairs are seen as walks of two and three steps and as activity of the two nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from psgnn.distances._engine import arc_columns
from psgnn.distances._lengths import LengthSearch
from psgnn.distances._oracle import DistanceOracle
from psgnn.distances._propagation import Floats, arc_pagerank
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.graph._kinds import Kinds, Numbers
from psgnn.kernels._profiles import CHANNEL_STATISTICS, HOP_STATISTICS, channel_profiles, hop_profiles
from psgnn.kernels._ways import WAYS, weighted_ways
from psgnn.positions._roles import ROLES

if TYPE_CHECKING:
    from psgnn.positions._measure import Positions

Doubles = npt.NDArray[np.float64]

MEMORIES = (0.01, 0.05, 0.2)  # shares of the links that came since, after which a link counts 1 / e
MOST_WAYS = 200_000  # walks of two steps from a node that rules follow one by one
FURTHER = 10  # times the looks of a pair that models follow, where the graph is not large
LEAST_SUM = 1e-9  # of the weights of a node's links
FLOOR = 1e-3  # of walks, before the log
LEAST_SHARE = 1e-6  # of PageRank; less counts as none
UNKNOWN = 64.0  # the bound of a pair that shares no anchor

_ROUTES = (
    "out in",
    "out out",
    "in out",
    "in in",
)  # of the first two steps, along (out) or against (in) the links
_WAYS = (
    "two steps", "two steps by degrees", "neighbours of the second", "neighbours of the first", "three steps by roots",
    "three steps by degrees", "neighbours of the first, cosine", "three steps, cosine",
)  # fmt: skip
_AGES = ("last", "first", "last, by the clock")
HOP_NAMES = (
    "largest hop difference", "log of it", "smallest hop sum", "log of it ", "inverse of it", "mean hop difference",
    "rms hop difference", "anchors at equal hops", "anchors that one reaches",
)  # fmt: skip
CHANNEL_NAMES = (
    "mean difference", "rms difference", "largest difference", "correlation", "largest sum", "sum of means",
    "difference of means",
)  # fmt: skip


class Column(NamedTuple):
    """A statistic: its kind of evidence and its name."""

    group: str
    name: str


def lens_names(kinds: tuple[str, ...]) -> list[str]:
    """The lenses of a kind of graph."""
    names = ["links"] * ("directed" in kinds or "sides" in kinds)
    names += ["strength"] * ("strengths" in kinds) + ["nearness"] * ("lengths" in kinds)
    return names + ["recent links"] * ("times" in kinds)


def routes_of(kinds: tuple[str, ...], lens: str) -> tuple[str, ...]:
    """Which ways of two steps are counted through a lens."""
    if "directed" not in kinds:
        return _ROUTES[:1]
    return _ROUTES if lens == "links" else _ROUTES[:2]


def kind_columns(kinds: tuple[str, ...], *, roles: bool) -> list[Column]:
    """The columns of `kind_statistics`, with or without roles; none for plain graphs."""
    if not kinds:
        return []
    ordered = is_ordered(kinds)
    ends = _ends(kinds)
    ways = "direction" if "directed" in kinds else "sides"
    found = []
    for lens in lens_names(kinds):
        group = {"strength": "strength", "nearness": "length", "recent links": "times"}.get(lens, ways)
        found += [Column(group, f"{lens}: {end}") for end in ends]
        found += [
            Column(group, f"{lens}, {route}: {way}") for route in routes_of(kinds, lens) for way in _WAYS
        ]
        found += [Column(group, f"{lens}: the other way")] * ("directed" in kinds)
        if lens != "recent links":
            found += [Column(group, f"PageRank by {lens}: {what}") for what in CHANNEL_NAMES]
    if "times" in kinds:
        found += [
            Column("times", f"activity, memory {memory:g}: {end}") for memory in MEMORIES for end in ends
        ]
        found += [Column("times", f"{age}: {end}") for age in _AGES for end in ends]
    if "directed" in kinds:
        found += [Column("direction", f"along the links: {what}") for what in HOP_NAMES]
    if "lengths" in kinds:
        found += [Column("length", f"length: {what}") for what in CHANNEL_NAMES]
    if ordered:
        return found + [Column(ways, f"{role}: second less first") for role in ROLES * roles]
    return [Column(c.group, f"{c.name}, {what}") for what in ("mean", "difference") for c in found]


def node_columns(kinds: tuple[str, ...]) -> int:
    """The width of `KindMeasures.node_table`."""
    return 2 * (len(lens_names(kinds)) + (len(MEMORIES) + len(_AGES)) * ("times" in kinds))


def is_ordered(kinds: tuple[str, ...]) -> bool:
    """Whether the two nodes of a pair play different parts."""
    return "directed" in kinds or "sides" in kinds


def _ends(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Which links of which node are counted."""
    if "directed" in kinds:
        return ("from the first", "to the second", "to the first", "from the second")
    return ("of the first", "of the second")


class Lens(NamedTuple):
    """Weights of the arcs along and against the links, and their sums at every node ``[N]``."""

    name: str
    along: Numbers
    against: Numbers
    out_sum: Numbers
    in_sum: Numbers


@dataclass(frozen=True, eq=False)
class KindMeasures:
    """What is measured once about the nodes of a batch that has kinds, seen from the anchors ``nodes [G, K]``."""

    batch: GraphBatch
    nodes: IntArray
    kinds: tuple[str, ...]

    def prepare(self) -> KindMeasures:
        """Measure all that pairs are described by, before threads share it: while they wait, it gets no thread."""
        kinds = self.kinds
        parts = ["lenses"] + ["activity", "ages"] * ("times" in kinds) + ["hops"] * ("directed" in kinds)
        parts += ["lengths"] * ("lengths" in kinds) + ["walks"] * (lens_names(kinds) != ["recent links"])
        for part in parts:
            getattr(self, part)
        self.known.outgoing.places(*self.known.edges[:, :1])
        return self

    @cached_property
    def known(self) -> Kinds:
        """What the batch knows of its links."""
        assert self.batch.kinds is not None
        return self.batch.kinds

    @cached_property
    def _newer(self) -> Numbers:
        """The share of the links of its graph that were last seen after each link, ``[E]``."""
        times, graph = self._last_times, self.batch.graph_of[self.known.edges[0]]
        order = np.lexsort((times, graph))
        counts = np.bincount(graph, minlength=self.batch.num_graphs)
        place = np.empty(times.size)
        place[order] = np.arange(times.size)
        ends = np.cumsum(counts)[graph]
        return np.asarray((ends - 1 - place) / counts[graph])

    @cached_property
    def _last_times(self) -> Numbers:
        times = self.known.times if self.known.last_times is None else self.known.last_times
        assert times is not None
        return times

    @cached_property
    def lenses(self) -> list[Lens]:
        """The lenses of `lens_names`."""
        return [self._lens(name, self._weights(name)) for name in lens_names(self.kinds)]

    def lens(self, name: str) -> Lens:
        """A lens by its name."""
        return next(lens for lens in self.lenses if lens.name == name)

    def oriented(self, us: IntArray, vs: IntArray) -> tuple[IntArray, IntArray]:
        """Pairs with the node of side 0 first, where there are sides; of directed graphs as they are."""
        sides = self.known.sides
        if sides is None or self.known.directed:
            return us, vs
        swapped = sides[us] == 1
        return np.where(swapped, vs, us), np.where(swapped, us, vs)

    def _weights(self, name: str) -> Numbers:
        known = self.known
        if name == "strength" and known.strengths is not None:
            return np.asarray(known.strengths / max(known.strengths.mean(), 1e-300))
        if name == "nearness" and known.lengths is not None:
            return np.asarray(np.median(known.lengths) / known.lengths)
        if name == "recent links":
            return np.asarray(np.exp(-self._newer / MEMORIES[1]))
        return np.ones(known.edges.shape[1])

    def _lens(self, name: str, weights: Numbers) -> Lens:
        along, against = (
            self.known.along(weights, arcs) for arcs in (self.known.outgoing, self.known.incoming)
        )
        return Lens(name, along, against, *self._sums(along, against))

    def _sums(self, along: Numbers, against: Numbers) -> tuple[Numbers, Numbers]:
        out, inward = self.known.outgoing, self.known.incoming
        nodes = np.arange(self.batch.num_nodes)
        found = [
            np.bincount(np.repeat(nodes, arcs.degrees), weights, nodes.size).astype(np.float64)
            for arcs, weights in ((out, along), (inward, against))
        ]
        return found[0], found[1]

    @cached_property
    def activity(self) -> list[tuple[Numbers, Numbers]]:
        """Links from and to every node, weighted by how recent they are, for each of the `MEMORIES`."""
        found = []
        for memory in MEMORIES:
            lens = self._lens("", np.exp(-self._newer / memory))
            found.append((lens.out_sum, lens.in_sum))
        return found

    @cached_property
    def ages(self) -> list[tuple[Numbers, Numbers]]:
        """How long ago the last and the first link from and to every node came, for each of the `_AGES`; logs."""
        known, batch = self.known, self.batch
        assert known.times is not None
        graph = batch.graph_of[known.edges[0]]
        now, start = np.full(batch.num_graphs, -np.inf), np.full(batch.num_graphs, np.inf)
        np.maximum.at(now, graph, self._last_times)
        np.minimum.at(start, graph, known.times)
        span = np.maximum(now - start, 1e-9)[graph]
        clock = (now[graph] - self._last_times) / span
        found = []
        for share, smallest in ((self._newer, True), (self._newer, False), (clock, True)):
            ends = []
            for arcs in (known.outgoing, known.incoming):
                age = np.full(batch.num_nodes, 2.0 if smallest else 0.0)
                keep = np.minimum if smallest else np.maximum
                keep.at(age, np.repeat(np.arange(age.size), arcs.degrees), known.along(share, arcs))
                ends.append(np.log(age + 1e-4))
            found.append((ends[0], ends[1]))
        return found

    @cached_property
    def node_table(self) -> Floats:
        """What links from and to every node amount to, through all lenses and by how recent they are, ``[N, D]``."""
        sums = [(lens.out_sum, lens.in_sum) for lens in self.lenses]
        columns = [np.log(part + FLOOR) for pair in sums for part in pair]
        if "times" in self.kinds:
            columns += [np.log(part + FLOOR) for pair in self.activity for part in pair]
            columns += [part for pair in self.ages for part in pair]
        return np.stack(columns, axis=1).astype(np.float32)

    @cached_property
    def _lanes(self) -> tuple[IntArray, IntArray]:
        return DistanceOracle._lanes(self.nodes)

    @cached_property
    def hops(self) -> npt.NDArray[np.int16]:
        """Hops from every node to the anchors along the links, then from the anchors to every node, ``[2N, K]``."""
        known = self.known
        return np.concatenate([arc_columns(arcs, *self._lanes) for arcs in (known.incoming, known.outgoing)])

    @cached_property
    def lengths(self) -> Floats:
        """Minus the lengths of the ways to and from the anchors in usual links, ``[2N, K, 1]``."""
        known = self.known
        assert known.lengths is not None
        usual = float(np.median(known.lengths))
        tables = []
        for edges in (known.edges[::-1], known.edges) if known.directed else (known.edges,):
            search = LengthSearch(self.batch.adjacency, edges, known.lengths, directed=known.directed)
            tables.append(search.columns(*self._lanes) / np.float32(usual))
        table = np.concatenate(tables * (3 - len(tables)))
        far = 1 + table.max(initial=0)
        return np.asarray(-np.where(table < 0, far, table)[:, :, None])

    @cached_property
    def walks(self) -> Floats:
        """Log PageRank of walks that reach the anchors, then of walks from them, through all lenses, ``[2N, K, C]``."""
        tables = []
        for lens in self.lenses:
            if lens.name == "recent links":
                continue
            pairs = (
                (self.known.incoming, lens.against, lens.in_sum),
                (self.known.outgoing, lens.along, lens.out_sum),
            )
            found = [
                arc_pagerank(*part, *self._lanes) for part in (pairs if self.known.directed else pairs[1:])
            ]
            tables.append(np.concatenate(found * (3 - len(found))))
        return np.asarray(np.log(np.stack(tables, axis=2) + np.float32(LEAST_SHARE)))


def kind_statistics(positions: Positions, us: IntArray, vs: IntArray, out: Floats) -> None:
    """Fill ``out [P, Q]`` with the `kind_columns` of pairs; of directed graphs, us are the sources."""
    found = positions.kind_measures
    us, vs = found.oriented(us, vs)
    if is_ordered(found.kinds):
        roles = positions.roles[vs] - positions.roles[us]
        out[:] = np.concatenate([_block(positions, us, vs), roles], axis=1)
        return
    there, back = _block(positions, us, vs), _block(positions, vs, us)
    out[:] = np.concatenate([(there + back) / 2, np.abs(there - back)], axis=1)


def _block(positions: Positions, us: IntArray, vs: IntArray) -> Doubles:
    found, columns = positions.kind_measures, []
    directed, n = found.known.directed, positions.view.union.num_nodes
    most = positions.parts.pair_looks * (1 if positions.view.union.large else FURTHER)
    counts = positions.counts[positions.view.union.graph_of[us]]
    profiles: dict[str, Floats] = {}
    walked = [lens.name for lens in found.lenses if lens.name != "recent links"]
    if walked:
        table = np.empty((us.size, CHANNEL_STATISTICS * len(walked)), np.float32)
        channel_profiles(found.walks, 0, counts, us, vs + n, table)
        profiles = dict(zip(walked, np.split(table, len(walked), axis=1), strict=True))

    def at_ends(outgoing: Numbers, incoming: Numbers) -> list[Numbers]:
        here = [outgoing[us], incoming[vs]]
        return [*here, incoming[us], outgoing[vs]] if directed else here

    for lens in found.lenses:
        columns += [np.log(part + FLOOR) for part in at_ends(lens.out_sum, lens.in_sum)]
        for route in routes_of(found.kinds, lens.name):
            columns += list(_ways(found, lens, route, us, vs, most).T)
        if directed:
            columns.append(other_way(found.known, lens, us, vs))
        if lens.name in profiles:
            columns += list(profiles[lens.name].T)
    if "times" in found.kinds:
        for parts in found.activity:
            columns += [np.log(part + FLOOR) for part in at_ends(*parts)]
        for parts in found.ages:
            columns += at_ends(*parts)
    if directed:
        table = np.empty((us.size, HOP_STATISTICS), np.float32)
        hop_profiles(found.hops, counts, us, vs + n, UNKNOWN, table)
        columns += list(table.T)
    if "lengths" in found.kinds:
        table = np.empty((us.size, CHANNEL_STATISTICS), np.float32)
        channel_profiles(found.lengths, 0, counts, us, vs + n, table)
        columns += list((np.sign(table) * np.log1p(np.abs(table))).T)
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def ways_between(
    known: Kinds, lens: Lens, route: str, us: IntArray, vs: IntArray, most: int = MOST_WAYS
) -> Doubles:
    """The columns of `weighted_ways` of pairs through a lens, ``[P, 6]``."""
    by_name = {"out": (known.outgoing, lens.along), "in": (known.incoming, lens.against)}
    (first, first_weights), (second, second_weights) = (by_name[name] for name in route.split())
    order = np.argsort(us, kind="stable")
    found, out = np.zeros((us.size, WAYS)), np.empty((us.size, WAYS))
    weighted_ways(
        first.indptr, first.indices, first_weights, second.indptr, second.indices, second_weights,
        known.incoming.indptr, known.incoming.indices, lens.against,
        np.maximum(lens.out_sum if route.endswith("out") else lens.in_sum, LEAST_SUM),
        np.maximum(lens.out_sum, LEAST_SUM), us[order], vs[order], most, found,
    )  # fmt: skip
    out[order] = found
    return out


def _ways(found: KindMeasures, lens: Lens, route: str, us: IntArray, vs: IntArray, most: int) -> Doubles:
    """The `_WAYS` of pairs, ``[P, 8]``."""
    walks = ways_between(found.known, lens, route, us, vs, most)
    leaving = np.sqrt(np.maximum(lens.out_sum[us], LEAST_SUM))
    arriving = np.sqrt(np.maximum(lens.in_sum[vs], LEAST_SUM))
    cosines = np.stack([walks[:, 3] / arriving, walks[:, 4] / (leaving * arriving)], axis=1)
    return np.log(np.concatenate([walks, cosines], axis=1) + FLOOR)


def other_way(known: Kinds, lens: Lens, us: IntArray, vs: IntArray) -> Numbers:
    """The weight of the links from vs to us, 0 where there are none; log1p."""
    place = known.outgoing.places(vs, us)
    return np.log1p(np.where(place >= 0, lens.along[place], 0.0))
