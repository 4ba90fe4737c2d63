"""Metrics per node: the partner in a link is ranked among nodes that its end is not linked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._sampling import distinct_integers

if TYPE_CHECKING:
    from psgnn.tasks import LinkPrediction

MOST_RIVALS = 500  # nodes that the partner of a node is ranked among
MOST_SCORED = 100_000  # pairs that training and comparisons score for these metrics, about
KS = (10, 50)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Lists of pairs, one after another in ``pairs [2, P]``: list i begins at ``starts[i]`` with its link."""

    pairs: IntArray
    starts: IntArray

    def metrics(self, scores: npt.NDArray[Any], suffix: str = "") -> dict[str, float]:
        """``mrr`` and ``hits@K`` of scores ``[P]``; a tie takes the mean of best and worst rank."""
        sizes = np.diff(np.append(self.starts, scores.size))
        own = np.repeat(scores[self.starts], sizes)
        higher = np.add.reduceat((scores > own).astype(np.float64), self.starts)
        equal = np.add.reduceat((scores == own).astype(np.float64), self.starts) - 1
        return rank_metrics(1 + higher + equal / 2, suffix)


def rank_metrics(ranks: npt.NDArray[np.float64], suffix: str = "") -> dict[str, float]:
    """The mean of ``1 / rank``, and the shares of ranks up to K."""
    found = {f"mrr{suffix}": float((1 / ranks).mean())}
    return found | {f"hits@{k}{suffix}": float((ranks <= k).mean()) for k in KS}


def ranking_of(batch: GraphBatch, links: IntArray, rng: np.random.Generator, most: int) -> Ranking:
    """Both ends of links ``[2, L]`` (of `most` random ones), each with its link and nodes that it is not linked to.

    Of more than `MOST_RIVALS` such nodes a uniform sample is drawn. The links are taken to be links of the batch.
    """
    edges = np.concatenate([batch.adjacency.edges(), links], axis=1)
    known = Adjacency.from_edges(edges[0], edges[1], batch.num_nodes)
    if links.shape[1] > most:
        links = links[:, rng.choice(links.shape[1], most, replace=False)]
    lists = []
    for u, v in np.concatenate([links, links[::-1]], axis=1).T.tolist():
        first, last = batch.ptr[batch.graph_of[u] : batch.graph_of[u] + 2].tolist()
        row = known.indices[known.indptr[u] : known.indptr[u + 1]].astype(np.int64)
        taken = np.sort(np.append(row, u)) - first
        free = last - first - taken.size
        ranks = distinct_integers(free, min(free, MOST_RIVALS), rng)
        # As in NonEdges: so many taken nodes lie below the free node of a rank.
        others = ranks + np.searchsorted(taken - np.arange(taken.size), ranks, side="right") + first
        lists.append(np.stack([np.full(others.size + 1, u), np.append(v, others)]))
    sizes = [part.shape[1] for part in lists]
    return Ranking(np.concatenate(lists, axis=1), np.cumsum([0, *sizes[:-1]]))


def metrics_per_node(
    task: LinkPrediction, score: Callable[[IntArray], npt.NDArray[Any]], seed: int
) -> dict[str, float]:
    """``mrr_per_node`` and ``hits@K_per_node`` of test links, at most about `MOST_SCORED` pairs."""
    held_out = [split.pairs[:, split.labels == 1] for split in (task.val, task.test)]
    edges = np.concatenate([task.union.adjacency.edges(), *held_out], axis=1)
    whole = GraphBatch(Adjacency.from_edges(edges[0], edges[1], task.union.num_nodes), task.union.ptr)
    each = 2 * min(MOST_RIVALS, int(task.union.sizes.max()))
    rng = np.random.default_rng([seed, 2])
    ranking = ranking_of(whole, held_out[1], rng, max(MOST_SCORED // each, 1))
    return ranking.metrics(score(np.sort(ranking.pairs, axis=0)), "_per_node")
