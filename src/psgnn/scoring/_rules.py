"""Training-free pair scores by name: higher means more likely a pair.

Every rule sees the visible graph and the pairs asked, nothing else, and costs O(E) plus the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # its parts load when they are used

from psgnn.anchors._greedy import farthest_first
from psgnn.anchors._rules import anchor_count
from psgnn.distances._lengths import LengthSearch
from psgnn.distances._oracle import DistanceOracle, by_slices, entries_of, hops_between
from psgnn.distances._propagation import arc_pagerank
from psgnn.errors import InputError, unknown_name
from psgnn.graph import Adjacency, GraphBatch, IntArray
from psgnn.kernels._pairs import pushed_pagerank, shared_neighbours
from psgnn.positions._kinds import MEMORIES, KindMeasures, other_way, ways_between
from psgnn.registry import Registry, call_plugin

Scores = npt.NDArray[np.float64]
PairScore = Callable[[GraphBatch, IntArray, int], Scores]
Measure = Callable[[KindMeasures, IntArray, IntArray], Scores]

RESTART = 0.15
PUSH_TOLERANCE = 1e-5  # a hundredth of it on graphs of up to 5000 nodes, where it costs nothing
SPECTRAL_DIMENSIONS = 8
DENSE_NODES = 200  # up to here LAPACK is faster than Lanczos
PAIR_BLOCK = 2**16  # pairs whose rows are in memory at once


def _shortest_path(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
    """Minus the hops; unreachable is farther than anything reachable."""
    hops = hops_between(union.adjacency, pairs)
    return np.where(hops < 0, -float(union.num_nodes), -hops)


def _neighbours(weight: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]) -> PairScore:
    def score(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
        # A common neighbour has at least two neighbours.
        weights = weight(np.maximum(union.adjacency.degrees, 2).astype(np.float64))
        return by_slices(shared_neighbours, union.adjacency, pairs[0], pairs[1], weights, steps=50)

    return score


def _preferential_attachment(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
    """Product of the degrees plus one: a node without visible links may have lost them to the hold-out."""
    degrees = union.adjacency.degrees + 1.0
    return np.asarray(degrees[pairs[0]] * degrees[pairs[1]])


def _pagerank(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
    r""":math:`\pi_u(v) + \pi_v(u)`; one walk gives both, since :math:`d_u \pi_u(v) = d_v \pi_v(u)`."""
    degrees = np.maximum(union.adjacency.degrees, 1)
    swap = degrees[pairs[0]] > degrees[pairs[1]]  # from the smaller end the mass at the other is larger
    us, vs = np.where(swap, pairs[::-1], pairs)
    order = np.argsort(us, kind="stable")
    scores = np.empty(us.size)
    tolerance = PUSH_TOLERANCE if union.sizes.max() > 5000 else PUSH_TOLERANCE / 100
    options = RESTART, tolerance
    scores[order] = by_slices(pushed_pagerank, union.adjacency, us[order], vs[order], *options, steps=1e4)
    return np.asarray(scores * (1 + degrees[us] / degrees[vs]))


def spectral_embedding(adjacency: Adjacency, dimensions: int, seed: int = 0) -> Scores:
    r"""Leading eigenvectors of the regularised normalised adjacency, times their eigenvalues, ``[N, <=d]``.

    .. math:: D_\tau^{-1/2} (A + \tau / N) D_\tau^{-1/2}, \quad D_\tau = D + \tau, \ \tau = \bar{d} / 10

    The regularisation (Amini et al. 2013) keeps small components from taking up the leading eigenvectors.
    """
    num_nodes = adjacency.num_nodes
    tau = 0.1 * max(adjacency.degrees.mean(), 1e-9)
    scale = 1 / np.sqrt(adjacency.degrees + tau)
    matrix = scipy.sparse.csr_array(
        (np.ones(adjacency.indices.size), adjacency.indices, adjacency.indptr), shape=(num_nodes, num_nodes)
    )
    if num_nodes <= DENSE_NODES:
        dense = scale[:, None] * (matrix.toarray() + tau / num_nodes) * scale
        values, vectors = np.linalg.eigh(dense)
    else:

        def multiply(x: Any) -> Any:
            y = scale * x.ravel()
            return scale * (matrix @ y + tau / num_nodes * y.sum())

        operator = scipy.sparse.linalg.LinearOperator(
            (num_nodes, num_nodes), matvec=multiply, dtype=np.float64
        )
        start = np.random.default_rng(seed).random(num_nodes)
        values, vectors = scipy.sparse.linalg.eigsh(operator, k=dimensions, which="LA", v0=start, tol=1e-4)
    leading = np.argsort(-values)[:dimensions]
    return np.asarray(vectors[:, leading] * values[leading])


def _spectral_cosine(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
    rows = np.zeros((union.num_nodes, SPECTRAL_DIMENSIONS))
    for g in range(union.num_graphs):
        vectors = spectral_embedding(union.graph(g), SPECTRAL_DIMENSIONS, seed)
        rows[union.ptr[g] : union.ptr[g + 1], : vectors.shape[1]] = vectors
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray((rows[pairs[0]] * rows[pairs[1]]).sum(axis=1))


def _anchor_l1(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
    """Minus the mean difference of the hops to log^2 N farthest-first anchors that both nodes reach.

    A pair that shares no anchor counts as half as far apart as a random pair of its graph: as likely a link
    as not.
    """
    counts = [anchor_count(int(size), "log^2") for size in union.sizes]
    anchors = np.full((union.num_graphs, max(counts)), -1, np.int64)
    strangers = np.empty((2, union.num_graphs, 1000), np.int64)
    for g, count in enumerate(counts):
        rng = np.random.default_rng([seed, g])
        anchors[g, :count] = union.ptr[g] + farthest_first(union.graph(g), count, rng)
        strangers[:, g] = rng.integers(union.ptr[g], union.ptr[g + 1], (2, 1000))
    hops = DistanceOracle(union).hops(anchors)
    apart = _hops_apart(hops, strangers.reshape(2, -1)).reshape(union.num_graphs, -1)
    unknown = np.array([0.5 * row[~np.isnan(row)].mean() if (~np.isnan(row)).any() else 0.0 for row in apart])
    scores = _hops_apart(hops, pairs)
    return -np.where(np.isnan(scores), unknown[union.graph_of[pairs[0]]], scores)


def _hops_apart(hops: npt.NDArray[np.int16], pairs: IntArray) -> Scores:
    """Mean of ``|d(u, a) - d(v, a)|`` over the anchors that both reach, ``[P]``; NaN where there is none."""
    out = np.empty(pairs.shape[1])
    for first in range(0, pairs.shape[1], PAIR_BLOCK):
        block = slice(first, first + PAIR_BLOCK)
        us, vs = hops[pairs[0, block]], hops[pairs[1, block]]
        both = (us >= 0) & (vs >= 0)
        with np.errstate(invalid="ignore"):
            out[block] = (np.abs(us - vs) * both).sum(axis=1) / both.sum(axis=1)
    return out


# Graphs of a kind


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


def _walk_pagerank(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """Personalised PageRank of v for a walk from u along the links, by their weights where there are any."""
    lens = next(lens for lens in found.lenses if lens.name != "recent links")

    def columns(nodes: IntArray) -> npt.NDArray[np.float32]:
        return arc_pagerank(found.known.outgoing, lens.along, lens.out_sum, nodes, np.arange(nodes.size + 1))

    return entries_of(columns, us, vs).astype(np.float64)


def _shortest_length(found: KindMeasures, us: IntArray, vs: IntArray) -> Scores:
    """Minus the length of the shortest way; unreachable is farther than anything reachable."""
    known = found.known
    assert known.lengths is not None
    search = LengthSearch(found.batch.adjacency, known.edges, known.lengths, directed=known.directed)
    lengths = entries_of(search.columns, us, vs).astype(np.float64)
    return -np.where(lengths < 0, known.lengths.sum() + 1, lengths)


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
    "walk-pagerank": KindRule(("directed", "strengths", "lengths"), _walk_pagerank),
    "weighted-common-neighbours": KindRule(("strengths",), _ways("strength", "out out", 0)),
    "weighted-resource-allocation": KindRule(("strengths",), _ways("strength", "out out", 1)),
    "shortest-length": KindRule(("lengths",), _shortest_length),
    "recent-activity": KindRule(("times",), _recent_activity),
}


def kind_rules(kind: Collection[str]) -> list[str]:
    """The rules for such graphs beside those for plain ones."""
    return [name for name, rule in KIND_RULES.items() if rule.fits(kind)]


# All rules


_BUILTIN: dict[str, PairScore] = {
    "shortest-path": _shortest_path,
    "common-neighbours": _neighbours(np.ones_like),
    "adamic-adar": _neighbours(lambda degrees: 1 / np.log(degrees)),
    "resource-allocation": _neighbours(lambda degrees: 1 / degrees),
    "preferential-attachment": _preferential_attachment,
    "pagerank": _pagerank,
    "spectral-cosine": _spectral_cosine,
    "anchor-l1": _anchor_l1,
}


def _checked(title: str, function: Callable[..., Any]) -> PairScore:
    """A plugin's rule whose answer is ``[P]`` finite numbers, or one line that names it."""

    def score(union: GraphBatch, pairs: IntArray, seed: int) -> Scores:
        answer = call_plugin(title, function, union, pairs, seed)
        scores: npt.NDArray[Any] = call_plugin(title, np.asarray, answer)
        problem = None
        if scores.shape != (pairs.shape[1],) or scores.dtype.kind not in "biuf":
            problem = f"an array of {scores.dtype} of shape {list(scores.shape)}"
        elif not np.isfinite(scores).all():
            first = int(np.argmin(np.isfinite(scores)))
            problem = f"{scores[first]} for pair {first} (nodes {pairs[0, first]} and {pairs[1, first]})"
        if problem is not None:
            raise InputError(
                f"{title} must return {pairs.shape[1]} finite numbers, one per pair, found {problem}; "
                "report it to its authors"
            )
        return scores.astype(np.float64)

    return score


HEURISTICS: Registry[PairScore] = Registry("pair rule", "psgnn.pair_rules", _BUILTIN, _checked)


def score_pairs(name: str, union: GraphBatch, pairs: npt.ArrayLike, seed: int = 0) -> Scores:
    """Score pairs ``[2, P]`` (ids in the batch) by a rule, on the visible graph alone: ``[P]``, higher means more
    likely.
    """
    if name in KIND_RULES:
        kind = () if union.kinds is None else union.kinds.names
        if not KIND_RULES[name].fits(kind):
            needs = " or ".join(KIND_RULES[name].needs)
            raise InputError(
                f"the rule {name} needs a graph with {needs}, found {', '.join(kind) or 'a plain one'}"
            )
        return KIND_RULES[name](union, np.ascontiguousarray(pairs, dtype=np.int64))
    if name not in HEURISTICS:
        raise unknown_name("training-free rule", name, [*HEURISTICS, *KIND_RULES])
    return HEURISTICS[name](union, np.ascontiguousarray(pairs, dtype=np.int64), seed)
