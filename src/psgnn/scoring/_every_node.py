"""The best partners of every node, from a few candidates per node instead of all pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psgnn.console import Bar
from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.graph._pair_space import links_of
from psgnn.scoring._candidates import most_prominent, prominence
from psgnn.scoring._scorer import Scorer, blocks_of
from psgnn.scoring._search import PARTNERS, Search

EXACT_NODES = 500  # of a graph, whose nodes are all scored with one another
HUBS = 32  # nodes of highest degree that every node is scored with
BLOCK = 512  # nodes whose partners are in memory at once


def partners_of_all(
    scorer: Scorer, top: int, *, seed: int = 0, show_progress: bool = False
) -> Iterator[tuple[IntArray, Floats]]:
    """The best partners of every node, some nodes at a time: pairs ``[2, P]`` and scores, best first per node.

    Partners are on the other side, where there are sides. In directed graphs they are whom a node will point to.

    Candidates of a node are up to 16 nodes two steps away and 16 three steps away, 32 neighbours in the embedding and
    32 hubs. In a graph of at most 500 nodes all others are. So N nodes take O(N) scores and memory.

    Args:
        scorer: A trained run or ready-made weights on their graphs.
        top: How many partners per node; fewer come back where there are fewer candidates.
        seed: Of the random trees that find neighbours in the embedding.
        show_progress: Show a bar with the time left.
    """
    search = Search(scorer, 1, np.random.default_rng(seed))
    search.look_around(show_progress, PARTNERS)
    batch = scorer.batch
    busy = prominence(batch)
    hubs = [most_prominent(batch, busy, g, HUBS) for g in range(batch.num_graphs)]
    done = 0
    with Bar("finding partners", batch.num_nodes, show=show_progress) as bar:
        for g, (first, last) in enumerate(zip(batch.ptr[:-1].tolist(), batch.ptr[1:].tolist(), strict=True)):
            everyone = np.arange(first, last)
            for block in blocks_of(last - first, BLOCK):
                nodes = everyone[block]
                if last - first <= EXACT_NODES:
                    rows = np.broadcast_to(everyone, (nodes.size, everyone.size))
                else:
                    common = np.broadcast_to(hubs[g], (nodes.size, hubs[g].size))
                    rows = np.concatenate([search.walks[nodes], search.nearest[nodes], common], axis=1)
                yield _best(search, nodes, rows, top)
                done += nodes.size
                bar.update(done)


def _best(search: Search, nodes: IntArray, rows: IntArray, top: int) -> tuple[IntArray, Floats]:
    """The best of the candidates ``rows [n, c]`` (-1 is none) of each of consecutive nodes, without linked ones."""
    us, vs = np.repeat(nodes, rows.shape[1]), rows.ravel().astype(np.int64)
    pairs = np.stack([us, vs])[:, vs >= 0]
    if search.space.ordered:  # links that may be answered
        answers = links_of(search.union, search.space)[::-1]
        inside = (answers[0] >= nodes[0]) & (answers[0] <= nodes[-1])
        pairs = np.concatenate([pairs, answers[:, inside]], axis=1)
    pairs = pairs[:, search.space.holds(pairs)]
    us, vs = search.pairs(np.unique(pairs[0] * search.union.num_nodes + pairs[1]))
    pairs = np.stack([us, vs])
    pairs = pairs[:, ~search.linked(pairs)]
    scores = search.scores_of(pairs)
    order = np.lexsort([pairs[1], -scores, pairs[0]])
    pairs, scores = pairs[:, order], scores[order]
    starts = np.searchsorted(pairs[0], pairs[0])  # where the list of each pair's node begins
    kept = np.arange(scores.size) - starts < top
    return pairs[:, kept], scores[kept]
