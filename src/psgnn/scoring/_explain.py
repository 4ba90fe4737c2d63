"""Why a pair has its score: the facts about it, and how much each kind of evidence moved the score."""

from __future__ import annotations

from itertools import islice, pairwise
from math import factorial
from typing import Any

import numpy as np

from psgnn.distances._engine import hop_columns
from psgnn.distances._oracle import hops_between
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency, IntArray
from psgnn.graph._kinds import Arcs
from psgnn.graph._pair_space import unlinked_pairs
from psgnn.graph._sampling import distinct_integers
from psgnn.kernels._pairs import local_walks
from psgnn.positions._measure import PAIR_LOOKS
from psgnn.scoring._names import Node, askable, find_nodes, name_of
from psgnn.scoring._rules import score_pairs
from psgnn.scoring._scorer import Evidence, Scorer

REFERENCES = 64  # random unlinked pairs that a pair is compared with
MOST_SHARED, MOST_PATHS, MOST_ANCHORS = 20, 3, 5


def explain(scorer: Scorer, u: Node, v: Node, *, seed: int = 0) -> dict[str, Any]:
    r"""Explain the score of a pair of nodes.

    The contribution of a kind of evidence is its exact Shapley value: what it adds to the score, averaged over all
    orders in which the kinds could be revealed, where what is not revealed is that of random unlinked pairs.

    .. math:: s(u, v) = \text{base} + \sum_g \phi_g

    Args:
        scorer: A trained run or ready-made weights on their graphs.
        u: A node, by name or id; of several graphs ``(graph, name)`` where they share a name.
        v: Another node of the same graph.
        seed: Of the random pairs.

    Returns:
        A dict: ``score``, ``linked``, ``hops``, ``shared_neighbours`` and ``paths`` by name, ``anchors`` (those that
        separate the pair, and those that do not, with both distances), ``base`` and ``contributions``. They are None
        for scorers whose evidence has no separate parts. Hops, neighbours and paths ignore directions; in directed
        graphs ``linked_back`` is whether v points to u, and ``path_directions`` has ``->``, ``<-`` or ``<->`` for
        every link of every path.
    """
    pair = find_nodes(scorer, [u, v])
    batch = scorer.batch
    if pair[0] == pair[1]:
        raise InputError(f"'{u}' and '{v}' are the same node; name two")
    graph = int(batch.graph_of[pair[0]])
    if graph != int(batch.graph_of[pair[1]]):
        raise InputError(f"'{u}' and '{v}' are nodes of two graphs; name two of one")
    askable(scorer, pair[:, None])
    adjacency, first = batch.graph(graph), int(batch.ptr[graph])
    a, b = (pair - first).tolist()
    arcs = batch.kinds.outgoing if batch.kinds is not None and batch.kinds.directed else None
    hops = hop_columns(adjacency, np.array([a, b]))  # [N, 2]
    shared = np.intersect1d(_neighbours(adjacency, a), _neighbours(adjacency, b))
    paths = list(islice(_shortest_paths(adjacency, hops[:, 1], a, b), MOST_PATHS))
    found: dict[str, Any] = {
        "source": name_of(scorer, int(pair[0])),
        "target": name_of(scorer, int(pair[1])),
        "score": float(scorer.score(pair[:, None])[0]),
        "linked": bool(np.isin(b, _neighbours(adjacency, a))) if arcs is None else _points_to(arcs, pair),
        "hops": int(hops[b, 0]) if hops[b, 0] >= 0 else None,
        "shared_neighbours": [name_of(scorer, int(node) + first) for node in shared[:MOST_SHARED]],
        "num_shared": int(shared.size),
        "paths": [[name_of(scorer, node + first) for node in path] for path in paths],
        "anchors": _anchors(scorer, graph, a, b),
        "base": None,
        "contributions": None,
    }
    if arcs is not None:
        found["linked_back"] = _points_to(arcs, pair[::-1])
        found["path_directions"] = [
            [_direction(arcs, np.array(link) + first) for link in pairwise(path)] for path in paths
        ]
    return found | _contributions(scorer, pair, seed)


def _points_to(arcs: Arcs, pair: IntArray) -> bool:
    """Whether there is a link from the first of two nodes to the second."""
    return bool(arcs.places(pair[:1], pair[1:])[0] >= 0)


def _direction(arcs: Arcs, pair: IntArray) -> str:
    """Which way two linked nodes are linked: ``->``, ``<-`` or ``<->``."""
    back, forth = _points_to(arcs, pair[::-1]), _points_to(arcs, pair)
    return "<" * back + "-" + ">" * forth


def main_reason(scorer: Scorer, pairs: IntArray) -> list[str]:
    """The main fact about each of some pairs, in a few words."""
    adjacency = scorer.batch.adjacency
    shared = score_pairs("common-neighbours", scorer.batch, pairs).astype(np.int64)
    hops = np.zeros(shared.size)
    hops[shared == 0] = hops_between(adjacency, pairs[:, shared == 0])
    reasons = [reason_of(int(count), int(apart)) for count, apart in zip(shared, hops, strict=True)]
    kinds = scorer.batch.kinds
    if kinds is not None and kinds.directed:
        answered = kinds.outgoing.places(pairs[1], pairs[0]) >= 0
        return ["linked the other way" if back else why for back, why in zip(answered, reasons, strict=True)]
    if kinds is not None and kinds.sides is not None:  # no two linked nodes share a neighbour
        walks = np.empty((pairs.shape[1], 6))
        local_walks(adjacency.indptr, adjacency.indices, pairs[0], pairs[1], PAIR_LOOKS, walks)
        ways = walks[:, 4].astype(np.int64).tolist()
        return [
            f"{count} paths of three links" if count > 1 else why
            for count, why in zip(ways, reasons, strict=True)
        ]
    return reasons


def reason_of(shared: int, hops: int) -> str:
    """The main fact about a pair with these shared neighbours and hops (-1: no path), in a few words."""
    if shared:
        return f"{shared} shared neighbour{'s' if shared > 1 else ''}"
    return f"{hops} hops apart" if hops >= 0 else "no path between them"


def _neighbours(adjacency: Adjacency, node: int) -> IntArray:
    return adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]].astype(np.int64)


def _shortest_paths(adjacency: Adjacency, to_end: Any, start: int, end: int) -> Any:
    """The shortest paths between two nodes, as lists of nodes, given the hops of all nodes to the end."""
    if to_end[start] < 0:
        return
    stack = [[start]]
    while stack:
        path = stack.pop()
        if path[-1] == end:
            yield path
            continue
        steps = _neighbours(adjacency, path[-1])
        stack += [[*path, int(step)] for step in steps[to_end[steps] == to_end[path[-1]] - 1][::-1]]


def _anchors(scorer: Scorer, graph: int, a: int, b: int) -> dict[str, list[dict[str, Any]]] | None:
    """The anchors that separate two nodes most, and the nearest that do not, with the hops of both."""
    anchors = scorer.anchors
    if anchors is None or not anchors[graph] or isinstance(anchors[graph][0], list):
        return None
    first = int(scorer.batch.ptr[graph])
    nodes = np.array(anchors[graph]) - first
    near, far = hop_columns(scorer.batch.graph(graph), np.array([a, b])).T[:, nodes].astype(np.int64)
    reached = np.flatnonzero((near >= 0) & (far >= 0))
    gap = np.abs(near - far)
    order = reached[np.argsort(-gap[reached], kind="stable")]
    apart, together = order[gap[order] > 0], order[gap[order] == 0]
    together = together[np.argsort(near[together], kind="stable")]

    def listed(places: IntArray) -> list[dict[str, Any]]:
        return [
            {
                "anchor": name_of(scorer, int(nodes[i]) + first),
                "hops_source": int(near[i]),
                "hops_target": int(far[i]),
            }
            for i in places
        ]

    return {"apart": listed(apart[:MOST_ANCHORS]), "together": listed(together[:MOST_ANCHORS])}


def _contributions(scorer: Scorer, pair: IntArray, seed: int) -> dict[str, Any]:
    """The Shapley value of every kind of evidence, and the mean score of the random pairs."""
    batch = scorer.batch
    pool = unlinked_pairs(batch)
    total = int(pool.sizes.sum())
    if not total:
        return {}
    drawn = distinct_integers(total, min(REFERENCES, total), np.random.default_rng(seed))
    pairs = np.concatenate([pair[:, None], pool.unrank(np.sort(drawn))], axis=1)
    evidence = scorer.evidence(pairs)
    if evidence is None:
        return {}
    groups = list(dict.fromkeys(name for part in evidence.groups for name in part.tolist()))
    values = _coalitions(evidence, groups)  # [2^G], the mean score where these groups are the pair's own
    count = len(groups)
    shapley = {}
    for i, group in enumerate(groups):
        without = [mask for mask in range(2**count) if not mask >> i & 1]
        sizes = [mask.bit_count() for mask in without]
        weight = [factorial(size) * factorial(count - size - 1) / factorial(count) for size in sizes]
        gains = [values[mask | 1 << i] - values[mask] for mask in without]
        shapley[group] = float(np.dot(weight, gains))
    return {"base": float(values[0]), "contributions": shapley}


def _coalitions(evidence: Evidence, groups: list[str]) -> np.ndarray:
    """The mean score over the references for every set of groups that take the pair's own values."""
    references = evidence.tables[0].shape[0] - 1
    masks = np.arange(2 ** len(groups))
    mixed, rows = [], []
    for table, names in zip(evidence.tables, evidence.groups, strict=True):
        bit = 1 << np.array([groups.index(name) for name in names.tolist()], np.int64)
        # Sets that differ in groups of other tables alone share their rows of this one.
        some, place = np.unique(masks & np.bitwise_or.reduce(bit, initial=0), return_inverse=True)
        own = (some[:, None] & bit) > 0  # [D, S]
        mixed.append(
            np.where(own[:, None], table[0], table[None, 1:]).reshape(
                own.shape[0] * references, -1 if table.size else 0
            )
        )
        rows.append((place[:, None] * references + np.arange(references)).ravel())
    scores = evidence.score([np.ascontiguousarray(part) for part in mixed], rows)
    return np.asarray(scores.reshape(masks.size, references).mean(axis=1, dtype=np.float64))
