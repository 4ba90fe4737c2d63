"""What all tasks share: the visible graphs, the splits of pairs, their digest, and checks of arguments."""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import Graph, GraphBatch, IntArray, as_graph, check_names
from psgnn.graph._kinds import PER_EDGE, Kinds
from psgnn.graph._sampling import Pool, distinct_integers, running_total

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

log = logging.getLogger(__name__)

MAKES_GRAPHS = "psgnn.read_graph makes a Graph of files, networkx graphs and SciPy matrices"

# Streams of random numbers. None is 0, because default_rng([seed, 0, 0]) is default_rng(seed), which
# callers may use for draws of their own.
POSITIVES, NEGATIVES, FOLDS, GRAPHS = 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Labelled pairs: all positives, then all negatives, each graph by graph (shuffle before batching).

    Attributes:
        pairs: Ids in the batch, int64 ``[2, P]``, with ``u < v``, or source and target in directed graphs.
        labels: 1 or 0, float32 ``[P]``.
        graph_ids: The graph of each pair, int64 ``[P]``. For one graph it is a repeated zero that cannot be written
            to.
        own_negatives: How many negatives of its own each positive is ranked among, in the order of the positives; 0
            if all share them.
    """

    pairs: IntArray
    labels: npt.NDArray[np.float32]
    graph_ids: IntArray
    own_negatives: int = 0


class Task(ABC):
    """The visible graphs and the three splits: what all tasks share.

    Attributes:
        kept: Places, in the input, of the graphs that can be split.
        dropped: Places of those that cannot.
        headline: The metric that results on the task are known by (`psgnn.tasks._metrics.evaluate`).
        holds_out_links: Whether the visible graphs lack links that validation and test ask for.
        negatives: The rule by which negatives were drawn, or ``"official"``.
        folds: How many parts the training links have, where they are links.
        read: How the graphs were read, keywords of `psgnn.read_graph`.
    """

    name: ClassVar[str]
    headline: str = "auc"
    holds_out_links: ClassVar[bool] = False
    negatives: str = "uniform"
    folds: int | None = None
    union: GraphBatch
    train: LabelledPairs
    val: LabelledPairs
    test: LabelledPairs

    def __init__(
        self, graphs: Sequence[Graph], seed: int, usable: npt.NDArray[np.bool_], problem: Callable[[int], str]
    ) -> None:
        self.kept: list[int] = np.flatnonzero(usable).tolist()
        self.dropped: list[int] = np.flatnonzero(~usable).tolist()
        if self.dropped:
            first = self.dropped[0]
            if len(graphs) == 1:
                raise InputError(f"the graph cannot be split: {problem(first)}")
            if not self.kept:
                raise InputError(f"none of the {len(graphs)} graphs can be split, graph 0: {problem(first)}")
            counts = (len(self.dropped), len(graphs))
            log.info("left out %d of %d graphs, such as graph %d: %s", *counts, first, problem(first))
        self._seed = int(seed)
        reading = graphs[self.kept[0]].reading
        self.read: dict[str, Any] = {} if reading is None else dict(reading.options)
        # A published split would hold hidden edges.
        hidden: dict[str, Any] = {"split": {}, "reading": None, "arcs": None, **dict.fromkeys(PER_EDGE)}
        self._known = [replace(graphs[place], **hidden) for place in self.kept]

    @property
    def test_union(self) -> GraphBatch:
        """The graphs that scores of the test pairs may see: the visible ones, but for some published splits."""
        return self.union

    @property
    def ptr(self) -> IntArray:
        """Graph ``g`` owns the nodes ``ptr[g]:ptr[g + 1]`` of the disjoint union."""
        return self.union.ptr

    @cached_property
    def graphs(self) -> list[Graph]:
        """What the model may see; held-out edges are gone."""
        seen = [replace(known, adjacency=self.union.graph(g)) for g, known in enumerate(self._known)]
        kinds = self.union.kinds
        if kinds is None:
            return seen
        for g, graph in enumerate(seen):
            own = kinds.keep(self.union.graph_of[kinds.edges[0]] == g)
            arcs = own.edges - self.ptr[g] if own.directed else None
            seen[g] = replace(graph, arcs=arcs, **{name: getattr(own, name) for name in PER_EDGE})
        return seen

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the splits and the visible edges: equal digests mean the same pairs on the same graphs."""
        adjacency = self.union.adjacency
        arrays: list[npt.NDArray[Any]] = [self.ptr, adjacency.indptr, adjacency.indices]
        for split in (self.train, self.val, self.test):
            arrays += [split.pairs, split.labels]
        if self.union.kinds is not None:
            columns = [getattr(self.union.kinds, name) for name in ("edges", *PER_EDGE, "sides")]
            arrays += [column for column in columns if column is not None]
        sha = hashlib.sha256(self.name.encode())
        for array in arrays:
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).data)
        return sha.hexdigest()

    def blind(self) -> Self:
        """A copy for whoever may look at the validation pairs alone; they stand for those of test."""
        other = copy(self)
        other.test = self.val
        other.__dict__.pop("digest", None)  # cached, and of the splits with the test pairs
        return other

    @abstractmethod
    def true_labels(self, pairs: IntArray) -> npt.NDArray[np.float32]:
        """1 for the pairs ``[2, P]`` that are positives by the data, else 0, as float32 ``[P]``.

        A split says the same but for the negatives ``"pgnn-released"``, which are positives in part.
        """

    @property
    def whole_kinds(self) -> Kinds | None:
        """What all links carry, also those that are held out; None where none are."""
        return None

    @property
    def hidden_links(self) -> IntArray:
        """Links of the graphs that the model is not shown, ``[2, H]``."""
        return np.zeros((2, 0), np.int64)

    def at_test(self) -> Self:
        """The task for rules that score the test pairs: a copy where they see more than the visible graphs."""
        return self

    def on_all_links(self) -> Self:
        """A copy that trains on the held-out links too; the task itself where it holds out none."""
        return self

    def metrics_per_node(
        self, score: Callable[[IntArray], npt.NDArray[Any]], seed: int = 0
    ) -> dict[str, float]:
        """Metrics of every node's own ranking, where a node can be asked for its partners."""
        return {}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part}={getattr(self, part).labels.size}" for part in ("train", "val", "test"))
        return f"{type(self).__name__}(graphs={len(self.kept)}, nodes={self.union.num_nodes}, {sizes})"

    def _rng(self, stream: int, place: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, stream, place])

    def _draw(self, pool: Pool, counts: IntArray, stream: int) -> list[IntArray]:
        """Distinct uniform pairs of a pool for train, val and test, ``counts [G, 3]`` of every graph."""
        starts = running_total(pool.sizes)
        parts: list[list[IntArray]] = [[], [], []]
        for g, place in enumerate(self.kept):
            ranks = distinct_integers(int(pool.sizes[g]), int(counts[g].sum()), self._rng(stream, place))
            for part, piece in zip(parts, np.split(ranks, np.cumsum(counts[g])[:-1]), strict=True):
                piece.sort()  # to look up sorted ranks is several times faster
                part.append(piece + starts[g])
        return [pool.unrank(np.concatenate(part)) for part in parts]

    def _draw_anew(self, pools: Sequence[Pool], counts: IntArray, stream: int) -> list[IntArray]:
        """Independent uniform pairs, each of the three parts from a pool of its own: a pair can be met again."""
        rngs = [self._rng(stream, place) for place in self.kept]
        parts = []
        for pool, wanted in zip(pools, counts.T, strict=True):
            ranks = [
                np.sort(rng.integers(size, size=count)) + start
                for rng, size, count, start in zip(
                    rngs, pool.sizes, wanted, running_total(pool.sizes)[:-1], strict=True
                )
            ]
            parts.append(pool.unrank(np.concatenate(ranks)))
        return parts

    def _set_splits(self, positives: Sequence[IntArray], negatives: Sequence[IntArray]) -> None:
        """Make the splits of the pairs ``[2, P]`` of train, val and test, each graph by graph."""
        self.train, self.val, self.test = (
            LabelledPairs(
                np.concatenate([linked, unlinked], axis=1),
                np.repeat(np.array([1, 0], np.float32), [linked.shape[1], unlinked.shape[1]]),
                self._graph_ids(linked[0], unlinked[0]),
            )
            for linked, unlinked in zip(positives, negatives, strict=True)
        )

    def _graph_ids(self, *nodes: IntArray) -> IntArray:
        if self.union.num_graphs == 1:
            return np.broadcast_to(np.int64(0), sum(some.size for some in nodes))
        return np.asarray(self.union.graph_of[np.concatenate(nodes)])


def divide(totals: IntArray, val: float, test: float) -> IntArray:
    """Train, val and test counts ``[*, 3]`` of totals of 3 or more; each is at least 1."""
    val_counts = np.clip(np.rint(val * totals).astype(np.int64), 1, totals - 2)
    test_counts = np.clip(np.rint(test * totals).astype(np.int64), 1, totals - val_counts - 1)
    return np.stack([totals - val_counts - test_counts, val_counts, test_counts], axis=1)


def check_shares(val: float, test: float) -> None:
    """Complain about shares of val and test that leave a split empty."""
    for option, share in (("val", val), ("test", test)):
        if not isinstance(share, (int, float, np.floating)) or not 0 < share < 1:
            raise InputError(f"{option}={share!r} is not a share between 0 and 1; 0.1 is usual")
    if val + test >= 1:
        raise InputError(f"val={val} and test={test} leave nothing for training; make them smaller")


def checked_graphs(graphs: Graph | Sequence[Graph], seed: int) -> list[Graph]:
    """The graphs as a list, once they and the seed are found to be usable; PyG ``Data`` are converted."""
    check_integer("seed", seed, 0)
    if not isinstance(graphs, (list, tuple)):
        if not isinstance(graphs, Graph) and not hasattr(graphs, "edge_index"):
            raise InputError(
                f"pass a graph or a list of them, found a {type(graphs).__name__}; {MAKES_GRAPHS}"
            )
        graphs = [graphs]  # type: ignore[list-item]
    if not graphs:
        raise InputError("no graph was given; pass a graph or a list of them")
    found = [as_graph(graph, f"graph {place}") for place, graph in enumerate(graphs)]
    for graph in found:
        _check_attributes(graph)
    return found


def _check_attributes(graph: Graph) -> None:
    """Complain about features and names that do not belong to the nodes one by one."""
    if graph.node_names is not None and graph.reading is None:  # `read_graph` has looked at them
        check_names(graph.node_names, graph.num_nodes)
    if graph.x is None:
        return
    if graph.x.shape[0] != graph.num_nodes:
        raise InputError(f"x has {graph.x.shape[0]} rows for {graph.num_nodes} nodes; give each node one")
    if not np.isfinite(graph.x).all():
        raise InputError("x holds NaN or infinite numbers; replace them")
