"""What a graph says about its own links: its shape as a whole, and how its links differ from other pairs.

Both depend on the visible graph alone, so a network that was trained on other graphs can read them on a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._pair_space import KnownLinks, rivals_of
from psgnn.graph._sampling import NonEdges, distinct_integers
from psgnn.kernels._csr import triangles
from psgnn.kernels._profiles import look_up
from psgnn.positions._kinds import is_ordered
from psgnn.positions._measure import Positions, positions_of
from psgnn.positions._statistics import pair_statistics
from psgnn.positions._view import View

SHAPE = (
    "log nodes", "log mean degree", "log largest degree over mean", "spread of degrees", "share of leaves",
    "mean clustering", "transitivity", "assortativity", "share of the largest component", "log mean hops",
    "log largest hops", "second eigenvalue", "mean of eight eigenvalues",
)  # fmt: skip
LEAST_HIDDEN, MOST_HIDDEN = 20, 2000
UNLINKED_A_LINK = 3
LESSON_LINKS, MOST_LESSONS = 2000, 5
LEAST_OF_KINDS = 3  # lessons, where there are directions, sides, strengths, lengths or times to learn from
LAST_SEEN, EARLIER = 0.8, 0.05  # of the links by time: the share seen, and how much less each lesson sees
MOST_REHEARSALS = 4
REHEARSAL_SEED = 100  # of the links that are hidden for it; lessons have the seeds 0 to 5
RIVAL = -1  # the label of pairs that are compared with a link of the same first node
USE = 3  # of weights that do not change, on a graph; it is in the identity of recorded runs
BINS = 16
LARGEST_RATIO = 4.0


@dataclass(frozen=True, eq=False)
class Ratios:
    """Log likelihood ratios of links against other pairs by the value of a statistic.

    ``bounds [S, B - 1]`` between the bins of each of the S statistics, ``table [S, B]`` the ratios.
    """

    bounds: npt.NDArray[np.float32]
    table: npt.NDArray[np.float32]

    def __call__(self, statistics: Floats) -> Floats:
        """The ratios of pairs with these statistics ``[P, S]``, ``[P, S]``."""
        found = np.empty_like(statistics)
        look_up(self.bounds, self.table, statistics, found)
        return found


@dataclass(frozen=True, eq=False)
class Context:
    """``shape [G, 13]`` of every graph, and the ratios where there are enough links to count."""

    shape: Floats
    ratios: Ratios | None


def lessons_of(positions: Positions) -> Iterator[tuple[Positions, IntArray, Floats]]:
    """What the graph itself teaches: views without some of its links, pairs ``[2, P]`` to score there, their labels.

    Enough views to hide `LESSON_LINKS` links altogether, but at most `MOST_LESSONS`. Their ratios are those of the
    whole graph, which were counted with other links hidden. Where pairs have an order, an unlinked pair per link comes
    last, with the link's first node and the label `RIVAL`.
    """
    ratios, count = context_of(positions).ratios, number_hidden(positions)
    if ratios is None:
        return
    for seed in range(1, 1 + lessons_for(count, bool(positions.parts.kinds))):
        seen, links, unlinked = hide_links(positions, seed)
        seen.view.context = seen, Context(graph_shapes(seen), ratios)
        parts = [links, unlinked]
        if is_ordered(positions.parts.kinds):
            parts.append(_rivals(positions.view.union, links, unlinked, seed))
        labels = np.repeat(
            np.array([1, 0, RIVAL][: len(parts)], np.float32), [part.shape[1] for part in parts]
        )
        pairs = seen.view.alike("pairs", partial(np.concatenate, parts, axis=1))
        yield seen, pairs, labels


def _rivals(union: GraphBatch, links: IntArray, unlinked: IntArray, seed: int) -> IntArray:
    """An unlinked pair for each of the links ``[2, L]``, with the same first node where there is one."""
    known = KnownLinks(union)
    others = np.random.default_rng(seed).choice(unlinked, links.shape[1], axis=1)
    return rivals_of(known.space, union.graph_of, links, others, np.sort(known.space.rank(known.pairs)))


def context_of(positions: Positions) -> Context:
    """The context of a view, kept with it for the next call."""
    view = positions.view
    if view.context is None or view.context[0] is not positions:
        view.context = positions, Context(graph_shapes(positions), count_ratios(positions))
    found: Context = view.context[1]
    return found


def graph_shapes(positions: Positions) -> Floats:
    """The `SHAPE` of every graph of a view, ``[G, 13]``."""
    union = positions.view.union
    return np.stack([_shape(positions, union, g) for g in range(union.num_graphs)]).astype(np.float32)


def _shape(positions: Positions, union: GraphBatch, g: int) -> list[Any]:
    adjacency = union.graph(g)
    degrees = adjacency.degrees.astype(np.float64)
    closed = positions.view.alike(("triangles", g), lambda: triangles(adjacency.indptr, adjacency.indices))
    own = slice(union.ptr[g], union.ptr[g + 1])
    hops = positions.hops[own, : positions.counts[g]]
    logs = log_degrees(degrees)
    a, b = logs[adjacency.rows], logs[adjacency.indices]
    means = (float(a.mean()), float(b.mean())) if a.size else (0.0, 0.0)
    largest = float(positions.roles[own, 6].max()) if positions.roles.size else 0.0
    sums = shape_sums(degrees, closed, hops, a, b, float(degrees.mean()), means)
    return shape_of(sums, positions.values[g], largest)


class ShapeSums(NamedTuple):
    """What the shape of a graph is made of, summed over its nodes or some of them; the last three are maxima."""

    nodes: float
    degrees: float
    spread: float
    leaves: float
    clustering: float
    closed: float
    wedges: float
    entries: float
    variance: float
    covariance: float
    reached: float
    hops: float
    largest_degree: float
    largest_hops: float

    def __add__(self, other: Any) -> ShapeSums:
        """Those of both."""
        sums = [mine + theirs for mine, theirs in zip(self[:-2], other[:-2], strict=True)]
        return ShapeSums(
            *sums, *(max(mine, theirs) for mine, theirs in zip(self[-2:], other[-2:], strict=True))
        )


def log_degrees(degrees: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """What assortativity compares at the two ends of a link."""
    return np.asarray(np.log(np.maximum(degrees, 1)))


def shape_sums(
    degrees: npt.NDArray[np.float64],
    closed: npt.NDArray[np.float64],
    hops: npt.NDArray[np.int16],
    here: npt.NDArray[np.float64],
    there: npt.NDArray[np.float64],
    mean_degree: float,
    mean_logs: tuple[float, float],
) -> ShapeSums:
    """The sums of some nodes.

    Args:
        degrees: Their degrees.
        closed: The triangles that they are in.
        hops: To the anchors, ``[n, K]``.
        here: The `log_degrees` of the node of each entry of their rows.
        there: Those of the neighbour.
        mean_degree: Of the whole graph.
        mean_logs: Of the whole graph, of `here` and `there`.
    """
    wedges = degrees * (degrees - 1) / 2
    reached = hops[hops > 0].astype(np.float64)
    a, b = here - mean_logs[0], there - mean_logs[1]
    return ShapeSums(
        degrees.size, float(degrees.sum()), float(np.square(degrees - mean_degree).sum()),
        float((degrees == 1).sum()), float((closed / np.maximum(wedges, 1)).sum()), float(closed.sum()),
        float(wedges.sum()), a.size, float(np.square(a).sum()), float((a * b).sum()),
        reached.size, float(reached.sum()), float(degrees.max(initial=0)), float(reached.max(initial=0)),
    )  # fmt: skip


def shape_of(sums: ShapeSums, values: Floats, largest: float) -> list[Any]:
    """The `SHAPE` of a graph by its sums, its eigenvalues and the share of its largest component."""
    mean = max(sums.degrees / sums.nodes, 1e-3)
    variance = sums.variance / max(sums.entries, 1)
    return [
        np.log(sums.nodes),
        np.log(mean),
        np.log(max(sums.largest_degree, 1e-3) / mean),
        np.log1p(float(np.sqrt(sums.spread / sums.nodes)) / mean),
        sums.leaves / sums.nodes,
        sums.clustering / sums.nodes,
        sums.closed / max(sums.wedges, 1),
        sums.covariance / sums.entries / variance if variance > 1e-9 else 0.0,
        largest,
        np.log1p(sums.hops / max(sums.reached, 1)),
        np.log1p(sums.largest_hops),
        float(values[1]) if values.size > 1 else 0.0,
        float(values[:8].mean()) if values.size else 0.0,
    ]


def number_hidden(positions: Positions) -> int:
    """How many links are hidden together: a tenth, at most `MOST_HIDDEN`; none if that is less than `LEAST_HIDDEN`."""
    return hidden_of(number_of_links(positions.view.union))


def hidden_of(links: int) -> int:
    """The same for a number of links."""
    count = min(links // 10, MOST_HIDDEN)
    return count if count >= LEAST_HIDDEN else 0


def lessons_for(count: int, kinds: bool) -> int:
    """How many lessons there are where each hides `count` links."""
    return min(max(-(-LESSON_LINKS // count), LEAST_OF_KINDS if kinds else 1), MOST_LESSONS)


def count_ratios(positions: Positions) -> Ratios | None:
    """Compare hidden links with random unlinked pairs, where there are enough links for that."""
    if not number_hidden(positions):
        return None
    seen, links, unlinked = hide_links(positions, 0)
    return ratios_between(pair_statistics(seen, links), pair_statistics(seen, unlinked))


def hide_links(positions: Positions, seed: int) -> tuple[Positions, IntArray, IntArray]:
    """What is measured without some random links, these links, and random pairs that are none."""
    view, count = positions.view, number_hidden(positions)
    rest, links, unlinked, shared = view.alike(("hidden", seed), partial(_hidden, view, count, seed))
    part = View(rest, view.features, shared)
    if view.frame is not None:
        part.frame = view.frame.over(rest)
    return positions_of(part, positions.nodes, positions.parts), links, unlinked


def _hidden(
    view: View, count: int, seed: int
) -> tuple[GraphBatch, IntArray, IntArray, dict[Any, Any] | None]:
    """The graphs without `count` links, these links, pairs that are none, and what views of these graphs share."""
    union, rng = view.union, np.random.default_rng(seed)
    shared: dict[Any, Any] | None = None if view.shared is None else {}
    if union.kinds is not None:
        known = KnownLinks(union)
        rest, links = (
            _later_links(known, count, seed) if known.times is not None else _others(known, count, rng)
        )
        pairs = NonEdges(known.space, known.pairs)
        free = int(pairs.sizes.sum())
        drawn = distinct_integers(free, min(UNLINKED_A_LINK * links.shape[1], free), rng)
        return rest, links, pairs.unrank(np.sort(drawn)), shared
    edges = union.adjacency.edges()
    pool = NonEdges(union.ptr, edges)
    ranks, others = lesson_ranks(edges.shape[1], int(pool.sizes.sum()), count, seed)
    hidden = _mask(edges.shape[1], ranks)
    return _without(union, hidden), edges[:, hidden], pool.unrank(others), shared


def lesson_ranks(links: int, unlinked: int, count: int, seed: int) -> tuple[IntArray, IntArray]:
    """Which of all links a lesson hides, and which of the pairs that are none it compares them with, sorted."""
    rng = np.random.default_rng(seed)
    hidden = distinct_integers(links, count, rng)
    return hidden, np.sort(distinct_integers(unlinked, min(UNLINKED_A_LINK * count, unlinked), rng))


def _later_links(known: KnownLinks, count: int, seed: int) -> tuple[GraphBatch, IntArray]:
    """The graphs as they were some time ago, and `count` of the links that came next."""
    shown, asked, until = known.window(known.pairs, LAST_SEEN - EARLIER * (seed % (1 + MOST_LESSONS)))
    some = np.random.default_rng(seed).permutation(asked.shape[1])[:count]
    return known.visible(shown, until), asked[:, np.sort(some)]


def _others(known: KnownLinks, count: int, rng: np.random.Generator) -> tuple[GraphBatch, IntArray]:
    """The graphs without `count` random links, and these links."""
    hidden = np.zeros(known.pairs.shape[1], np.bool_)
    hidden[distinct_integers(hidden.size, count, rng)] = True
    return known.visible(known.pairs[:, ~hidden]), known.pairs[:, hidden]


def number_of_links(union: GraphBatch) -> int:
    """Links that are pairs that can be asked about."""
    return union.adjacency.num_edges if union.kinds is None else KnownLinks(union).pairs.shape[1]


def _mask(links: int, ranks: IntArray) -> npt.NDArray[np.bool_]:
    """A mask ``[E]`` of the links of these ranks."""
    hidden = np.zeros(links, np.bool_)
    hidden[ranks] = True
    return hidden


def _without(union: GraphBatch, hidden: npt.NDArray[np.bool_]) -> GraphBatch:
    """The graphs without the edges of a mask ``[E]``."""
    rows, cols = union.adjacency.edges()[:, ~hidden]
    return GraphBatch(Adjacency.from_edges(rows, cols, union.num_nodes), union.ptr)


def without_links(union: GraphBatch, count: int, seed: int) -> tuple[GraphBatch, IntArray]:
    """The graphs without `count` random links, or without the newest where there are times, and these links."""
    if union.kinds is not None:
        known = KnownLinks(union)
        if known.times is None:
            return _others(known, count, np.random.default_rng(seed))
        return _later_links(known, count, 0)
    links = union.adjacency.num_edges
    hidden = _mask(links, rehearsed_ranks(links, count, seed))
    return _without(union, hidden), union.adjacency.edges()[:, hidden]


def rehearsed_ranks(links: int, count: int, seed: int) -> IntArray:
    """Which `count` of all links are hidden."""
    return distinct_integers(links, count, np.random.default_rng(seed))


def number_rehearsed(union: GraphBatch) -> int:
    """How many links a rehearsal hides: a twentieth, `MOST_HIDDEN` at most, and none where there are few."""
    return rehearsed_of(number_of_links(union))


def rehearsed_of(known: int) -> int:
    """The same for a number of links."""
    return min(max(known // 20, LEAST_HIDDEN), MOST_HIDDEN) if known >= 10 * LEAST_HIDDEN else 0


def rehearsal_links(union: GraphBatch) -> Iterator[tuple[GraphBatch, IntArray]]:
    """The graphs without some links, and these links, again and again with others hidden; nothing where links are few.

    The newest links are hidden where there are times, and there is one rehearsal.
    """
    count = number_rehearsed(union)
    if count:
        for place in range(MOST_REHEARSALS if union.kinds is None else 1):
            yield without_links(union, count, REHEARSAL_SEED + place)


def ratios_between(links: Floats, others: Floats) -> Ratios:
    """Smoothed log ratios of the shares of links and of others in bins that hold as many of both together."""
    shares = np.arange(1, BINS) / BINS
    some = others[:: max(others.shape[0] // max(links.shape[0], 1), 1)]
    quantiles = np.quantile(np.concatenate([links, some]), shares, axis=0)
    bounds = np.ascontiguousarray(quantiles.T, np.float32)
    table = np.empty((bounds.shape[0], BINS), np.float32)
    for i, edges in enumerate(bounds):
        counts = [np.bincount(np.searchsorted(edges, part[:, i]), minlength=BINS) for part in (links, others)]
        a, b = ((count + 1) / (count.sum() + BINS) for count in counts)
        table[i] = np.log(a / b)
    return Ratios(bounds, table.clip(-LARGEST_RATIO, LARGEST_RATIO))


def context_columns(positions: Positions, pairs: IntArray, statistics: Floats, *, strict: bool) -> Floats:
    """What the network sees of the context of pairs ``[2, P]`` with these statistics: ``[P, 1 + S + 13]``.

    First whether there are ratios, then the ratios (or zeros), then the shape of the pair's graph. With `strict`
    ratios are left out.
    """
    graph = positions.view.union.graph_of[pairs[0]]
    return columns_in(context_of(positions), graph, statistics, strict=strict)


def columns_in(context: Context, graph: IntArray, statistics: Floats, *, strict: bool) -> Floats:
    """The same for pairs in these graphs ``[P]`` of a context."""
    columns = np.zeros((statistics.shape[0], 1 + statistics.shape[1] + len(SHAPE)), np.float32)
    if context.ratios is not None and not strict:
        columns[:, 0] = 1
        columns[:, 1 : 1 + statistics.shape[1]] = context.ratios(statistics)
    columns[:, 1 + statistics.shape[1] :] = context.shape[graph]
    return columns
