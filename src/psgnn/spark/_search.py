"""Missing links of a graph on Spark: candidates from its blocks, and a search that scores the most promising ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from psgnn.distances._propagation import Floats
from psgnn.graph._graph import Adjacency, GraphBatch, IntArray
from psgnn.scoring._candidates import TREES, nearest_partners, pairs_of
from psgnn.scoring._network import Network
from psgnn.scoring._search import (
    CLIMB_NEIGHBOURS,
    CLIMBS,
    EXACT_PAIRS,
    LEAST_SCORED,
    MOST_IN_VAIN,
    MOST_PARTNERS,
    PARTNERS,
    PROJECTED,
    PROMINENT,
    ROUNDS,
    SCORED_PER_LINK,
    all_pairs,
)
from psgnn.spark._blocks import Block, Plan, by_kind
from psgnn.spark._graph import Blocks
from psgnn.spark._learn import Learned, scores_of
from psgnn.spark._mail import REPORT, Letter, Post
from psgnn.spark._tasks import ask, begin_walks, fetch, go_on_with_walks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WALKED = 2048  # consecutive nodes of a task that walks
ALL_SCORED = 200_000  # candidates: with fewer, all are scored
LEAF_NODES = 50_000  # whose embeddings are compared at one place
SAMPLED = 20_000  # nodes whose embeddings say where larger graphs are cut
EMBEDDED = 2048  # nodes at once
PER_BUCKET = 40_000  # candidates that lie at one place, about


@dataclass(frozen=True)
class Leaves:
    """Trees over the embedding: each halves the nodes along ``directions`` until `LEAF_NODES` or so are left.

    ``directions [T, D, d]`` and ``cuts [T, D, L]``: at depth j the node goes to the side of its product with
    direction j, above the cut of the part that it is in.
    """

    directions: Floats
    cuts: Floats

    def of(self, tree: int, h: Floats) -> IntArray:
        """The leaf of each row of the embedding."""
        leaf = np.zeros(h.shape[0], np.int64)
        for depth in range(self.directions.shape[1]):
            along = h @ self.directions[tree, depth]
            leaf = 2 * leaf + (along > self.cuts[tree, depth, leaf])
        return leaf


def grow(sample: Floats, nodes: int, rng: np.random.Generator) -> Leaves:
    """Trees for a graph of so many nodes, from the embeddings ``[n, d]`` of some."""
    depth = max(int(np.ceil(np.log2(nodes / LEAF_NODES))), 0)
    trees = TREES if depth else 1
    directions = np.zeros((trees, depth, sample.shape[1]), np.float32)
    cuts = np.zeros((trees, depth, 2 ** max(depth - 1, 0)), np.float32)
    for tree in range(trees):
        leaf = np.zeros(sample.shape[0], np.int64)
        for level in range(depth):
            one, other = sample[rng.choice(sample.shape[0], 2, replace=False)]
            directions[tree, level] = one - other
            along = sample @ directions[tree, level]
            for part in range(2**level):
                if (leaf == part).any():
                    cuts[tree, level, part] = np.median(along[leaf == part])
            leaf = 2 * leaf + (along > cuts[tree, level, leaf])
    return Leaves(directions, cuts)


# What blocks and buckets do


def embed(
    plan: Plan, network: Network, values: Floats, count: int, projection: Floats | None, share: float,
    place: int, letters: list[Letter],
) -> Iterator[Letter]:  # fmt: skip
    """Embed own nodes, in few dimensions; report those of some, and the nodes of most links."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    yield from (letter for letter in letters if letter.kind != "roles")
    parts = [h for _, h in vectors_of(kinds, block.size, network, values, count)]
    h = np.concatenate(parts if projection is None else [part @ projection for part in parts])
    yield Letter(place, "embedded", {"h": h})
    degrees = block.degrees[block.own]
    hubs = np.argsort(-degrees, kind="stable")[:PROMINENT]
    drawn = np.random.default_rng([1, place]).random(block.size) < share
    found = {"hubs": hubs + block.first, "degrees": degrees[hubs], "sample": h[drawn]}
    yield Letter(REPORT, "embedded", found)


def vectors_of(
    kinds: dict[str, list[Letter]], size: int, network: Network, values: Floats, count: int
) -> Iterator[tuple[int, Floats]]:
    """The embeddings of the own nodes of a block, some at a time, and the place of the first of them."""
    rows, traits = kinds["positions 000"][0].arrays, kinds["roles"][0].arrays["x"]
    for first in range(0, size, EMBEDDED):
        some = slice(first, min(first + EMBEDDED, size))
        of_graph = np.repeat(values[:1], some.stop - first, axis=0), np.full(some.stop - first, count)
        yield first, network.embed_rows(rows["channels"][some], traits[some], rows["basis"][some], *of_graph)


def send_to_leaves(plan: Plan, leaves: Leaves, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Send embeddings to where near ones are compared, and the nodes to where their walks are followed."""
    kinds = by_kind(letters)
    block, h = Block(plan, place, kinds["block"][0].arrays), kinds["embedded"][0].arrays["h"]
    nodes = np.arange(block.first, block.last)
    trees, depth = leaves.directions.shape[:2]
    for tree in range(trees):
        leaf = leaves.of(tree, h)
        for part in np.unique(leaf).tolist():
            some = leaf == part
            yield Letter((tree << depth) + part, "leaf", {"nodes": nodes[some], "h": h[some]})


def compare(
    nodes: int, count: int, buckets: int, trees: int, state: Any, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """Send pairs of nodes that are near each other to their buckets. `state` is that of the random numbers."""
    ids, h = (np.concatenate([letter.arrays[name] for letter in letters]) for name in ("nodes", "h"))
    rng = np.random.default_rng([2, place])
    if state is not None:
        rng.bit_generator.state = state
    batch = GraphBatch(
        Adjacency(np.zeros(ids.size + 1, np.int64), np.zeros(0, np.int32)), np.array([0, ids.size])
    )
    found = ids[pairs_of(nearest_partners(batch, h, count, dot=False, rng=rng, trees=trees))]
    yield from to_buckets(nodes, buckets, found)


def to_buckets(nodes: int, buckets: int, pairs: IntArray) -> Iterator[Letter]:
    """Letters with candidates, each pair once and the smaller end first, to the buckets of that end."""
    pairs = np.unique(np.sort(pairs, axis=0), axis=1)
    bucket = pairs[0] * buckets // nodes
    cuts = np.searchsorted(bucket, np.arange(buckets + 1))
    for place in np.flatnonzero(np.diff(cuts)).tolist():
        yield Letter(place, "candidates", {"pairs": pairs[:, cuts[place] : cuts[place + 1]]})


def hand_out(nodes: int, buckets: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Send what walks have found to the buckets."""
    yield from to_buckets(nodes, buckets, letters[0].arrays["pairs"])


def send_nodes(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Name the tasks that follow walks from own nodes."""
    first, last = plan.bounds[place : place + 2].tolist()
    for start in range(first, last, WALKED):
        task = {"nodes": np.array([start, min(start + WALKED, last)])}
        yield Letter(plan.bounds.size - 1 + start, "nodes", task)


def ask_features(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Put candidates together, and ask for what is quickly known of their nodes."""
    pairs = np.unique(np.concatenate([letter.arrays["pairs"] for letter in letters], axis=1), axis=1)
    yield Letter(plan.bounds.size - 1 + place, "candidates", {"pairs": pairs})
    yield Letter(REPORT, "candidates", {"count": np.array([pairs.shape[1]])})
    for letter in ask(plan, "features wanted", np.unique(pairs)):
        yield Letter(
            letter.place, letter.kind, letter.arrays | {"back": np.array([plan.bounds.size - 1 + place])}
        )


def answer_features(plan: Plan, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """The degrees and embeddings of nodes."""
    kinds = by_kind(letters)
    block = Block(plan, place, kinds["block"][0].arrays)
    h, degrees = kinds["embedded"][0].arrays["h"], block.degrees[block.own]
    for letter in kinds.get("features wanted", []):
        local = letter.arrays["nodes"] - block.first
        found = {"nodes": letter.arrays["nodes"], "h": h[local], "degrees": degrees[local]}
        yield Letter(int(letter.arrays["back"][0]), "features", found)


def note_features(place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Keep the candidates with their features ``[P, 4]``."""
    kinds = by_kind(letters)
    pairs = kinds["candidates"][0].arrays["pairs"]
    sent = [letter.arrays for letter in kinds["features"]]
    nodes, h, degrees = (np.concatenate([part[name] for part in sent]) for name in ("nodes", "h", "degrees"))
    us, vs = np.searchsorted(nodes, pairs)
    yield Letter(
        place, "known", {"pairs": pairs, "features": features_of(h[us], h[vs], degrees[us], degrees[vs])}
    )


def features_of(a: Floats, b: Floats, few: IntArray, many: IntArray) -> Floats:
    """What is quickly known of pairs: smaller and larger degree, and how near the embeddings are, ``[P, 4]``."""
    columns = [
        np.minimum(few, many),
        np.maximum(few, many),
        np.square(a - b).sum(axis=1),
        (a * b).sum(axis=1),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def report_candidates(share: float, seed: int, place: int, letters: list[Letter]) -> Iterator[Letter]:
    """Report a random share of the candidates."""
    known = letters[0].arrays
    some = np.random.default_rng([seed, place]).random(known["pairs"].shape[1]) < share
    yield letters[0]
    found = {"pairs": known["pairs"][:, some], "features": known["features"][some]}
    yield Letter(REPORT, "some", found)


def report_promising(
    model: Any, most: int, scored: IntArray, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """Report the candidates that a regression hopes most of, without those that are scored already."""
    known = letters[0].arrays
    yield letters[0]
    codes = known["pairs"][0] << 32 | known["pairs"][1]
    fresh = np.flatnonzero(~np.isin(codes, scored))
    with threadpool_limits(1, "openmp"):
        hopes = model.predict(known["features"][fresh]) if fresh.size else np.zeros(0)
    best = fresh[np.argsort(-hopes, kind="stable")[:most]]
    order = np.sort(-hopes)[:most]
    found = {"pairs": known["pairs"][:, best], "features": known["features"][best], "hopes": -order}
    yield Letter(REPORT, "some", found)


def report_neighbours(
    plan: Plan, nodes: IntArray, seed: int, place: int, letters: list[Letter]
) -> Iterator[Letter]:
    """Report up to `CLIMB_NEIGHBOURS` neighbours of some nodes."""
    block = Block(plan, place, next(letter.arrays for letter in letters if letter.kind == "block"))
    rng, rows = np.random.default_rng([seed, place]), []
    for node in nodes[(nodes >= block.first) & (nodes < block.last)].tolist():
        indptr = block.arrays["indptr"][node - block.first : node - block.first + 2]
        row = block.ids[block.arrays["indices"][slice(*indptr)]]
        if row.size > CLIMB_NEIGHBOURS:
            row = rng.choice(row, CLIMB_NEIGHBOURS, replace=False)
        rows.append(np.stack([np.full(row.size, node), row]))
    if rows:
        yield Letter(REPORT, "neighbours", {"pairs": np.concatenate(rows, axis=1)})


# The driver's part


class Finder:
    """Searches the pairs of a graph that a judge scores; what was scored is kept, as for one machine."""

    def __init__(self, post: Post, graph: Blocks, learned: Learned, network: Network, seed: int) -> None:
        self.post, self.graph, self.learned, self.network = post, graph, learned, network
        self.rng, self.seed = np.random.default_rng(seed), seed
        self.plan = graph.plan
        self.pairs = np.zeros((2, 0), np.int64)
        self.scores: npt.NDArray[np.float32] = np.zeros(0, np.float32)
        self.asked = self.pairs
        self.ranking: tuple[IntArray, Floats] = self.pairs, self.scores
        self.turn = 0

    def find(self, n: int) -> tuple[IntArray, Floats]:
        """The pairs that were scored to find the n best, best first, and their scores."""
        nodes = self.plan.nodes
        self.n, self.budget = n, max(LEAST_SCORED, SCORED_PER_LINK * n)
        if nodes * (nodes - 1) // 2 <= max(EXACT_PAIRS, self.budget):
            for pairs in all_pairs(np.array([0, nodes])):
                self._score(pairs)
        else:
            self._among_candidates()
            self._climb()
        order = np.argsort(-self.scores, kind="stable")
        return self.pairs[:, order], self.scores[order]

    def _score(self, pairs: IntArray) -> float:
        """Score them, keep those that are not linked, and say what the best of them has."""
        self.turn += 1
        found = scores_of(self.post, self.learned, pairs, f"scores {self.turn}")
        free = found[:, 1] == 0
        self.pairs = np.concatenate([self.pairs, pairs[:, free]], axis=1)
        self.scores = np.concatenate([self.scores, found[free, 0]])
        return float(found[free, 0].max(initial=-np.inf))

    def _among_candidates(self) -> None:
        post = self.post
        known, count = self.candidates()
        if count <= max(ALL_SCORED, self.budget):
            _, reports = post.step("candidates: all", known, partial(report_candidates, 1.0, self.seed))
            self._score(np.concatenate([letter.arrays["pairs"] for letter in reports], axis=1))
            return
        share = self.budget // (2 * ROUNDS)
        _, reports = post.step(
            "candidates: some", known, partial(report_candidates, share / count, self.seed)
        )
        features: list[Floats] = []
        for turn in range(ROUNDS):
            if turn:
                most = 2 * share // len(reports) + 100
                codes = np.sort(self.asked[0] << 32 | self.asked[1])
                work = partial(report_promising, self._regression(features), most, codes)
                _, reports = post.step(f"candidates: best {turn}", known, work)
            pairs = np.concatenate([letter.arrays["pairs"] for letter in reports], axis=1)
            table = np.concatenate([letter.arrays["features"] for letter in reports])
            if turn:
                hopes = np.concatenate([letter.arrays["hopes"] for letter in reports])
                best = np.argsort(-hopes, kind="stable")[:share]
                pairs, table = pairs[:, best], table[best]
            self.asked = pairs if not turn else np.concatenate([self.asked, pairs], axis=1)
            before = self.scores.size
            self._score(pairs)
            # Linked pairs are not answers, so they teach nothing either.
            kept = np.isin(pairs[0] << 32 | pairs[1], self.pairs[0, before:] << 32 | self.pairs[1, before:])
            features.append(table[kept])
        post.drop(known)

    def _regression(self, features: list[Floats]) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        table = np.concatenate(features)
        rank = self.scores.argsort().argsort() / max(self.scores.size - 1, 1)
        model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=24, random_state=self.seed)
        with threadpool_limits(1, "openmp"):
            return model.fit(table, self.scores, sample_weight=0.05 + rank**4)

    def pools(self, n: int) -> tuple[DataFrame, int, IntArray]:
        """Letters with the candidates to buckets, how many buckets there are, and the nodes of most links."""
        post, plan, measured = self.post, self.plan, self.learned.measured
        nodes = plan.nodes
        anchors = self.learned.judge.anchors
        width = _width(self.network, anchors, measured.values.shape[1])
        projection = None
        if width > PROJECTED:
            random = self.rng.standard_normal((width, PROJECTED), np.float32)
            projection = random / np.float32(np.sqrt(PROJECTED))
        share = min(SAMPLED / nodes, 1.0) if nodes > LEAF_NODES else 0.0
        work = partial(embed, plan, self.network, measured.values, anchors, projection, share)
        embedded, reports = post.step("embedding", measured.mail, work)
        self.embedded = embedded
        hubs = top_of(reports, "hubs", "degrees", PROMINENT)
        sample = np.concatenate([letter.arrays["sample"] for letter in reports])
        leaves = grow(sample, nodes, self.rng)
        count = min(PARTNERS, max(MOST_PARTNERS // nodes, 4))
        buckets = max(post.tasks, -(-nodes * 6 * count // PER_BUCKET))
        alone = leaves.directions.shape[1] == 0
        sent = post.kept(lambda: post.spread(embedded, partial(send_to_leaves, plan, leaves)), "leaves")
        trees, state = (TREES, self.rng.bit_generator.state) if alone else (1, None)
        near = post.spread(sent, partial(compare, nodes, count // 2, buckets, trees, state))
        tasks = post.kept(
            lambda: post.spread(post.some(embedded, ["block"]), partial(send_nodes, plan)), "walks"
        )
        go_on = partial(go_on_with_walks, plan, max(count, 4 * n // nodes))
        blocks = post.some(embedded, ["block"])
        walked, _ = fetch(post, blocks, tasks, plan, partial(begin_walks, plan), go_on, "walks")
        walks = post.spread(post.some(walked, ["done"]), partial(hand_out, nodes, buckets))
        return post.both(near, walks), buckets, hubs

    def candidates(self) -> tuple[DataFrame, int]:
        """Candidates with their features in buckets, and how many there are."""
        post, plan = self.post, self.plan
        found, buckets, hubs = self.pools(self.n)
        places = np.triu_indices(hubs.size, 1)
        of_hubs = post.letters(to_buckets(plan.nodes, buckets, np.stack([hubs[places[0]], hubs[places[1]]])))
        together, first = post.both(found, of_hubs), plan.bounds.size - 1
        asked, reports = post.step("candidates: asked", together, partial(ask_features, plan))
        total = sum(int(letter.arrays["count"][0]) for letter in reports)
        store = post.both(
            post.some(self.embedded, ["block", "embedded"]), post.some(asked, first=0, last=first)
        )
        answers = post.spread(store, partial(answer_features, plan))
        known, _ = post.step("candidates", post.both(answers, post.some(asked, first=first)), note_features)
        return known, total

    def _climb(self) -> None:
        """Go on from the best pairs to the neighbours of their ends, until that changes none of them."""
        in_vain = 0
        for climb in range(CLIMBS):
            bar = np.sort(self.scores)[-self.n :].min(initial=np.inf)
            best = self.pairs[:, np.argsort(-self.scores, kind="stable")[: self.n]]
            ends = np.unique(best)
            work = partial(report_neighbours, self.plan, ends, climb)
            table, reports = self.post.step(f"climb {climb}", self.graph.mail, work)
            self.post.drop(table)
            rows = np.concatenate([letter.arrays["pairs"] for letter in reports], axis=1)
            rows = rows[:, np.argsort(rows[0], kind="stable")]
            starts = np.searchsorted(rows[0], np.concatenate([best[1], best[0]]))
            stops = np.searchsorted(rows[0], np.concatenate([best[1], best[0]]), side="right")
            others = np.concatenate([best[0], best[1]])
            found = [
                np.stack([np.full(b - a, u), rows[1, a:b]])
                for u, a, b in zip(others, starts, stops, strict=True)
            ]
            pairs = np.unique(np.sort(np.concatenate(found, axis=1), axis=0), axis=1)
            codes = pairs[0] << 32 | pairs[1]
            pairs = pairs[:, (pairs[0] != pairs[1]) & ~np.isin(codes, self.pairs[0] << 32 | self.pairs[1])]
            most = max(self.budget // (2 * CLIMBS), 1)
            if pairs.shape[1] > most:
                pairs = pairs[:, np.sort(self.rng.choice(pairs.shape[1], most, replace=False))]
            if not pairs.shape[1]:
                return
            in_vain = 0 if self._score(pairs) > bar else in_vain + 1
            if in_vain == MOST_IN_VAIN:
                return


def _width(network: Network, anchors: int, vectors: int) -> int:
    """The dimensions of the embedding."""
    t = network.tensors
    numbers, roles = t["encoder.out.3.bias"].size, t["encoder.role.bias"].size
    return int(anchors * numbers + t["encoder.scales"].size * vectors + roles)


def top_of(reports: list[Letter], nodes: str, key: str, count: int) -> IntArray:
    """The nodes of the largest keys among those that blocks nominate; of equal ones the first."""
    found = np.concatenate([letter.arrays[nodes] for letter in reports])
    keys = np.concatenate([letter.arrays[key] for letter in reports])
    return np.asarray(found[np.lexsort((found, -keys))][:count])
