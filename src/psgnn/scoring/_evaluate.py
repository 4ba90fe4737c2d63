"""How well a scorer finds links that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from psgnn.errors import InputError
from psgnn.graph._bytes import decoding
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.graph._pair_space import links_of, pair_space, unlinked_pairs
from psgnn.graph._read import read_pairs
from psgnn.graph._sampling import distinct_integers
from psgnn.paths import PathLike
from psgnn.scoring._names import askable, find_nodes
from psgnn.scoring._scorer import Scorer
from psgnn.scoring._search import top_links
from psgnn.tasks._metrics import average_precision, roc_auc
from psgnn.tasks._negatives import hard_negatives
from psgnn.tasks._per_node import Ranking, ranking_of

MOST_RANKED = 2000  # links that are ranked per node
NEGATIVES = 20_000
NEGATIVE_KINDS = "uniform", "degree", "distance", "per-node"


def evaluate_links(
    scorer: Scorer, links: IntArray, *, negatives: str = "uniform", seed: int = 0
) -> dict[str, Any]:
    """Measure a scorer by links ``[2, P]`` that its graph does not have.

    Args:
        scorer: A trained run or ready-made weights on their graphs.
        links: The links, which may also be in the graph; these are left out.
        negatives: What ``auc`` and ``ap`` compare the links with. ``uniform`` is 20,000 random unlinked pairs, or as
            many as there are links. ``degree`` and ``distance`` keep an end of every link, and the other end has the
            same degree or distance. ``per-node`` is the lists that the per-node metrics rank.
        seed: Of the negatives.

    Returns:
        ``links`` (how many were measured) and ``known`` (how many were left out, since the graph has them);
        ``negatives`` and the ``auc`` and ``ap`` against them; ``precision@P``, the share of true
        links among the P best pairs; ``mrr``, ``hits@10`` and ``hits@50`` per node: for both ends of every link, the
        other end is ranked among up to 500 nodes that the end is not linked to.
    """
    if negatives not in NEGATIVE_KINDS:
        raise InputError(f"negatives are uniform, degree, distance or per-node, found '{negatives}'")
    batch, rng = scorer.batch, np.random.default_rng(seed)
    space = pair_space(batch)
    asked = space.oriented(askable(scorer, links))
    codes, first = np.unique(space.rank(asked), return_index=True)
    new = ~np.isin(codes, space.rank(links_of(batch, space)))
    if not new.any():
        raise InputError(f"all {codes.size} links are in the graph already; give links that it does not have")
    asked, true = asked[:, first[new]], codes[new]
    count = asked.shape[1]
    pool = unlinked_pairs(batch, asked)
    total = int(pool.sizes.sum())
    if not total:
        raise InputError(
            "every pair that is not a link of the graph is in the file; there is nothing to compare with"
        )
    ranking = ranking_of(batch, asked, rng, MOST_RANKED)
    ranked = scorer.score(ranking.pairs)
    if negatives == "per-node":
        labels, scores = np.isin(np.arange(ranked.size), ranking.starts).astype(np.int64), ranked
    else:
        if negatives == "uniform":
            others = pool.unrank(np.sort(distinct_integers(total, min(max(count, NEGATIVES), total), rng)))
        else:
            others = _like_links(batch, asked, negatives, rng)
        labels = np.repeat([1, 0], [count, others.shape[1]])
        scores = scorer.score(np.concatenate([asked, others], axis=1))
    best, _ = top_links(scorer, count, seed=seed)
    found: dict[str, Any] = {
        "links": count,
        "known": int(codes.size - count),
        "negatives": negatives,
        "auc": roc_auc(labels, scores),
        "ap": average_precision(labels, scores),
        f"precision@{count}": float(np.isin(space.rank(space.oriented(best)), true).mean()),
    }
    return found | ranking.metrics(ranked)


def _like_links(batch: GraphBatch, links: IntArray, by: str, rng: np.random.Generator) -> IntArray:
    """As many unlinked pairs as links ``[2, P]``, like them in degree or distance."""
    if not pair_space(batch).plain:
        raise InputError(f"negatives '{by}' go with undirected graphs without sides; use uniform or per-node")
    found, nothing = [], np.zeros((2, 0), np.int64)
    for g, first in enumerate(batch.ptr[:-1].tolist()):
        own = links[:, batch.graph_of[links[0]] == g] - first
        visible = batch.graph(g)
        rows, cols = np.concatenate([visible.edges(), own], axis=1)
        full = Adjacency.from_edges(rows, cols, visible.num_nodes)
        room = visible.num_nodes * (visible.num_nodes - 1) // 2 - full.num_edges
        counts = np.array([0, 0, min(own.shape[1], room)])
        found.append(hard_negatives(by, [nothing, nothing, own], counts, visible, full, rng)[2] + first)
    return np.concatenate(found, axis=1)


def evaluate_against(scorer: Scorer, links: IntArray, negatives: IntArray) -> dict[str, Any]:
    """Measure a scorer by links ``[2, P]``, each against negatives of its own, ``[P, M, 2]``: HeaRT's form.

    Returns:
        ``links``, ``negatives`` (per link), and ``mrr``, ``hits@10`` and ``hits@50``. The rank of a link is one more
        than the number of its negatives above it. A tie counts half.
    """
    count, given = links.shape[1], negatives.shape
    if negatives.ndim != 3 or given[0] != count or given[1] < 1 or given[2] != 2:
        raise InputError(
            f"{count} links need negatives of the shape [{count}, M, 2], found {list(given)}; give each link its own"
        )
    lists = np.concatenate([links.T[:, None], negatives], axis=1)  # [P, 1 + M, 2]
    ranking = Ranking(lists.reshape(-1, 2).T, np.arange(count) * (1 + given[1]))
    return {"links": count, "negatives": int(given[1]), **ranking.metrics(scorer.score(ranking.pairs))}


def read_negatives(path: PathLike, scorer: Scorer, count: int) -> IntArray:
    """The negatives of each link, ``[P, M, 2]``, from an array of NumPy or from M lines of names per link.

    Numbers in an array are names of nodes: a graph that is read from a list of edges numbers its nodes anew.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() not in (".npy", ".npz"):
        pairs = read_pairs(file, *scorer.names_by_number)
        if pairs.shape[1] % count:
            raise InputError(
                f"{path}: {pairs.shape[1]} negatives cannot be shared out to {count} links evenly"
            )
        return pairs.T.reshape(count, -1, 2)
    with decoding(file, "an array of NumPy"):
        content = np.load(file, allow_pickle=False)
        ids = content[content.files[0]] if hasattr(content, "files") else content
    if not isinstance(ids, np.ndarray):
        raise InputError(f"{path} holds something else than arrays; write it with numpy.save or numpy.savez")
    if ids.dtype.kind not in "iu" or ids.ndim != 3 or ids.shape[2] != 2:
        raise InputError(f"{path}: expected integers [P, M, 2], found {ids.dtype} {list(ids.shape)}")
    distinct, places = np.unique(ids, return_inverse=True)
    nodes = find_nodes(scorer, [str(node) for node in distinct.tolist()])
    return np.asarray(nodes[places].reshape(ids.shape))
