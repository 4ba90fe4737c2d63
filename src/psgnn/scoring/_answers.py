"""Answers about missing links, by name: the best of all pairs, of a node, or of a list, and how sure they are."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.console import Bar
from psgnn.distances._propagation import Floats
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import GraphBatch, IntArray, to_numpy
from psgnn.graph._pair_space import links_of, pair_space
from psgnn.graph._read import header_for, read_graph
from psgnn.kernels._scoring import walk_partners as walk_kernel
from psgnn.positions._context import number_of_links
from psgnn.scoring._calibration import RANKED, Calibration, calibrate, parse_missing
from psgnn.scoring._candidates import MOST_STEPS, most_prominent, prominence
from psgnn.scoring._explain import main_reason
from psgnn.scoring._names import (
    Node,
    askable,
    find_nodes,
    flat_names,
    graph_numbers,
    listed_pairs,
    name_of,
    named_pairs_of,
    pair_ids,
)
from psgnn.scoring._pretrained import pretrained
from psgnn.scoring._scorer import Scorer, blocks_of, keep
from psgnn.scoring._search import PARTNERS, Search, top_links

log = logging.getLogger(__name__)

ALL = "all"  # every node; a node of this name is asked for in a list: ["all"]
LISTED = 10  # partners of a node, unless a person says how many
MOST_ROW = 50_000  # nodes that are all scored as partners of one; of larger graphs those near it and the hubs
MOST_NEAR, HUBS = 300, 200  # nodes at two and at three steps each
MOST_COMPARED, SLACK = 10_000, 64


def predict(
    source: Any,
    *,
    top: int | None = None,
    of: Node | Sequence[Node] | None = None,
    pairs: Any = None,
    missing: str | float | None = None,
    why: bool = False,
    **how: Any,
) -> pl.DataFrame:
    """Predict missing links with the ready-made weights: of a whole graph, of a node, or among given pairs.

    >>> import networkx as nx
    >>> frame = predict(nx.karate_club_graph(), of="0", top=2)
    >>> frame.columns
    ['source', 'target', 'score', 'probability', 'expected_precision']

    Args:
        source: A path, a graph of any kind that `psgnn.read_graph` takes, or several in a list.
        top: How many predictions; with `of`, per node.
        of: A node or several, by name: their best partners. ``"all"`` is every node, with candidates as in the search
            for missing links (`psgnn.scoring.partners_of_all`).
        pairs: Pairs to score: names ``[("ada", "bob"), ...]``, a table of two columns, or a file. They stay in this
            order; with `top`, the best of them come back, best first.
        missing: How many links are missing: ``"5%"`` of the known ones, or a number. Default: a tenth.
        why: Add a column with the main reason.
        how: Keywords of `psgnn.read_graph`, such as ``directed=True``.

    Returns:
        One row per pair, best first. ``probability`` is the chance that the pair is a missing link, and
        ``expected_precision`` the mean of the probabilities down to this row. Both are null where the graph has too few
        links to tell. Several graphs have a column ``graph``.
    """
    found = read_graph(source, **how)
    graphs = found if isinstance(found, list) else [found]
    return answer(pretrained().on(graphs), top=top, of=of, pairs=pairs, missing=missing, why=why)


def answer(
    scorer: Scorer,
    *,
    top: int | None = None,
    of: Node | Sequence[Node] | None = None,
    pairs: Any = None,
    header: bool | None = None,
    missing: str | float | None = None,
    why: bool = False,
    seed: int = 0,
    show_progress: bool = False,
) -> pl.DataFrame:
    """Predict as `predict` does, with a scorer of your own."""
    if sum(option is not None for option in (of, pairs)) > 1 or (
        of is None and pairs is None and top is None
    ):
        raise InputError(
            "ask for the best pairs (top), the partners of a node (of), or the scores of pairs (pairs)"
        )
    if top is not None:
        check_integer("top", top, 1)
    count = parse_missing(missing, number_of_links(scorer.batch))
    if isinstance(of, str) and of == ALL:
        options: dict[str, Any] = {"why": why, "seed": seed, "show_progress": show_progress}
        return pl.concat(answers_for_all(scorer, top=top, missing=missing, **options))
    known = np.zeros(0, bool)
    if of is not None:
        nodes = find_nodes(scorer, _listed(of))
        if not nodes.size:
            raise InputError("no node is asked about; name at least one")
        lists = [partners(scorer, int(v), top or LISTED) for v in nodes]
    elif pairs is not None:
        asked = asked_pairs(scorer, pairs, header)
        scores = scorer.score(asked, show_progress=show_progress)
        if top is not None:
            best = np.argsort(-scores, kind="stable")[:top]
            asked, scores = asked[:, best], scores[best]
        lists = [(sides_first(scorer.batch, asked), scores)]
        known = _linked(scorer, asked)
    else:
        # A search for many serves for few: the calibration searches for its own number.
        if (top or 1) <= RANKED:
            calibrate(scorer, count, seed=seed, show_progress=show_progress)
        found, scores = top_links(scorer, top or 1, seed=seed, show_progress=show_progress)
        lists = [(sides_first(scorer.batch, found), scores)]
    calibration = calibrate(scorer, count, seed=seed, show_progress=show_progress)
    return pl.concat(_table(scorer, *part, calibration, known, why=why) for part in lists)


def answers_for_all(
    scorer: Scorer,
    *,
    top: int | None = None,
    missing: str | float | None = None,
    why: bool = False,
    seed: int = 0,
    show_progress: bool = False,
) -> Iterator[pl.DataFrame]:
    """The best partners of every node as `answer` gives them, in tables of some nodes each."""
    count = parse_missing(missing, number_of_links(scorer.batch))
    calibration = calibrate(scorer, count, seed=seed)
    for block in partners_of_all(scorer, top or LISTED, seed=seed, show_progress=show_progress):
        yield _table(scorer, *block, calibration, np.zeros(0, bool), why=why, per_node=True)


def _table(
    scorer: Scorer,
    pairs: IntArray,
    scores: npt.NDArray[np.float32],
    calibration: Calibration | None,
    known: npt.NDArray[np.bool_],
    *,
    why: bool,
    per_node: bool = False,
) -> pl.DataFrame:
    """Scored pairs ``[2, P]`` by name, best first, or best first for each of the nodes in ``pairs[0]``.

    ``known [P]``, unless it is empty, says which of them are links of the graph, so that no link is missing there.
    """
    names = keep(scorer, "listed names", lambda: pl.Series(flat_names(scorer), dtype=pl.String))
    columns: dict[str, Any] = {"source": names[pairs[0]], "target": names[pairs[1]]}
    if len(scorer.names_by_number) > 1:
        columns["graph"] = graph_numbers(scorer, pairs[0])
    columns["score"] = scores
    likely = means = pl.Series([None] * scores.size, dtype=pl.Float64)
    if calibration is not None:
        chance = calibration.probability(scores)
        starts = np.searchsorted(pairs[0], pairs[0]) if per_node else np.zeros(scores.size, np.int64)
        likely, means = pl.Series(chance), pl.Series(_means(chance, starts))
        if known.any():
            likely = likely.set(pl.Series(known), None)
            means = pl.Series(_means(np.where(known, 0, chance), starts))
    columns |= {"probability": likely, "expected_precision": means}
    if why:
        columns["because"] = pl.Series(main_reason(scorer, pairs), dtype=pl.String)
    return pl.DataFrame(columns)


def partners(scorer: Scorer, node: int, top: int) -> tuple[IntArray, npt.NDArray[np.float32]]:
    """The best partners of a node among those that it is not linked to: pairs ``[2, n]`` and scores, best first."""
    batch = scorer.batch
    _warn_of_isolated(scorer, node, "its partners are little more than a guess")
    first, last = batch.ptr[batch.graph_of[node] : batch.graph_of[node] + 2].tolist()
    adjacency = batch.adjacency
    known = adjacency if batch.kinds is None else batch.kinds.outgoing
    linked = known.indices[known.indptr[node] : known.indptr[node + 1]].astype(np.int64)
    others = np.arange(first, last) if last - first <= MOST_ROW else _near(scorer, node)
    others = others[others != node]
    asked = others[pair_space(batch).holds(np.stack([np.full(others.size, node), others]))]
    if others.size and not asked.size:
        raise InputError(
            f"links go from the other side to '{name_of(scorer, node)}'; ask about a node of that side"
        )
    others = np.setdiff1d(asked, linked)
    pairs = np.stack([np.full(others.size, node), others])
    scores = scorer.score(pairs)
    best = np.argsort(-scores, kind="stable")[:top]
    return pairs[:, best], scores[best]


def _warn_of_isolated(scorer: Scorer, node: int, so: str) -> None:
    """Say of a node without links how little is known about it."""
    if not scorer.batch.adjacency.degrees[node]:
        log.warning("%s has no links, so %s", name_of(scorer, node), so)


def sides_first(batch: GraphBatch, pairs: IntArray) -> IntArray:
    """Pairs ``[2, P]`` with the node of side 0 first, where there are sides and no directions."""
    sides = None if batch.kinds is None or batch.kinds.directed else batch.kinds.sides
    return pairs if sides is None else np.where(sides[pairs[0]] == 1, pairs[::-1], pairs)


def similar(scorer: Scorer, node: Node, top: int = LISTED) -> pl.DataFrame:
    """List the nodes whose embeddings are nearest to that of a node: name, distance, and whether they are linked."""
    check_integer("top", top, 1)
    (v,) = find_nodes(scorer, [node]).tolist()
    _warn_of_isolated(scorer, v, "its embedding says little")
    batch = scorer.batch
    first, last = batch.ptr[batch.graph_of[v] : batch.graph_of[v] + 2].tolist()
    order, apart = _nearest(scorer, v, first, last, top)
    linked = batch.adjacency.indices[batch.adjacency.indptr[v] : batch.adjacency.indptr[v + 1]]
    return pl.DataFrame(
        {
            "node": pl.Series([name_of(scorer, int(u) + first) for u in order], dtype=pl.String),
            "distance": apart,
            "linked": np.isin(order + first, linked),
        }
    )


def _nearest(scorer: Scorer, v: int, first: int, last: int, top: int) -> tuple[IntArray, Floats]:
    """The nodes of a graph whose embeddings are nearest to that of v, and their distances; ids count from `first`."""
    h, squares = keep(scorer, "embeddings", lambda: _embedded(scorer))
    rows = np.arange(last - first)
    if rows.size > MOST_COMPARED:  # products find them, and differences put them in order: products round
        near = squares[first:last] - 2 * (h[first:last] @ h[v])
        rows = np.sort(np.argpartition(near, min(top + SLACK, rows.size - 1))[: top + SLACK])
    rows = rows[rows != v - first]
    apart = np.sqrt(np.square(h[rows + first] - h[v]).sum(axis=1))
    order = np.argsort(apart, kind="stable")[:top]
    return rows[order], apart[order]


def _embedded(scorer: Scorer) -> tuple[Floats, Floats]:
    """The embeddings of all nodes, and their squared lengths."""
    h = scorer.embed()
    return h, np.einsum("nd,nd->n", h, h)


def _near(scorer: Scorer, node: int) -> IntArray:
    """Nodes of a large graph to score as partners of a node: those that short walks reach, and the hubs."""
    adjacency = scorer.batch.adjacency
    walked = np.full((1, 2 * MOST_NEAR), -1, np.int32)
    walk_kernel(adjacency.indptr, adjacency.indices, node, MOST_STEPS, walked)
    hubs = keep(scorer, "hubs", lambda: np.argsort(-adjacency.degrees, kind="stable")[:HUBS])
    same = scorer.batch.graph_of[hubs] == scorer.batch.graph_of[node]
    return np.union1d(walked[walked >= 0].astype(np.int64), hubs[same])


def asked_pairs(scorer: Scorer, pairs: Any, header: bool | None) -> IntArray:
    """The ids ``[2, P]`` of pairs that can be linked, from a file, from names or from a table."""
    if isinstance(pairs, (str, Path)):
        return named_pairs_of(scorer, pairs, header_for(pairs, header))
    found = listed_pairs(scorer, pairs) if isinstance(pairs, (list, tuple)) else pair_ids(scorer, pairs)
    return askable(scorer, found)


def _linked(scorer: Scorer, pairs: IntArray) -> npt.NDArray[np.bool_]:
    """Which of some pairs ``[2, P]`` are links of the graph, with a note if any are."""
    space = pair_space(scorer.batch)
    known = np.isin(space.rank(space.oriented(pairs)), space.rank(links_of(scorer.batch, space)))
    if known.any():
        first = " and ".join(name_of(scorer, int(v)) for v in pairs[:, known.argmax()])
        count = "1 pair is" if known.sum() == 1 else f"{known.sum()} pairs are"
        log.warning("%s linked already (%s), so no link is missing there", count, first)
    return np.asarray(known)


def _listed(of: Node | Sequence[Node]) -> list[Node]:
    """One node, or several, as a list."""
    if isinstance(of, (str, int, np.integer)) or (
        isinstance(of, tuple) and len(of) == 2 and isinstance(of[0], int) and isinstance(of[1], str)
    ):
        return [of]  # type: ignore[list-item]
    return list(of) if isinstance(of, (list, tuple)) else np.atleast_1d(to_numpy(of)).tolist()


def _means(likely: npt.NDArray[np.float64], starts: IntArray) -> npt.NDArray[np.float64]:
    """The mean of the probabilities from the start of its list down to each place."""
    total = np.append(0.0, np.cumsum(likely))
    places = np.arange(likely.size)
    return np.asarray((total[places + 1] - total[starts]) / (places + 1 - starts))


EXACT_NODES = 500  # of a graph, whose nodes are all scored with one another
SHARED_HUBS = 32  # nodes of highest degree that every node is scored with
BLOCK = 512  # nodes whose partners are in memory at once


def partners_of_all(
    scorer: Scorer, top: int, *, seed: int = 0, show_progress: bool = False
) -> Iterator[tuple[IntArray, Floats]]:
    """Find the best partners of every node, some nodes at a time.

    Partners are on the other side, where there are sides. In directed graphs they are the nodes that a node will
    point to.

    Candidates of a node are up to 16 nodes two steps away and 16 three steps away, 32 neighbours in the embedding and
    32 hubs. In a graph of at most 500 nodes all others are. So N nodes take O(N) scores and memory.

    Args:
        scorer: A trained run or ready-made weights on their graphs.
        top: How many partners per node; fewer come back where there are fewer candidates.
        seed: Of the random trees that find neighbours in the embedding.
        show_progress: Show a bar with the time left.

    Returns:
        An iterator of pairs ``[2, P]`` and scores ``[P]``, best first per node.
    """
    search = Search(scorer, 1, np.random.default_rng(seed))
    search.look_around(show_progress, PARTNERS)
    batch = scorer.batch
    busy = prominence(batch)
    hubs = [most_prominent(batch, busy, g, SHARED_HUBS) for g in range(batch.num_graphs)]
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
