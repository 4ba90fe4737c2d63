"""Link prediction: which pairs of nodes are linked?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer, unknown_name
from psgnn.graph._graph import Adjacency, Graph, GraphBatch, IntArray
from psgnn.graph._sampling import ListedPairs, NonEdges, Pool, pair_code, running_total
from psgnn.kernels._csr import edges_below, mirror
from psgnn.tasks._base import (
    FOLDS,
    NEGATIVES,
    POSITIVES,
    Task,
    check_shares,
    checked_graphs,
    divide,
)
from psgnn.tasks._hard_negatives import hard_negatives
from psgnn.tasks._released import RELEASED, released_pools

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

NEGATIVE_RULES = ("uniform", "degree", "distance", RELEASED)
# A graph without a tenth of its links differs from the whole: roads fall apart. Of a large graph a fortieth is enough
# to learn from.
FOLDS_OF_LARGE, FOLDS_OF_OTHERS = 40, 10


@dataclass(frozen=True, eq=False)
class Fold:
    """Training edges to predict (``positives``, int64 ``[2, P]``) on the graph without them."""

    positives: IntArray
    _edges: IntArray  # all training edges, [2, E]
    _hidden: npt.NDArray[np.bool_]  # which of them are the positives, [E]
    _ptr: IntArray

    @cached_property
    def union(self) -> GraphBatch:
        """The visible graphs without the positives; built at the first use, in O(N + E)."""
        return union_of_edges(self._edges[:, ~self._hidden], self._ptr)


class LinkPrediction(Task):
    """Which pairs of nodes are linked? Positives are edges, negatives unlinked pairs.

    ``val`` and ``test`` are the shares of every graph's edges that are held out, at least one each. A
    split has as many negatives as positives; on a graph with fewer unlinked pairs than edges, the
    splits share them in the same proportion. Of several graphs, those with fewer than three edges or
    three unlinked pairs are left out.

    ``negatives`` says which unlinked pairs: ``"uniform"``; ``"degree"``, whose ends have the degrees of a
    positive's ends; or ``"distance"``, whose ends are as many hops apart as a positive's, all in the visible
    graph (:func:`psgnn.tasks._hard_negatives.hard_negatives` has the rules). Uniform negatives are mostly far
    apart and of low degree, so that telling them from edges is easy.

    ``folds`` is how many parts the training edges are shared out to (`fold`); left out, 10, or 40 of a large graph.

    ``"pgnn-released"`` draws them as P-GNN's released code does, which takes some edges for negatives
    (:mod:`psgnn.tasks._released`). Results on it cannot be compared with any others; it is there to show what
    that costs (:func:`psgnn.tasks.ceiling`).
    """

    name = "link"
    _seeing: LinkPrediction | None = None  # of a blind copy, that which has the test pairs

    def __init__(
        self,
        graphs: Graph | Sequence[Graph],
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        *,
        folds: int | None = None,
        negatives: str = "uniform",
    ) -> None:
        check_shares(val, test)
        graphs = checked_graphs(graphs, seed)
        if folds is not None:
            check_integer("folds", folds, 2)
        if negatives not in NEGATIVE_RULES:
            raise unknown_name("negatives", str(negatives), NEGATIVE_RULES)
        self.negatives = negatives
        adjacencies = [graph.adjacency for graph in graphs]
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
        full = GraphBatch.of_adjacencies([adjacencies[place] for place in self.kept])
        pairs = sorted_edges(full.adjacency)
        counts = divide(edges[self.kept], val, test)  # [G, 3]
        negative_counts = divide(np.minimum(edges, others)[self.kept], val, test)
        all_edges = ListedPairs(pairs, edges[self.kept])
        positives = self._draw(all_edges, counts, POSITIVES)
        self._train_counts = counts[:, 0]
        self.union = union_of_edges(positives[0], full.ptr)
        self.folds = folds or (FOLDS_OF_LARGE if self.union.large else FOLDS_OF_OTHERS)
        if negatives == "uniform":
            drawn = self._draw(NonEdges(full.ptr, pairs), negative_counts, NEGATIVES)
        elif negatives == RELEASED:
            pools = released_pools(all_edges, NonEdges(full.ptr, pairs), positives, counts)
            drawn = self._draw_anew(pools, counts, NEGATIVES)
            self._free_pairs = pools[0]
        else:
            drawn = self._match(negatives, positives, counts, negative_counts, full)
        self._set_splits(positives, drawn)

    def _match(
        self,
        by: str,
        positives: list[IntArray],
        counts: IntArray,
        negative_counts: IntArray,
        full: GraphBatch,
    ) -> list[IntArray]:
        """Negatives for the positives of train, val and test, ``counts [G, 3]`` of every graph."""
        ends = np.cumsum(counts, axis=0)
        parts: list[list[IntArray]] = [[], [], []]
        for g, place in enumerate(self.kept):
            own = [
                pairs[:, end - count : end] - full.ptr[g]
                for pairs, end, count in zip(positives, ends[g], counts[g], strict=True)
            ]
            graphs = self.union.graph(g), full.graph(g)
            drawn = hard_negatives(by, own, negative_counts[g], *graphs, self._rng(NEGATIVES, place))
            for part, piece in zip(parts, drawn, strict=True):
                part.append(piece + full.ptr[g])
        return [np.concatenate(part, axis=1) for part in parts]

    def true_labels(self, pairs: IntArray) -> npt.NDArray[np.float32]:
        """1 for the pairs ``[2, P]``, ``u < v``, that are edges, visible or held out; float32 ``[P]``."""
        edges = [split.pairs[:, split.labels == 1] for split in (self.train, self.val, self.test)]
        linked = np.isin(pair_code(pairs), pair_code(np.concatenate(edges, axis=1)))
        return linked.astype(np.float32)

    @property
    def _train_edges(self) -> IntArray:
        return self.train.pairs[:, : self._train_counts.sum()]  # [2, E]

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
        return Fold(edges[:, hidden], edges, hidden, self.ptr)

    @cached_property
    def _free_pairs(self) -> Pool:
        """All pairs but the positives of all splits and the negatives of val and test."""
        if self._seeing is not None:
            return self._seeing._free_pairs
        taken = [self._train_edges, self.val.pairs, self.test.pairs]
        return NonEdges(self.ptr, np.concatenate(taken, axis=1))

    def blind(self) -> Self:
        """A copy for whoever may look at validation alone; fresh negatives stay clear of the test pairs too."""
        other = super().blind()
        other._seeing = self
        return other

    def sample_negatives(self, size: int, rng: np.random.Generator) -> IntArray:
        """Fresh negatives to train on, ``[2, size]``, independent of each other and in random order.

        Every graph gets its share of ``size`` by its number of training edges, up to rounding, which is
        random too. Within a graph they are uniform over the pairs that are no positive of any split
        and no negative of val or test; with the negatives ``"pgnn-released"`` they are drawn as those of train.
        """
        check_integer("size", size, 0)
        pool = self._free_pairs
        ends = np.cumsum(self._train_counts)
        spread = (np.arange(size) + rng.random()) * (ends[-1] / max(size, 1))
        graph = np.searchsorted(ends[:-1], spread, side="right")
        ranks = np.sort(rng.integers(pool.sizes[graph]) + running_total(pool.sizes)[graph])
        return pool.unrank(ranks)[:, rng.permutation(size)]


def sorted_edges(adjacency: Adjacency) -> IntArray:
    """Every edge once as ``[2, E]`` with ``u < v``, sorted by ``(v, u)``: in the order in which pairs are ranked."""
    edges: IntArray = edges_below(adjacency.indptr, adjacency.indices)
    return edges


def union_of_edges(edges: IntArray, ptr: IntArray) -> GraphBatch:
    """The union of graphs from edges ``u < v`` that are sorted by ``(v, u)``: the rows of half a CSR."""
    u, v = edges
    half = running_total(np.bincount(v, minlength=int(ptr[-1]))), u.astype(np.int32)
    return GraphBatch(Adjacency(*mirror(*half)), ptr)
