"""Anchors learned from the training pairs before training: by boosting, and by random search as its control."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from psgnn.anchors._rules import anchor_counts, batch_anchors
from psgnn.distances._oracle import DistanceOracle
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.kernels._anchors import CELLS, RIDGE, cell_gains, pair_cells
from psgnn.models._anchor_sets import AnchorSet
from psgnn.models._interfaces import Picker, Seen
from psgnn.models._view import TensorView

Floats = npt.NDArray[np.float64]
STEP = 0.5
MOST_CANDIDATES, MOST_PAIRS = 1024, 20_000
MOST_MEASURED = 2 * 10**8  # hops from candidates to nodes, two bytes each


class _Boost:
    """An additive score: one table over the cells of each anchor, each fitted to what those before leave open."""

    def __init__(self, cells: npt.NDArray[np.uint8], labels: Floats) -> None:
        self.cells, self.labels = cells, labels
        self.score = np.zeros(labels.size)
        self.tables: dict[int, Floats] = {}  # by candidate

    def with_tables(self, candidates: IntArray) -> _Boost:
        """Fit tables of these candidates, one after another."""
        for candidate in candidates:
            self.add(int(candidate))
        return self

    def explained(self) -> list[float]:
        """The share of the log-loss that the first 1, 2, ... tables explain."""
        parts = np.array([table[self.cells[candidate]] for candidate, table in self.tables.items()])
        scores = np.cumsum(parts, axis=0)  # [K, P]
        without = self.labels.size * np.log(2)
        return [round(1 - _log_loss(score, self.labels) / without, 4) for score in scores]

    def score_of(self, cells: npt.NDArray[np.uint8]) -> Floats:
        """The score of other pairs, ``[P]``."""
        parts = [table[cells[candidate]] for candidate, table in self.tables.items()]
        return np.asarray(np.sum(parts, axis=0))

    def _slope(self) -> tuple[Floats, Floats]:
        p = 1 / (1 + np.exp(-self.score))
        return self.labels - p, p * (1 - p)

    def best(self) -> int:
        """The candidate that would bring most and is not chosen yet."""
        gains = np.empty(self.cells.shape[0])
        cell_gains(self.cells, *self._slope(), gains)
        gains[list(self.tables)] = -1
        return int(np.argmax(gains))

    def add(self, candidate: int) -> None:
        """Give a candidate a table: a shortened Newton step on the log-loss."""
        slope, curve = self._slope()
        cell = self.cells[candidate]
        table = STEP * np.bincount(cell, slope, CELLS) / (np.bincount(cell, curve, CELLS) + RIDGE)
        self.tables[candidate] = table
        self.score += table[cell]


def _log_loss(score: Floats, labels: Floats) -> float:
    return float(np.logaddexp(0, np.where(labels == 1, -score, score)).sum())


class LearnedPicker(Picker):
    r"""Anchors that explain the training pairs of their graph; fixed once they are learned.

    ``boosted``: one after another, each the node whose table :math:`t(|d_u - d_v|, \min(d_u, d_v))` lowers the
    log-loss of the training pairs most, given the tables of the anchors so far. ``random-search``, the
    control: as many random sets as ``boosted`` looks at candidates, tables fitted in the same way, and of them the
    set with the lowest log-loss on the validation pairs. A graph without pairs to learn from gets farthest-first
    anchors. On graphs of more than `MOST_CANDIDATES` nodes the candidates are a random sample.
    """

    learns_first = True

    def __init__(self, method: str, k: int | str, seed: int = 0) -> None:
        super().__init__()
        self.method, self.k, self.seed = method, k, seed
        self._learned: tuple[GraphBatch, IntArray] | None = None

    def keeps_anchors(self, reads_positions: bool) -> bool:
        """Keep what was learned."""
        return True

    def learn(self, view: TensorView, training: Sequence[Seen], validation: Seen) -> None:
        """Choose the anchors of every graph of the view from pairs of known label."""
        many = anchor_counts(view.union, self.k)
        nodes = self._spread(view)
        self.explained = [[] for _ in many]
        for g, count in enumerate(many):
            found = self._of_graph(view, g, int(count), training, validation)
            if found is not None:
                nodes[g, :count], self.explained[g] = found
        self._learned = view.union, nodes

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """The learned anchors; on other graphs, on which nothing was learned, farthest-first ones."""
        if self._learned is not None and self._learned[0] is view.union:
            return AnchorSet.plain(self._learned[1])
        return AnchorSet.plain(self._spread(view))

    def _spread(self, view: TensorView) -> IntArray:
        return batch_anchors(view.union, "farthest-first", self.k, self.seed)

    def _of_graph(
        self, view: TensorView, g: int, count: int, training: Sequence[Seen], validation: Seen
    ) -> tuple[IntArray, list[float]] | None:
        """The anchors of a graph and what they explain; None without pairs of both labels."""
        rng = np.random.default_rng([self.seed, g])
        size, first = int(view.union.sizes[g]), int(view.union.ptr[g])
        most = min(size, max(min(MOST_CANDIDATES, MOST_MEASURED // size), count))
        candidates = np.sort(rng.choice(size, most, replace=False)) + first
        cells, labels = _table(training, g, candidates, rng)
        if not 0 < labels.sum() < labels.size:
            return None
        if self.method == "random-search":
            seen, truth = _table([validation], g, candidates, rng)
            tries = (
                _Boost(cells, labels).with_tables(rng.choice(most, count, replace=False)) for _ in candidates
            )
            boost = min(tries, key=lambda boost: _log_loss(boost.score_of(seen), truth))
        else:
            boost = _Boost(cells, labels)
            for _ in range(count):
                boost.add(boost.best())
        return candidates[list(boost.tables)], boost.explained()


def _table(
    known: Sequence[Seen], g: int, candidates: IntArray, rng: np.random.Generator
) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Cells ``[C, P]`` and labels ``[P]`` of the pairs of a graph, a random part of them where there are many."""
    cells, labels = [], []
    for view, part in known:
        union = view.union
        own = np.flatnonzero(part.graph_ids == g)
        most = MOST_PAIRS // len(known)
        if own.size > most:
            own = np.sort(rng.choice(own, most, replace=False))
        first = int(union.ptr[g])
        hops = DistanceOracle(GraphBatch.of_adjacencies([union.graph(g)])).hops(candidates - first)
        found = np.empty((candidates.size, own.size), np.uint8)
        us, vs = np.ascontiguousarray(part.pairs[:, own] - first)
        pair_cells(hops, us, vs, found)
        cells.append(found)
        labels.append(part.labels[own].astype(np.float64))
    return np.concatenate(cells, axis=1), np.concatenate(labels)
