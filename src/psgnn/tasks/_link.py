"""Link prediction: which pairs of nodes are linked?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, check_integer, unknown_name
from psgnn.graph._graph import Graph, GraphBatch, IntArray
from psgnn.graph._kinds import Kinds, Numbers
from psgnn.graph._pair_space import KnownLinks, PairSpace, rivals_of
from psgnn.graph._sampling import ListedPairs, NonEdges, Pool, running_total
from psgnn.tasks._base import (
    FOLDS,
    NEGATIVES,
    POSITIVES,
    LabelledPairs,
    Task,
    check_shares,
    checked_graphs,
    divide,
)
from psgnn.tasks._links import countable, given_pairs
from psgnn.tasks._metrics import check_metric
from psgnn.tasks._negatives import RELEASED, hard_negatives, released_pools
from psgnn.tasks._per_node import metrics_per_node

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

SPLITS = ("random", "time")
NEGATIVE_RULES = ("uniform", "degree", "distance", RELEASED)
# A graph without a tenth of its links differs from the whole: roads fall apart. Of a large graph a fortieth is enough
# to learn from.
FOLDS_OF_LARGE, FOLDS_OF_OTHERS = 40, 10


@dataclass(frozen=True, eq=False)
class Fold:
    """Training edges to predict (``positives``, int64 ``[2, P]``) on the graph without them."""

    positives: IntArray
    _make: Callable[[], GraphBatch] = field(repr=False)

    @cached_property
    def union(self) -> GraphBatch:
        """The visible graphs without the positives; built at the first use, in O(N + E)."""
        return self._make()


class LinkPrediction(Task):
    """Predict which pairs of nodes are linked: positives are edges, negatives unlinked pairs.

    A split has as many negatives as positives. Where a graph has fewer unlinked pairs than edges, the splits share
    them in the same proportion. Of several graphs, those with fewer than three edges or three unlinked pairs are left
    out.

    In directed graphs pairs are ordered: source and target. Where nodes have sides, positives and negatives are
    between side 0 and side 1, from 0 to 1 if the graph is directed. Other links are seen and never asked about.

    Args:
        graphs: A graph, or several.
        val: Share of each graph's edges that validate, one at least.
        test: Share of each graph's edges that test, one at least.
        seed: Of the splits.
        folds: How many parts the training edges have (`fold`). Default: 10, or 40 on large graphs.
        negatives: Which unlinked pairs: ``"uniform"``; ``"degree"``, whose ends have the degrees of a positive's
            ends; or ``"distance"``, whose ends are as many hops apart as a positive's in the visible graph. Uniform
            ones are mostly far apart and of low degree, so they are easy to tell from edges. ``"pgnn-released"``
            draws as P-GNN's released code does, which takes some edges for negatives; such results cannot be compared
            with others
            (`psgnn.tasks.ceiling`).
        split: ``"random"``, or ``"time"``: the oldest first occurrences train, the newest test. Default: by time
            where edges have times. Then the visible graph is what was known when the last training edge was first
            seen, and negatives are pairs that never occur.
        val_links: Pairs ``[2, P]`` of a split of your own. Default: with `test_links`, a share of the graph's edges.
        test_links: Pairs ``[2, P]`` of a split of your own, for one graph, which has the training edges alone.
        val_nonlinks: Negatives beside `val_links`. Default: they are drawn.
        test_nonlinks: Negatives beside `test_links`. Default: they are drawn.
        test_sees_validation: Show the validation links to scorers of the test pairs, as on SEAL's splits.
        headline: The metric that validation chooses by.
    """

    name = "link"
    holds_out_links = True
    folds: int
    _seeing: LinkPrediction | None = None  # of a blind copy, that which has the test pairs
    _until: Numbers | None = None  # the last moment that is seen, [G]
    test_sees_validation = False

    def __init__(
        self,
        graphs: Graph | Sequence[Graph],
        val: float = 0.1,
        test: float = 0.1,
        seed: int = 0,
        *,
        folds: int | None = None,
        negatives: str = "uniform",
        split: str | None = None,
        val_links: npt.ArrayLike | None = None,
        test_links: npt.ArrayLike | None = None,
        val_nonlinks: npt.ArrayLike | None = None,
        test_nonlinks: npt.ArrayLike | None = None,
        test_sees_validation: bool = False,
        headline: str = "auc",
    ) -> None:
        check_shares(val, test)
        graphs = checked_graphs(graphs, seed)
        if folds is not None:
            check_integer("folds", folds, 2)
        if negatives not in NEGATIVE_RULES:
            raise unknown_name("negatives", str(negatives), NEGATIVE_RULES)
        asked = {
            "val_links": val_links,
            "test_links": test_links,
            "val_nonlinks": val_nonlinks,
            "test_nonlinks": test_nonlinks,
        }
        given = {name: part for name, part in asked.items() if part is not None}
        self.negatives, self.headline = negatives, check_metric(headline)
        self.test_sees_validation = test_sees_validation
        self.split = _split(split, graphs)
        known, pairs = np.array([countable(graph) for graph in graphs]).T
        others = pairs - known
        between = " between its sides" if graphs[0].sides is not None else ""
        super().__init__(
            graphs,
            seed,
            (known >= 3) & (others >= 3),
            lambda g: (
                f"it has {known[g]} edges and {others[g]} unlinked pairs{between}, at least 3 of each are needed "
                f"(train, val, test); use a larger or sparser graph"
            ),
        )
        self._links = KnownLinks(GraphBatch.of([graphs[place] for place in self.kept]))
        if given:
            self._take(given, val)
        else:
            self._share_out(val, test)
        self.folds = folds or (FOLDS_OF_LARGE if self.union.large else FOLDS_OF_OTHERS)

    @property
    def space(self) -> PairSpace:
        """The pairs that links can be."""
        return self._links.space

    @property
    def whole_kinds(self) -> Kinds | None:
        """What all links carry, also those that are held out."""
        return self._links.full.kinds

    @cached_property
    def test_union(self) -> GraphBatch:
        """The graphs that scores of the test pairs may see, with the validation links if that was asked for."""
        if not self.test_sees_validation:
            return self.union
        shown = [self._train_edges, self.val.pairs[:, self.val.labels == 1]]
        ranks = np.sort(self.space.rank(np.concatenate(shown, axis=1)))
        return self._links.visible(self.space.unrank(ranks), self._until)

    def at_test(self) -> Self:
        """The task for rules that score the test pairs: its visible graphs are those of `test_union`."""
        if not self.test_sees_validation:
            return self
        other = copy(self)
        other.union = self.test_union
        for cached in ("graphs", "digest"):
            other.__dict__.pop(cached, None)
        return other

    def _share_out(self, val: float, test: float) -> None:
        """Make the splits of the edges of the graphs."""
        links, full, negatives = self._links, self._links.full, self.negatives
        counts = divide(links.counts, val, test)  # [G, 3]
        negative_counts = divide(np.minimum(links.counts, self.space.sizes - links.counts), val, test)
        all_edges = ListedPairs(links.pairs, links.counts)
        positives = self._positives(all_edges, counts)
        self._train_counts = counts[:, 0]
        self.union = links.visible(positives[0], self._until)
        if negatives != "uniform" and not self.space.plain:
            raise InputError(
                f"negatives='{negatives}' goes with undirected graphs without sides; use negatives='uniform'"
            )
        if negatives == "uniform":
            drawn = self._draw(NonEdges(self.space, links.pairs), negative_counts, NEGATIVES)
        elif negatives == RELEASED:
            pools = released_pools(all_edges, NonEdges(self.space, links.pairs), positives, counts)
            drawn = self._draw_anew(pools, counts, NEGATIVES)
            self._free_pairs = pools[0]
        else:
            drawn = self._match(negatives, positives, counts, negative_counts, full)
        self._set_splits(positives, drawn)

    def _positives(self, edges: ListedPairs, counts: IntArray) -> list[IntArray]:
        """The edges of train, val and test, ``counts [G, 3]`` of every graph, each sorted by rank."""
        times = self._links.times
        if self.split == "random":
            return self._draw(edges, counts, POSITIVES)
        assert times is not None
        starts, until = running_total(edges.sizes), []
        parts: list[list[IntArray]] = [[], [], []]
        for g, place in enumerate(self.kept):
            own = times[starts[g] : starts[g + 1]]
            # Edges of the same moment, such as the same day, are in random order.
            order = np.lexsort((self._rng(POSITIVES, place).random(own.size), own))
            until.append(own[order[counts[g, 0] - 1]])
            for part, piece in zip(parts, np.split(order, np.cumsum(counts[g])[:-1]), strict=True):
                part.append(np.sort(piece) + starts[g])
        self._until = np.array(until)
        return [edges.unrank(np.concatenate(part)) for part in parts]

    def _take(self, given: dict[str, npt.ArrayLike], val: float) -> None:
        """Make the splits of pairs that were given, and draw what is missing."""
        if len(self.kept) + len(self.dropped) > 1:
            raise InputError(f"a split of your own goes with one graph, found {len(self.kept)}")
        if "test_links" not in given:
            raise InputError(f"{next(iter(given))} goes with test_links; give those too")
        if self.negatives != "uniform":
            raise InputError(f"negatives='{self.negatives}' goes with a split that psgnn draws")
        links = self._links
        parts = given_pairs(given, links.pairs, self.space, self._known[0].names)
        train, held_out = links.pairs, parts.get("val_links")
        if held_out is None:
            held = min(max(round(val * links.counts[0]), 1), links.counts[0] - 1)
            counts = np.array([[links.counts[0] - held, held, 0]])
            train, held_out, _ = self._positives(ListedPairs(links.pairs, links.counts), counts)
        positives = [train, held_out, parts["test_links"]]
        self._train_counts = np.array([train.shape[1]])
        self.union = links.visible(train, self._until)
        taken = [links.pairs, *parts.values()]
        pool = NonEdges(self.space, np.concatenate(taken, axis=1))
        drawn = [None, parts.get("val_nonlinks"), parts.get("test_nonlinks")]
        wanted = np.array(
            [0 if some is not None else p.shape[1] for some, p in zip(drawn, positives, strict=True)]
        )
        free = int(pool.sizes[0])
        if wanted.sum() > free:
            wanted[0] = max(free - wanted[1:].sum(), 0)
            if not wanted[0]:
                raise InputError(
                    f"the split leaves {free} unlinked pairs to draw negatives from; give fewer links"
                )
        sampled = self._draw(pool, wanted[None], NEGATIVES)
        self._set_splits(
            positives, [own if some is None else some for some, own in zip(drawn, sampled, strict=True)]
        )

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
        """1 for the pairs ``[2, P]`` that are edges, visible or held out; float32 ``[P]``."""
        edges = [split.pairs[:, split.labels == 1] for split in (self.train, self.val, self.test)]
        linked = np.isin(self.space.rank(pairs), self.space.rank(np.concatenate(edges, axis=1)))
        return linked.astype(np.float32)

    @property
    def hidden_links(self) -> IntArray:
        """Positives of validation and test, ``[2, H]``."""
        return np.concatenate([split.pairs[:, split.labels == 1] for split in (self.val, self.test)], axis=1)

    def metrics_per_node(
        self, score: Callable[[IntArray], npt.NDArray[Any]], seed: int = 0
    ) -> dict[str, float]:
        """The rank of each test link among other partners of its node (`psgnn.tasks._per_node`)."""
        return metrics_per_node(self, score, seed)

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

        Where the split is by time, a fold hides what came after a moment, as the test does, and asks for what came
        next. The moments lie between 65 % and 80 % of the training edges, since links of long ago came about otherwise.
        Fold 0 has the last one.
        """
        if f not in range(self.folds):
            raise InputError(f"there is no fold {f!r}; the task has folds 0..{self.folds - 1}")
        edges = self._train_edges
        if self.split == "time":
            shown, asked, until = self._links.window(edges, 0.8 - 0.15 * f / self.folds)
            return Fold(asked, lambda: self._links.visible(shown, until))
        hidden = self._fold_of == f
        return Fold(edges[:, hidden], lambda: self._links.visible(edges[:, ~hidden], self._until))

    @cached_property
    def _free_pairs(self) -> Pool:
        """All pairs but the positives of all splits and the negatives of val and test."""
        if self._seeing is not None:
            return self._seeing._free_pairs
        return NonEdges(self.space, self._taken)

    @property
    def _taken(self) -> IntArray:
        return np.concatenate([self._train_edges, self.val.pairs, self.test.pairs], axis=1)

    @cached_property
    def _taken_ranks(self) -> IntArray:
        """The ranks of what `_free_pairs` leaves out, sorted."""
        return np.sort(self.space.rank((self._seeing or self)._taken))

    def blind(self) -> Self:
        """A copy for whoever may look at validation alone; fresh negatives stay clear of the test pairs too."""
        other = super().blind()
        other._seeing = self
        return other

    def on_all_links(self) -> Self:
        """A copy whose training pairs and visible graphs have the held-out links too.

        Nothing is left to measure a model by that was trained on it: its validation and test pairs are those of this
        task, and their positives are visible.
        """
        other, links = copy(self), self._links
        ranks = np.sort(self.space.rank(np.concatenate([self._train_edges, self.hidden_links], axis=1)))
        positives = self.space.unrank(ranks)
        if links.full.kinds is not None and not np.isin(ranks, self.space.rank(links.pairs)).all():
            raise InputError(
                "held-out links of a split of your own have no direction, strength or time to train with; "
                "add them to the graph, or leave out refit"
            )
        other._until, other.union = None, links.visible(positives)
        other._train_counts = np.bincount(other.union.graph_of[positives[0]], minlength=len(self.kept))
        negatives = self.train.pairs[:, self.train.labels == 0]
        other.train = LabelledPairs(
            np.concatenate([positives, negatives], axis=1),
            np.repeat(np.array([1, 0], np.float32), [positives.shape[1], negatives.shape[1]]),
            self._graph_ids(positives[0], negatives[0]),
        )
        for cached in ("graphs", "digest", "_fold_of", "test_union"):
            other.__dict__.pop(cached, None)
        other._free_pairs = NonEdges(self.space, positives)
        return other

    def sample_negatives(self, size: int, rng: np.random.Generator) -> IntArray:
        """Fresh negatives to train on, ``[2, size]``, independent of each other and in random order.

        Every graph gets its share of ``size`` by its number of training edges, up to rounding, which is
        random too. Within a graph they are uniform over the pairs that are neither a positive of any split
        nor a negative of val or test; with the negatives ``"pgnn-released"`` they are drawn as those of train.
        """
        check_integer("size", size, 0)
        pool = self._free_pairs
        ends = np.cumsum(self._train_counts)
        spread = (np.arange(size) + rng.random()) * (ends[-1] / max(size, 1))
        graph = np.searchsorted(ends[:-1], spread, side="right")
        ranks = np.sort(rng.integers(pool.sizes[graph]) + running_total(pool.sizes)[graph])
        return pool.unrank(ranks)[:, rng.permutation(size)]

    def rivals(self, links: IntArray, rng: np.random.Generator) -> IntArray:
        """An unlinked pair for each of the links ``[2, L]``, with the node that asks for the link (`rivals_of`)."""
        others = self.sample_negatives(links.shape[1], rng)
        return rivals_of(self.space, self.union.graph_of, links, others, self._taken_ranks)


def _split(asked: str | None, graphs: Sequence[Graph]) -> str:
    """How positives are shared out: as asked, or by time where edges have times."""
    timed = all(graph.times is not None for graph in graphs)
    if asked is None:
        return "time" if timed else "random"
    if asked not in SPLITS:
        raise unknown_name("split", str(asked), SPLITS)
    if asked == "time" and not timed:
        raise InputError("split='time' needs edges with times, which the graph has not; use split='random'")
    return asked
