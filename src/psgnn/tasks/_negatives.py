"""Hard negatives, and the released sampler of P-GNN for comparison.

A hard negative keeps one end of a positive and replaces the other, by a node of the same degree
(``by="degree"``) or at the same distance from the kept end (``by="distance"``), both in the visible graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from psgnn.graph._graph import Adjacency, IntArray
from psgnn.graph._sampling import Joined, ListedPairs, NonEdges, Pool, distinct_integers, pair_code
from psgnn.kernels._sampling import AS_MODEL, replacements

if TYPE_CHECKING:
    from psgnn.tasks._base import Task


# With "distance", the kept ends of a split's models are so few that searching from all of them follows no more
# edges than SEARCH_STEPS, some seconds of work, but never fewer than MIN_SOURCES.
SEARCH_STEPS = 2**30
MIN_SOURCES = 256
UNREACHABLE = 2**62


def hard_negatives(
    by: str,
    positives: Sequence[IntArray],
    counts: IntArray,
    visible: Adjacency,
    full: Adjacency,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Negatives ``[2, counts[i]]`` for the positives of train, val and test of a graph; no pair is drawn twice.

    Every negative has a positive of its split as its model; positives are models equally often, up to one.
    The end of higher degree is kept: there are more nodes that can stand for the other one. Among
    the free nodes that match, the draw is uniform; without any, it is among those of the nearest degree or
    distance (unreachable counts as one hop beyond the farthest). Where the kept end is linked or paired with all
    nodes, the other end is kept, and if that fails too, the negative is uniform among the pairs that are left.

    Training edges are one hop apart, as no unlinked pair is: with ``"distance"``, negatives of train keep an end
    of a training edge, but are as far apart as the positives of val. Test has the first choice and train the
    last. On graphs of more than some 20,000 nodes, ``"distance"`` takes a random part of the positives as
    models, each several times.
    """
    most = full.num_nodes
    if by == "distance":
        most = max(MIN_SOURCES, SEARCH_STEPS // (visible.num_nodes + visible.indices.size))
    taken = full
    keys = np.empty(0, np.int64)
    parts = [keys] * 3
    for place in (2, 1, 0):
        ends = _models(positives[place], int(counts[place]), visible, most, rng)
        wanted = np.full(ends.shape[1], AS_MODEL)
        if by == "distance" and place == 0:
            wanted = np.resize(rng.permutation(keys), ends.shape[1])  # the distances in val
        pairs, keys = _draw(by, ends, wanted, visible, taken, rng)
        if place > 0:
            taken = _with_pairs(taken, pairs)
        parts[place] = pairs[:, np.argsort(pair_code(pairs))]
    return parts


def _models(
    positives: IntArray, count: int, visible: Adjacency, most: int, rng: np.random.Generator
) -> IntArray:
    """The end to replace and the end to keep of ``count`` models, ``[2, P]``, in random order.

    There are at most ``most`` distinct ends to keep: models that come after are replaced by the first ones.
    """
    models = positives[:, np.resize(rng.permutation(positives.shape[1]), count)]
    by_degree = np.argsort(visible.degrees[models] + rng.random(models.shape), axis=0)  # ties at random
    ends = np.take_along_axis(models, by_degree, axis=0)
    _, first = np.unique(ends[1], return_index=True)
    if first.size <= most:
        return ends
    return ends[:, np.resize(np.arange(np.sort(first)[most]), count)]


def _draw(
    by: str,
    ends: IntArray,
    wanted: IntArray,
    visible: Adjacency,
    taken: Adjacency,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """A negative ``[2, P]`` for each model, and the degree or distance ``[P]`` that it was to have."""
    pairs, keys = np.full(ends.shape, -1, dtype=np.int64), wanted.copy()
    for other, kept in (ends, ends[::-1]):
        missing = np.flatnonzero(pairs[0] < 0)
        asked = missing[np.argsort(kept[missing], kind="stable")]
        found, keys[asked] = replacements(
            visible.indptr,
            visible.indices,
            taken.indptr,
            taken.indices,
            kept[asked],
            other[asked],
            wanted[asked],
            by == "distance",
            rng,
        )
        pairs[:, asked] = np.where(found < 0, -1, np.sort([kept[asked], found], axis=0))
        if (found >= 0).all():
            break
        taken = _with_pairs(taken, np.sort([kept[asked], found], axis=0)[:, found >= 0])
    missing = np.flatnonzero(pairs[0] < 0)
    if missing.size:
        pool = NonEdges(np.array([0, taken.num_nodes]), taken.edges())
        pairs[:, missing] = pool.unrank(distinct_integers(int(pool.sizes[0]), missing.size, rng))
    if by == "distance":
        component = visible.components
        keys[component[ends[0]] != component[ends[1]]] = UNREACHABLE
    return pairs, keys


def _with_pairs(adjacency: Adjacency, pairs: IntArray) -> Adjacency:
    """The graph with these pairs as further edges."""
    rows, cols = np.concatenate([adjacency.edges(), pairs], axis=1)
    return Adjacency.from_edges(rows, cols, adjacency.num_nodes)


RELEASED = "pgnn-released"


def released_pools(
    positives: Pool, others: Pool, drawn: Sequence[IntArray], counts: IntArray
) -> tuple[Joined, Joined, Joined]:
    """What the negatives of train, val and test are drawn from.

    Args:
        positives: all pairs that are positives by the data.
        others: all pairs that are not.
        drawn: the positives of train, val and test, ``[2, P]`` each, graph by graph.
        counts: their numbers in every graph, ``[G, 3]``.
    """
    held_out = [ListedPairs(drawn[part], counts[:, part]) for part in (1, 2)]
    evaluation = Joined(positives, others, others)
    return Joined(positives, *held_out, others, others), evaluation, evaluation


def ceiling(task: Task) -> float:
    """Return the test AUC, the mean over graphs, of a scorer that knows which pairs are positives by the data.

    It is 1 but for the negatives ``"pgnn-released"``. A share :math:`r` of a graph's test negatives are positives in
    truth. They tie with all positives, so the AUC is :math:`1 - r / 2`.

    No scorer that goes by what a pair is does better, except by luck. A model can pass the ceiling by telling the
    parts of the split apart: in link prediction it can learn that a visible edge is never a test positive.
    """
    split = task.test
    negative = split.labels == 0
    graph = split.graph_ids[negative]
    wrong = np.bincount(graph, task.true_labels(split.pairs[:, negative]))
    counts = np.bincount(graph)
    asked = counts > 0  # not all graphs are, where whole graphs are held out
    return float((1 - wrong[asked] / counts[asked] / 2).mean())
