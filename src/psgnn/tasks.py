"""What a model may see and what it is asked: splits of node pairs, without leaks.

::

    task = LinkPrediction(data, val=0.1, test=0.1, seed=0)
    task.graphs[0].edge_index   # the visible graph: held-out edges are gone
    task.test.pairs             # int64 [2, P], u < v, ids in the disjoint union of the graphs
    task.test.labels            # float32 [P], 1 for positives and 0 for negatives

Pairs are unordered, positives and negatives never meet, and no pair is in two splits. A seed gives
the same task bit by bit. Every graph has random streams of its own, numbered by its place in the
input, so that its split does not depend on the other graphs.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from psgnn.errors import InputError, unknown_name
from psgnn.graph import Adjacency, IntArray, Union, make_data
from psgnn.kernels import merge_rows, transpose
from psgnn.sampling import (
    DifferentClass,
    ListedPairs,
    NonEdges,
    Pool,
    SameClass,
    distinct_integers,
    running_total,
)

log = logging.getLogger(__name__)

# The visible graphs have these and nothing else of the input: another attribute could hold hidden edges.
KEPT_ATTRIBUTES = ("x", "y", "node_names")

# Streams of random numbers. None is 0, because default_rng([seed, 0, 0]) is default_rng(seed), which
# callers may use for draws of their own.
POSITIVES, NEGATIVES, FOLDS, GRAPHS = 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Split:
    """Labelled pairs: all positives, then all negatives, each graph by graph (shuffle before batching).

    ``pairs`` int64 ``[2, P]`` with ``u < v``, ids in the disjoint union; ``labels`` float32 ``[P]``, 1 or
    0; ``graph_ids`` int64 ``[P]``.
    """

    pairs: torch.Tensor
    labels: torch.Tensor
    graph_ids: torch.Tensor


@dataclass(frozen=True, eq=False)
class Fold:
    """Training edges to predict (``positives``, int64 ``[2, P]``) on the graph without them."""

    positives: torch.Tensor
    _edges: IntArray  # all training edges, [2, E]
    _hidden: npt.NDArray[np.bool_]  # which of them are the positives, [E]
    _ptr: IntArray

    @cached_property
    def union(self) -> Union:
        """The visible graphs without the positives; built at the first use, in O(N + E)."""
        return _union_of_edges(self._edges[:, ~self._hidden], self._ptr)


class Task:
    """The visible graphs and the three splits: what both tasks share.

    ``kept`` and ``dropped`` are the places, in the input, of the graphs that can and cannot be split.
    """

    name: ClassVar[str]
    union: Union
    train: Split
    val: Split
    test: Split

    def __init__(
        self, graphs: Sequence[Data], seed: int, usable: npt.NDArray[np.bool_], problem: Callable[[int], str]
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
        self._attributes: list[dict[str, Any]] = [
            {key: graphs[place][key] for key in KEPT_ATTRIBUTES if key in graphs[place]}
            for place in self.kept
        ]

    @property
    def ptr(self) -> IntArray:
        """Graph ``g`` owns the nodes ``ptr[g]:ptr[g + 1]`` of the disjoint union."""
        return self.union.ptr

    @cached_property
    def graphs(self) -> list[Data]:
        """What the model may see; held-out edges are gone."""
        return [make_data(self.union.graph(g), **own) for g, own in enumerate(self._attributes)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the splits and the visible edges: equal digests mean the same task."""
        adjacency = self.union.adjacency
        arrays: list[npt.NDArray[Any]] = [self.ptr, adjacency.indptr, adjacency.indices]
        for split in (self.train, self.val, self.test):
            arrays += [split.pairs.numpy(), split.labels.numpy()]
        sha = hashlib.sha256(self.name.encode())
        for array in arrays:
            sha.update(f"{array.dtype.str}{array.shape}".encode())
            sha.update(np.ascontiguousarray(array).data)
        return sha.hexdigest()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part}={getattr(self, part).labels.numel()}" for part in ("train", "val", "test"))
        return f"{type(self).__name__}(graphs={len(self.kept)}, nodes={self.union.num_nodes}, {sizes})"

    def _rng(self, stream: int, place: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, stream, place])

    def _split(
        self, positives: Pool, negatives: Pool, wanted: IntArray, divide: Callable[[IntArray], IntArray]
    ) -> None:
        """Draw ``wanted [G]`` positives and, where there are so many, as many negatives from every graph."""
        positive_counts = divide(wanted)  # [G, 3]
        negative_counts = divide(np.minimum(wanted, negatives.sizes))
        positive_ranks = self._draw(positives.sizes, positive_counts, POSITIVES)
        negative_ranks = self._draw(negatives.sizes, negative_counts, NEGATIVES)
        graph_ids = np.tile(np.arange(len(self.kept)), 2)
        splits = []
        for part in range(3):
            pairs = [positives.unrank(positive_ranks[part]), negatives.unrank(negative_ranks[part])]
            labels = np.repeat(np.array([1, 0], np.float32), [len(pairs[0][0]), len(pairs[1][0])])
            counts = np.concatenate([positive_counts[:, part], negative_counts[:, part]])
            splits.append(
                Split(
                    torch.from_numpy(np.concatenate(pairs, axis=1)),
                    torch.from_numpy(labels),
                    torch.from_numpy(np.repeat(graph_ids, counts)),
                )
            )
        self.train, self.val, self.test = splits

    def _draw(self, sizes: IntArray, counts: IntArray, stream: int) -> list[IntArray]:
        """Distinct uniform ranks for train, val and test, ``counts [G, 3]`` of a pool's ``sizes [G]``."""
        starts = running_total(sizes)
        parts: list[list[IntArray]] = [[], [], []]
        for g, place in enumerate(self.kept):
            ranks = distinct_integers(int(sizes[g]), int(counts[g].sum()), self._rng(stream, place))
            for part, piece in zip(parts, np.split(ranks, np.cumsum(counts[g])[:-1]), strict=True):
                piece.sort()  # to look up sorted ranks is several times faster
                part.append(piece + starts[g])
        return [np.concatenate(part) for part in parts]


class LinkPrediction(Task):
    """Which pairs of nodes are linked? Positives are edges, negatives unlinked pairs.

    ``val`` and ``test`` are the shares of every graph's edges that are held out, at least one each. A
    split has as many negatives as positives; on a graph with fewer unlinked pairs than edges, the
    splits share them in the same proportion. Of several graphs, those with fewer than three edges or
    three unlinked pairs are left out.
    """

    name = "link"

    def __init__(
        self,
        graphs: Data | Sequence[Data],
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        *,
        folds: int = 10,
    ) -> None:
        graphs = _checked(graphs, val, test, seed)
        _check_integer("folds", folds, 2)
        self.folds = int(folds)
        adjacencies = [Adjacency.from_data(graph) for graph in graphs]
        edges = np.array([adjacency.num_edges for adjacency in adjacencies])
        nodes = np.array([adjacency.num_nodes for adjacency in adjacencies])
        others = nodes * (nodes - 1) // 2 - edges
        super().__init__(
            graphs,
            seed,
            (edges >= 3) & (others >= 3),
            lambda g: (
                f"it has {edges[g]} edges and {others[g]} unlinked pairs, at least 3 of each are needed "
                f"(train, val, test); use a larger or sparser graph"
            ),
        )
        full = Union.of_adjacencies([adjacencies[place] for place in self.kept])
        # Read off the lower triangle of the CSR, edges come in the order in which pairs are ranked.
        lower = full.adjacency.rows > full.adjacency.indices
        pairs = np.stack([full.adjacency.indices[lower], full.adjacency.rows[lower]]).astype(np.int64)
        self._train_counts = _divide(edges[self.kept], val, test)[:, 0]
        self._split(
            ListedPairs(pairs, edges[self.kept]),
            NonEdges(full.ptr, pairs),
            wanted=edges[self.kept],
            divide=lambda totals: _divide(totals, val, test),
        )
        self.union = _union_of_edges(self._train_edges, full.ptr)

    @property
    def _train_edges(self) -> IntArray:
        edges: IntArray = self.train.pairs.numpy()
        return edges[:, : self._train_counts.sum()]  # [2, E]

    @cached_property
    def _fold_of(self) -> npt.NDArray[np.int32]:
        """The fold of every training edge, ``[E]``."""
        parts = []
        for place, count in zip(self.kept, self._train_counts, strict=True):
            rng = self._rng(FOLDS, place)
            # From a random first fold on, or the edges of small graphs would all be in the first folds.
            parts.append(rng.permutation((np.arange(count) + rng.integers(self.folds)) % self.folds))
        return np.concatenate(parts).astype(np.int32)

    def fold(self, f: int) -> Fold:
        """The training edges of fold ``f`` of ``folds``, and the visible graphs without them.

        A model that is asked for an edge it can see learns that linked nodes are one hop apart, and
        at test time no pair is. So the positives of a training step are hidden from its graph. The
        folds share out every graph's edges evenly; on a small graph some get none.
        """
        if f not in range(self.folds):
            raise InputError(f"there is no fold {f!r}; the task has folds 0..{self.folds - 1}")
        edges, hidden = self._train_edges, self._fold_of == f
        return Fold(torch.from_numpy(edges[:, hidden]), edges, hidden, self.ptr)

    @cached_property
    def _free_pairs(self) -> NonEdges:
        """All pairs but the positives of all splits and the negatives of val and test."""
        taken = [self._train_edges, self.val.pairs.numpy(), self.test.pairs.numpy()]
        return NonEdges(self.ptr, np.concatenate(taken, axis=1))

    def sample_negatives(self, size: int, rng: np.random.Generator) -> torch.Tensor:
        """Fresh negatives to train on, ``[2, size]``, independent of each other and in random order.

        Every graph gets its share of ``size`` by its number of training edges, up to rounding, which is
        random too. Within a graph they are uniform over the pairs that are no positive of any split
        and no negative of val or test.
        """
        _check_integer("size", size, 0)
        pool = self._free_pairs
        ends = np.cumsum(self._train_counts)
        spread = (np.arange(size) + rng.random()) * (ends[-1] / max(size, 1))
        graph = np.searchsorted(ends[:-1], spread, side="right")
        ranks = np.sort(rng.integers(pool.sizes[graph]) + running_total(pool.sizes)[graph])
        return torch.from_numpy(pool.unrank(ranks)[:, rng.permutation(size)])


class PairClassification(Task):
    """Are two nodes of the same class? Positives are pairs of equal ``data.y``, negatives of unequal.

    The graphs are visible in full; nodes with ``y < 0`` are of unknown class and in no pair. Positives
    are all same-class pairs, or a uniform sample of ``max_pairs`` of them, shared by the graphs in
    proportion to what they have. There are as many negatives, or all where a graph has fewer.

    ``holdout="pairs"`` splits the pairs of every graph; ``holdout="graphs"`` holds out whole graphs, so
    that a model is asked about graphs that it has not been trained on. Of several graphs, those that
    cannot give a positive and a negative to each of their splits are left out.
    """

    name = "pair"

    def __init__(
        self,
        graphs: Data | Sequence[Data],
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        *,
        max_pairs: int = 1_000_000,
        holdout: str = "pairs",
    ) -> None:
        graphs = _checked(graphs, val, test, seed)
        if holdout not in ("pairs", "graphs"):
            raise unknown_name("holdout", str(holdout), ["pairs", "graphs"])
        classes = [_classes(graph, place) for place, graph in enumerate(graphs)]
        adjacencies = [Adjacency.from_data(graph) for graph in graphs]
        edges = np.array([adjacency.num_edges for adjacency in adjacencies])
        ptr = running_total(np.array([adjacency.num_nodes for adjacency in adjacencies]))
        same = SameClass(ptr, np.concatenate(classes)).sizes
        different = DifferentClass(ptr, np.concatenate(classes)).sizes
        need = 3 if holdout == "pairs" else 1

        def problem(g: int) -> str:
            if not edges[g]:
                return f"it has {classes[g].size} nodes and no edges; use a graph that has some"
            known = classes[g][classes[g] >= 0]
            if known.size and not different[g]:
                return f"all its {known.size} labelled nodes are of class {known[0]}; label a second class"
            return (
                f"it has {same[g]} same-class and {different[g]} different-class pairs, at least {need} of "
                f"each are needed; label more nodes"
            )

        super().__init__(graphs, seed, (edges > 0) & (same >= need) & (different >= need), problem)
        least = need * len(self.kept)  # so that every graph has its place in every split
        _check_integer("max_pairs", max_pairs, least)
        self.union = Union.of_adjacencies([adjacencies[place] for place in self.kept])
        kept_classes = np.concatenate([classes[place] for place in self.kept])
        wanted = same[self.kept]
        if wanted.sum() > max_pairs:
            share = running_total(wanted - need) / (wanted - need).sum()
            wanted = need + np.diff(np.floor((max_pairs - least) * share).astype(np.int64))
        self._split(
            SameClass(self.ptr, kept_classes),
            DifferentClass(self.ptr, kept_classes),
            wanted,
            divide=self._hold_out_graphs(val, test)
            if holdout == "graphs"
            else lambda totals: _divide(totals, val, test),
        )

    def _hold_out_graphs(self, val: float, test: float) -> Callable[[IntArray], IntArray]:
        num_graphs = len(self.kept)
        if num_graphs < 3:
            raise InputError(
                f"holdout='graphs' needs at least 3 graphs that can be used, found {num_graphs}; "
                f"use holdout='pairs'"
            )
        sizes = _divide(np.array([num_graphs]), val, test)[0]
        part = self._rng(GRAPHS, 0).permutation(np.repeat(np.arange(3), sizes))
        return lambda totals: totals[:, None] * np.eye(3, dtype=np.int64)[part]


def _divide(totals: IntArray, val: float, test: float) -> IntArray:
    """Train, val and test counts ``[*, 3]`` of totals of 3 or more; each is at least 1."""
    val_counts = np.clip(np.rint(val * totals).astype(np.int64), 1, totals - 2)
    test_counts = np.clip(np.rint(test * totals).astype(np.int64), 1, totals - val_counts - 1)
    return np.stack([totals - val_counts - test_counts, val_counts, test_counts], axis=1)


def _union_of_edges(edges: IntArray, ptr: IntArray) -> Union:
    """The union of graphs from edges ``u < v`` that are sorted by ``(v, u)``: the rows of half a CSR."""
    u, v = edges
    half = running_total(np.bincount(v, minlength=int(ptr[-1]))), u.astype(np.int32)
    return Union(Adjacency(*merge_rows(*half, *transpose(*half))), ptr)


def _checked(graphs: Data | Sequence[Data], val: float, test: float, seed: int) -> list[Data]:
    """The graphs as a list, once the arguments of a task are found to be usable."""
    for option, share in (("val", val), ("test", test)):
        if not isinstance(share, (int, float, np.floating)) or not 0 < share < 1:
            raise InputError(f"{option}={share!r} is not a share between 0 and 1; 0.1 is usual")
    if val + test >= 1:
        raise InputError(f"val={val} and test={test} leave nothing for training; make them smaller")
    _check_integer("seed", seed, 0)
    graphs = [graphs] if isinstance(graphs, Data) else list(graphs)
    if not graphs:
        raise InputError("no graph was given; pass a torch_geometric Data or a list of them")
    for place, graph in enumerate(graphs):
        if not isinstance(graph, Data) or not isinstance(graph.edge_index, torch.Tensor):
            raise InputError(
                f"graph {place} is a {type(graph).__name__} without edge_index; pass torch_geometric Data, "
                f"such as psgnn.read_graph gives"
            )
    return graphs


def _check_integer(option: str, value: object, least: int) -> None:
    if not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{option}={value!r} is not an integer of {least} or more")


def _classes(graph: Data, place: int) -> IntArray:
    """The class of every node, int64 ``[N]``."""
    y = graph.y
    if y is None:
        raise InputError(f"graph {place} has no node classes; set its y to an integer tensor [N]")
    if y.is_floating_point() or y.numel() != graph.num_nodes:
        raise InputError(
            f"graph {place} has {graph.num_nodes} nodes, but its y is {y.dtype} of shape {list(y.shape)}; "
            f"set y to an integer tensor [N]"
        )
    return np.asarray(y.detach().cpu().numpy(), dtype=np.int64).reshape(-1)
