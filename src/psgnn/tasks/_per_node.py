"""Metrics per node: the partner in a link is ranked among nodes that its end is not linked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.graph._kinds import Arcs
from psgnn.graph._pair_space import PairSpace, links_of, pair_space
from psgnn.graph._sampling import distinct_integers

if TYPE_CHECKING:
    from psgnn.tasks import LinkPrediction

MOST_RIVALS = 500  # nodes that the partner of a node is ranked among
MOST_SCORED = 100_000  # pairs that training and comparisons score for these metrics, about
KS = (10, 50)
RECALL_AT = 20


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

    Directed links are asked from their source alone, and links between sides from side 0. Of more than `MOST_RIVALS`
    nodes a uniform sample is drawn. The links are taken to be links of the batch.
    """
    space = pair_space(batch)
    known = np.concatenate([links_of(batch, space), links], axis=1)
    return _ranking_among(batch, space, known, links, rng, most)


def _ranking_among(
    batch: GraphBatch,
    space: PairSpace,
    taken_links: IntArray,
    links: IntArray,
    rng: np.random.Generator,
    most: int,
) -> Ranking:
    known = _partners(taken_links, space, batch.num_nodes)
    if links.shape[1] > most:
        links = links[:, rng.choice(links.shape[1], most, replace=False)]
    lists = []
    for u, v in space.questions(links).T.tolist():
        nodes = space.partners(u)
        taken = np.searchsorted(nodes, np.unique(known.indices[known.indptr[u] : known.indptr[u + 1]]))
        free = nodes.size - taken.size
        ranks = distinct_integers(free, min(free, MOST_RIVALS), rng)
        # As in NonEdges: the number of taken nodes below the free node of a rank.
        others = nodes[ranks + np.searchsorted(taken - np.arange(taken.size), ranks, side="right")]
        lists.append(np.stack([np.full(others.size + 1, u), np.append(v, others)]))
    sizes = [part.shape[1] for part in lists]
    return Ranking(np.concatenate(lists, axis=1), np.cumsum([0, *sizes[:-1]]))


def _partners(links: IntArray, space: PairSpace, num_nodes: int) -> Arcs:
    """The partners of every node that asks, by links, which may be there twice."""
    sources, targets = space.questions(links)
    return Arcs.of(sources, targets, num_nodes)


def metrics_per_node(
    task: LinkPrediction,
    score: Callable[[IntArray], npt.NDArray[Any]],
    seed: int,
    most_scored: int = MOST_SCORED,
) -> dict[str, float]:
    """``mrr_per_node`` and ``hits@K_per_node`` of test links, at most about `most_scored` pairs.

    Directed graphs and those with sides have ``recall@20_per_node`` too (`recall_per_node`).
    """
    held_out = [split.pairs[:, split.labels == 1] for split in (task.val, task.test)]
    each = 2 * min(MOST_RIVALS, int(task.union.sizes.max()))
    rng = np.random.default_rng([seed, 2])
    # The links of validation count as known: they are no wrong answers.
    known = np.concatenate([links_of(task.union, task.space), *held_out], axis=1)
    most = max(most_scored // each, 1)
    ranking = _ranking_among(task.union, task.space, known, held_out[1], rng, most)
    found = ranking.metrics(score(task.space.oriented(ranking.pairs)), "_per_node")
    if not task.space.plain:
        found |= recall_per_node(task, score, seed, most_scored)
    return found


def recall_per_node(
    task: LinkPrediction, score: Callable[[IntArray], npt.NDArray[Any]], seed: int, most_scored: int
) -> dict[str, float]:
    """``recall@20_per_node``: the share of a node's test links among its 20 best pairs, the mean over nodes.

    A node is ranked with all nodes that it has no link to in training and validation. The nodes are a random
    sample, as many as `most_scored` pairs allow.
    """
    val, test = (split.pairs[:, split.labels == 1] for split in (task.val, task.test))
    known = _partners(
        np.concatenate([links_of(task.union, task.space), val], axis=1), task.space, task.union.num_nodes
    )
    asked = _partners(test, task.space, task.union.num_nodes)
    nodes = np.flatnonzero(asked.degrees)
    most = max(most_scored // int(task.union.sizes.max()), 1)
    nodes = np.sort(np.random.default_rng([seed, 3]).permutation(nodes)[:most])
    lists = []
    for u in nodes.tolist():
        rest = np.setdiff1d(task.space.partners(u), known.indices[known.indptr[u] : known.indptr[u + 1]])
        lists.append(np.stack([np.full(rest.size, u), rest]))
    scores = score(task.space.oriented(np.concatenate(lists, axis=1)))
    rng, recalls, start = np.random.default_rng([seed, 4]), [], 0
    for u, pairs in zip(nodes.tolist(), lists, strict=True):
        own = scores[start : start + pairs.shape[1]]
        start += pairs.shape[1]
        best = np.lexsort((rng.random(own.size), -own))[:RECALL_AT]  # ties at random
        true = asked.indices[asked.indptr[u] : asked.indptr[u + 1]]
        recalls.append(np.isin(true, pairs[1, best]).mean())
    return {f"recall@{RECALL_AT}_per_node": float(np.mean(recalls))}
