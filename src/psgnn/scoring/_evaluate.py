"""How well a scorer finds links that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._sampling import NonEdges, distinct_integers, pair_code
from psgnn.scoring._scorer import Scorer
from psgnn.scoring._search import top_links
from psgnn.tasks._metrics import average_precision, roc_auc

MOST_RIVALS = 500  # nodes that the partner of a node is ranked among
MOST_RANKED = 2000  # links that are ranked per node
NEGATIVES = 20_000


def evaluate_links(scorer: Scorer, links: IntArray, *, seed: int = 0) -> dict[str, Any]:
    """Measure a scorer by links ``[2, P]`` that its graph does not have.

    Returns:
        ``links`` (how many were measured) and ``known`` (how many were left out, since the graph has them); ``auc`` and
        ``ap`` against random unlinked pairs, 20,000 or as many as there are links; ``precision@P``, the share of true
        links among the P best pairs; ``mrr``, ``hits@10`` and ``hits@50`` per node: for both ends of every link, the
        other end is ranked among up to 500 nodes that the end is not linked to.
    """
    batch, rng = scorer.batch, np.random.default_rng(seed)
    edges = batch.adjacency.edges()
    asked = np.sort(links, axis=0)
    codes, first = np.unique(pair_code(asked), return_index=True)
    new = ~np.isin(codes, pair_code(edges))
    if not new.any():
        raise InputError(f"all {codes.size} links are in the graph already; give links that it does not have")
    asked, true = asked[:, first[new]], codes[new]
    count = asked.shape[1]
    pool = NonEdges(batch.ptr, np.concatenate([edges, asked], axis=1))
    total = int(pool.sizes.sum())
    if not total:
        raise InputError(
            "every pair that is no link of the graph is in the file; there is nothing to compare with"
        )
    others = pool.unrank(np.sort(distinct_integers(total, min(max(count, NEGATIVES), total), rng)))
    scores = scorer.score(np.concatenate([asked, others], axis=1))
    labels = np.repeat([1, 0], [count, others.shape[1]])
    best, _ = top_links(scorer, count, seed=seed)
    found: dict[str, Any] = {
        "links": count,
        "known": int(codes.size - count),
        "auc": roc_auc(labels, scores),
        "ap": average_precision(labels, scores),
        f"precision@{count}": float(np.isin(pair_code(np.sort(best, axis=0)), true).mean()),
    }
    return found | per_node(scorer, asked, rng)


def per_node(scorer: Scorer, links: IntArray, rng: np.random.Generator) -> dict[str, float]:
    """Rank the other end of every link among nodes that an end is not linked to; means over both ends."""
    batch, adjacency = scorer.batch, scorer.batch.adjacency
    partners: dict[int, set[int]] = {}
    for u, v in links.T.tolist():
        partners.setdefault(u, set()).add(v)
        partners.setdefault(v, set()).add(u)
    if links.shape[1] > MOST_RANKED:
        links = links[:, rng.choice(links.shape[1], MOST_RANKED, replace=False)]
    ranks = []
    for u, v in [*links.T.tolist(), *links[::-1].T.tolist()]:
        first, last = batch.ptr[batch.graph_of[u] : batch.graph_of[u] + 2].tolist()
        linked = adjacency.indices[adjacency.indptr[u] : adjacency.indptr[u + 1]]
        rivals = np.setdiff1d(np.arange(first, last), [u, *partners[u], *linked.tolist()])
        if rivals.size > MOST_RIVALS:
            rivals = rng.choice(rivals, MOST_RIVALS, replace=False)
        nodes = np.append(v, rivals)
        scores = scorer.score(np.stack([np.full(nodes.size, u), nodes]))
        ranks.append(1 + (scores[1:] > scores[0]).sum() + (scores[1:] == scores[0]).sum() / 2)
    rank = np.array(ranks)
    return {
        "mrr": float((1 / rank).mean()),
        "hits@10": float((rank <= 10).mean()),
        "hits@50": float((rank <= 50).mean()),
    }
