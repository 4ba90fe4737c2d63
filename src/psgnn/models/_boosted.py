"""Anchors learnt from the training pairs before anything else is: by boosting, and by random search as its control."""

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


class _Boost:
    """An additive score: one table over the cells of each anchor, each fitted to what the others leave open."""

    def __init__(self, cells: npt.NDArray[np.uint8], labels: Floats) -> None:
        self.cells, self.labels = cells, labels
        self.score = np.zeros(labels.size)

    def _slope(self) -> tuple[Floats, Floats]:
        p = 1 / (1 + np.exp(-self.score))
        return self.labels - p, p * (1 - p)

    def gains(self) -> Floats:
        """What each candidate would bring, ``[C]``."""
        out = np.empty(self.cells.shape[0])
        cell_gains(self.cells, *self._slope(), out)
        return out

    def add(self, candidate: int) -> Floats:
        """Fit the candidate's table, ``[CELLS]``, and add it to the score."""
        slope, curve = self._slope()
        cell = self.cells[candidate]
        table = np.bincount(cell, slope, CELLS) / (np.bincount(cell, curve, CELLS) + RIDGE)
        self.score += STEP * table[cell]
        return STEP * np.asarray(table)


class LearnedPicker(Picker):
    r"""Anchors that explain the training pairs of their graph; fixed once they are learnt.

    ``boosted``: one after another, each the node whose table :math:`t(|d_u - d_v|, \min(d_u, d_v))` lowers the
    log-loss of the training pairs most, given the tables of the anchors so far. ``random-search``, its control: as many
    random sets as ``boosted`` looks at candidates, tables fitted in the same way, and of them the set with the lowest
    log-loss on the validation pairs. A graph without pairs to learn from gets farthest-first anchors.
    """

    learns_first = True

    def __init__(self, method: str, k: int | str, seed: int = 0) -> None:
        super().__init__()
        self.method, self.k, self.seed = method, k, seed
        self._learnt: tuple[GraphBatch, IntArray] | None = None

    def keeps_anchors(self, reads_positions: bool) -> bool:
        """Keep what was learnt."""
        return True

    def learn(self, view: TensorView, training: Sequence[Seen], validation: Seen) -> None:
        """Choose the anchors of every graph of the view from pairs of known label."""
        many = anchor_counts(view.union, self.k)
        nodes = self._spread(view)
        for g, count in enumerate(many):
            found = self._of_graph(view, g, int(count), training, validation)
            if found is not None:
                nodes[g, :count] = found
        self._learnt = view.union, nodes

    def forward(
        self, view: TensorView, generator: torch.Generator | None = None, exploration: float = 0.0
    ) -> AnchorSet:
        """The learnt anchors; on other graphs, on which nothing was learnt, farthest-first ones."""
        if self._learnt is not None and self._learnt[0] is view.union:
            return AnchorSet.plain(self._learnt[1])
        return AnchorSet.plain(self._spread(view))

    def _spread(self, view: TensorView) -> IntArray:
        return batch_anchors(view.union, "farthest-first", self.k, self.seed)

    def _of_graph(
        self, view: TensorView, g: int, count: int, training: Sequence[Seen], validation: Seen
    ) -> IntArray | None:
        rng = np.random.default_rng([self.seed, g])
        size = int(view.union.sizes[g])
        places = rng.choice(size, min(size, max(MOST_CANDIDATES, count)), replace=False)
        candidates = view.union.ptr[g] + np.sort(places)
        cells, labels = _table(training, g, candidates, rng)
        if not 0 < labels.sum() < labels.size:
            return None
        if self.method == "boosted":
            boost = _Boost(cells, labels)
            chosen: list[int] = []
            for _ in range(count):
                gains = boost.gains()
                gains[chosen] = -1
                chosen.append(int(np.argmax(gains)))
                boost.add(chosen[-1])
            return np.asarray(candidates[chosen])
        seen, truth = _table([validation], g, candidates, rng)
        best, best_loss = None, np.inf
        for _ in range(candidates.size):
            drawn = rng.choice(candidates.size, count, replace=False)
            boost, score = _Boost(cells, labels), np.zeros(truth.size)
            for candidate in drawn:
                score += boost.add(int(candidate))[seen[candidate]]
            loss = float(np.logaddexp(0, np.where(truth == 1, -score, score)).sum())
            if loss < best_loss:
                best, best_loss = candidates[drawn], loss
        return best


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
