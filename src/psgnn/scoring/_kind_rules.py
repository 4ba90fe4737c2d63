"""Rules for pairs of graphs that have more than plain edges; each says which kinds of graphs it is for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psgnn.distances._lengths import LengthSearch
from psgnn.distances._propagation import arc_pagerank
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.positions._kinds import MEMORIES, KindMeasures, other_way, ways_between

Scores = npt.NDArray[np.float64]
Measure = Callable[[KindMeasures, IntArray, IntArray], Scores]

SOURCES_AT_ONCE = 256  # columns that are in memory


@dataclass(frozen=True)
class KindRule:
    """A rule for graphs that have one of the kinds ``needs``."""

    needs: tuple[str, ...]
    measure: Measure

    def fits(self, kind: Collection[str]) -> bool:
        """Whether the rule is for such graphs."""
        return not set(self.needs).isdisjoint(kind)

    def __call__(self, union: GraphBatch, pairs: IntArray) -> Scores:
        """Scores ``[P]`` of the pairs ``[2, P]``."""
        assert union.kinds is not None
        nothing = np.zeros((union.num_graphs, 0), np.int64)
        found = KindMeasures(union, nothing, union.kinds.names)
        return self.measure(found, *found.oriented(*pairs))


def _ways(lens: str, route: str, column: int) -> Measure:
    """A column of `weighted_ways` through a lens."""

    def measure(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
        return np.asarray(ways_between(found.known, found.lens(lens), route, us, vs)[:, column])

    return measure


def _item_knn(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """The sum of the cosines between v and what u is linked to."""
    shared = _ways("links", "out in", 3)(found, us, vs)
    return shared / np.sqrt(np.maximum(found.known.incoming.degrees[vs], 1))


def _user_knn(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """The sum of the cosines between u and what is linked to v."""
    shared = _ways("links", "out in", 2)(found, us, vs)
    return shared / np.sqrt(np.maximum(found.known.outgoing.degrees[us], 1))


def _reciprocity(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    return other_way(found.known, found.lens("links"), us, vs)


def _attachment(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """Links from u plus one times links to v plus one."""
    return (found.known.outgoing.degrees[us] + 1.0) * (found.known.incoming.degrees[vs] + 1.0)


def _recent_activity(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """The same where a link counts the less, the more links came after it."""
    outgoing, incoming = found.activity[MEMORIES.index(0.05)]
    least = 1e-3  # a node that was not active lately is not nothing
    return np.asarray((outgoing[us] + least) * (incoming[vs] + least))


def _pagerank(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """Personalised PageRank of v for a walk from u along the links, by their weights where there are any."""
    lens = next(lens for lens in found.lenses if lens.name != "recent links")

    def columns(nodes: IntArray) -> npt.NDArray[np.float32]:
        return arc_pagerank(found.known.outgoing, lens.along, lens.out_sum, nodes, np.arange(nodes.size + 1))

    return _from_columns(columns, us, vs)


def _shortest_length(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """Minus the length of the shortest way; unreachable is farther than anything reachable."""
    known = found.known
    assert known.lengths is not None
    search = LengthSearch(found.batch.adjacency, known.edges, known.lengths, directed=known.directed)
    lengths = _from_columns(search.columns, us, vs)
    return -np.where(lengths < 0, known.lengths.sum() + 1, lengths)


def _from_columns(
    columns: Callable[[IntArray], npt.NDArray[np.float32]], us: IntArray, vs: IntArray
) -> Scores:
    """The entries ``(v, u)`` of columns of numbers, one per distinct u and some at a time."""
    sources, place = np.unique(us, return_inverse=True)
    out = np.empty(us.size)
    for start in range(0, sources.size, SOURCES_AT_ONCE):
        here = np.flatnonzero((place >= start) & (place < start + SOURCES_AT_ONCE))
        out[here] = columns(sources[start : start + SOURCES_AT_ONCE])[vs[here], place[here] - start]
    return out


ORDERED = ("directed", "sides")
KIND_RULES: dict[str, KindRule] = {
    "three-paths": KindRule(ORDERED, _ways("links", "out in", 4)),
    "item-knn": KindRule(ORDERED, _item_knn),
    "user-knn": KindRule(ORDERED, _user_knn),
    "three-step-allocation": KindRule(ORDERED, _ways("links", "out in", 5)),
    "reciprocity": KindRule(("directed",), _reciprocity),
    "directed-common-neighbours": KindRule(("directed",), _ways("links", "out out", 0)),
    "directed-resource-allocation": KindRule(("directed",), _ways("links", "out out", 1)),
    "directed-attachment": KindRule(("directed",), _attachment),
    "walk-pagerank": KindRule(("directed", "strengths", "lengths"), _pagerank),
    "weighted-common-neighbours": KindRule(("strengths",), _ways("strength", "out out", 0)),
    "weighted-resource-allocation": KindRule(("strengths",), _ways("strength", "out out", 1)),
    "shortest-length": KindRule(("lengths",), _shortest_length),
    "recent-activity": KindRule(("times",), _recent_activity),
}


def kind_rules(kind: Collection[str]) -> list[str]:
    """The rules for such graphs beside those for plain ones."""
    return [name for name, rule in KIND_RULES.items() if rule.fits(kind)]
