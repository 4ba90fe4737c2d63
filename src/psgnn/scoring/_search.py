"""Missing links: the best-scored pairs of nodes that are not linked, without scoring all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from psgnn.console import Bar, progress
from psgnn.distances._propagation import Floats
from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._pair_space import links_of, pair_space, unlinked_pairs
from psgnn.kernels._compile import parallel_map
from psgnn.kernels._pairs import local_walks
from psgnn.scoring._candidates import nearest_partners, pairs_of, prominence, prominent_pairs, walk_partners
from psgnn.scoring._scorer import Scorer, blocks_of, keep

FEW_PAIRS = 20_000  # whose scores are kept
EXACT_PAIRS = 100_000  # of a set decoder, which looks at every pair by itself: scored in any case
EXACT_EMBEDDED_PAIRS = 2_000_000  # of a product or distance of embeddings
LEAST_SCORED, SCORED_PER_LINK = 20_000, 40
PARTNERS = 16  # of a node at two and at three hops; half as many from each tree over the embedding
MOST_PARTNERS = 800_000  # of each kind; nodes of larger graphs have fewer, down to 4
PROMINENT = 200
PROJECTED = 64  # dimensions in which neighbours are looked for
ROUNDS, CLIMBS = 4, 8
KEPT_PER_SCORED = 10  # candidates that stay in the pool for each that is scored in the end
MOST_IN_VAIN = 2  # rounds of climbing that bring nothing before it ends
CLIMB_NEIGHBOURS = 48  # of a node of a good pair, that its partner is tried with
ROWS = 8  # nodes of many good pairs, that are tried with every node
MOST_KEPT_SEARCH = 10_000  # links that a search was for, whose scores are kept
MOST_KEPT_NUMBERS = 10**8  # of embeddings that are kept for scoring
BLOCK, NODE_BLOCK, FEATURE_BLOCK, PART = 2**12, 2**11, 2**14, 2**20
MOST_WALKED = 500  # steps that are taken for the regression's features of a pair

Scores = npt.NDArray[np.float32]


def top_links(
    scorer: Scorer, n: int, *, seed: int = 0, show_progress: bool = False
) -> tuple[IntArray, Floats]:
    """Find the n best-scored pairs of unlinked nodes of the same graph.

    All pairs are scored where they are few (up to 450 nodes, or 2000 if a score is a product or distance of
    embeddings). Otherwise candidates are nodes two and three hops apart, neighbours in the embedding, and pairs of
    hubs. A quick regression learns from scored pairs which others to score. The search then expands the best pairs to
    the neighbours of their ends, and ends that come often to all nodes. It takes O(N log N) time and memory and some
    20,000 scores, or 40 n if that is more. docs/performance.md says how many of the true best pairs it finds, and how
    fast.

    Args:
        scorer: A trained run or ready-made weights, on their graphs.
        n: How many pairs. Links that were held out count as links.
        seed: Of the random parts of the search.
        show_progress: Show a bar with the time left.

    Returns:
        Pairs, int64 ``[2, n]``, best first, and their logits ``[n]``; fewer where there are not so many pairs.
    """
    if n < 1:
        raise InputError(f"ask for 1 or more links, found {n}")
    few = scores_of_few(scorer)
    if few is not None:
        pairs, scores = few
        pairs = pairs[:, np.argsort(-scores, kind="stable")[:n]]
    else:
        pairs = searched(scorer, n, seed=seed, show_progress=show_progress)[0][:, :n]
    scores = scorer.score(pairs)  # what the scorer gives for exactly these pairs
    order = np.argsort(-scores, kind="stable")
    return pairs[:, order], scores[order]


def searched(
    scorer: Scorer, n: int, *, seed: int = 0, show_progress: bool = False
) -> tuple[IntArray, Floats]:
    """The pairs ``[2, P]`` that a search for the n best has scored, best first, and their scores.

    They are kept with the scorer: a later search for as many or fewer is this one.
    """
    known = keep(scorer, ("searched", seed), dict[int, tuple[IntArray, Floats]])
    for size, found in known.items():
        if size >= n:
            return found
    search = Search(scorer, n, np.random.default_rng(seed))
    search.look_around(show_progress)
    with Bar("scoring pairs", search.budget, show=show_progress) as bar:
        search.run(bar.update)
    best = np.argsort(-search.scores, kind="stable")
    found = search.pairs(search.scored[best]), search.scores[best]
    if n <= MOST_KEPT_SEARCH:
        known.clear()
        known[n] = found
    return found


def scores_of_few(scorer: Scorer) -> tuple[IntArray, Floats] | None:
    """All unlinked pairs ``[2, P]`` and their scores, kept with the scorer; None where there are many."""
    if pair_space(scorer.batch).sizes.sum() > FEW_PAIRS:
        return None

    def score() -> tuple[IntArray, Floats]:
        pool = unlinked_pairs(scorer.batch, scorer.hidden)
        pairs = pool.unrank(np.arange(int(pool.sizes.sum())))
        return pairs, scorer.score(pairs)

    return keep(scorer, "few", score)


def all_pairs(ptr: IntArray, most: int = PART) -> Iterator[IntArray]:
    """All pairs u < v of nodes of one graph, in parts ``[2, P]`` of about `most` of them, or a node's."""
    for first, last in pairwise(ptr.tolist()):
        u = first
        while u < last - 1:
            end = min(u + max(most // (last - u), 1), last - 1)
            us, vs = np.divmod(np.arange((end - u) * (last - u)), last - u)
            yield np.stack([us, vs])[:, us < vs] + u
            u = end


class Search:
    """Pairs are codes ``u N + v`` as their space writes them, so that sets of them are sorted arrays."""

    def __init__(self, scorer: Scorer, n: int, rng: np.random.Generator) -> None:
        self.scorer, self.n, self.rng = scorer, n, rng
        self.union = scorer.batch
        self.dot = scorer.similarity == "dot"
        self.space = pair_space(self.union)
        edges = np.concatenate([links_of(self.union, self.space), scorer.hidden], axis=1)
        self.links = np.unique(self._codes(edges))
        self.num_pairs = int(self.space.sizes.sum())
        self.budget = max(LEAST_SCORED, SCORED_PER_LINK * n)
        few = EXACT_PAIRS if scorer.similarity is None else EXACT_EMBEDDED_PAIRS
        self.exact = self.num_pairs <= max(few, self.budget)
        if self.exact:
            self.budget = self.num_pairs
        self.done = 0
        self.looked_at: set[int] = set()
        self.known = np.zeros((0, 8), np.float32)
        self.pool = self.scored = np.zeros(0, np.int64)
        self.scores: Scores = np.zeros(0, np.float32)

    def look_around(self, show_progress: bool, partners: int | None = None) -> None:
        """Embed the nodes, and find `partners` of each; by default none where all pairs are scored anyway."""
        self.h = self._kept_embeddings(show_progress)
        if self.exact and partners is None:
            return
        self.near = self._projected(show_progress)
        count = partners or min(PARTNERS, max(MOST_PARTNERS // self.union.num_nodes, 4))
        with Bar("looking for candidates", 2, show=show_progress) as bar:
            self.walks = walk_partners(self.union.adjacency, max(count, 4 * self.n // self.union.num_nodes))
            bar.update(1)
            self.nearest = nearest_partners(self.union, self.near, count // 2, dot=self.dot, rng=self.rng)

    def run(self, progress: Callable[..., None]) -> None:
        """Fill `scored` and `scores`."""
        self.progress = progress
        if self.exact:
            for pairs in all_pairs(self.union.ptr):
                self._score(self._new(pairs))
            return
        self.pool = self._new(self._candidates())
        if self.h is None:
            self._learn_where_to_look()
        else:
            self._score(self.pool)
            self.pool = self.pool[:0]
        self._climb()

    def _candidates(self) -> IntArray:
        busy, count = prominence(self.union), max(PROMINENT // self.union.num_graphs, 4)
        found = [pairs_of(self.walks), pairs_of(self.nearest), prominent_pairs(self.union, busy, count)]
        if self.space.ordered:
            found.append(links_of(self.union, self.space)[::-1])  # links that may be answered
        if self.dot:
            found.append(prominent_pairs(self.union, np.square(self.near).sum(axis=1), count))
        return np.concatenate(found, axis=1)

    # Scores

    def _kept_embeddings(self, show_progress: bool) -> Floats | None:
        """Embeddings to score pairs by; none where a score needs more, or they would take too much memory."""
        if self.scorer.similarity is None:
            return None
        if self.scorer.embeds_some:
            width = self.scorer.embed([0]).shape[1]
            if width * self.union.num_nodes > MOST_KEPT_NUMBERS:
                return None
        return self.scorer.embed(show_progress=show_progress)

    def _score(self, codes: IntArray) -> float:
        """Score them, and say what the best of them has."""
        best = -np.inf
        for block in np.array_split(codes, -(-codes.size // BLOCK) or 1):
            pairs = self.pairs(block)
            scores = self.scores_of(pairs)
            best = max(best, float(scores.max(initial=best)))
            self.scored = np.concatenate([self.scored, block])
            self.scores = np.concatenate([self.scores, scores])
            if self.exact or self.h is not None:
                self._forget()
            self.done += block.size
            self.progress(min(self.done, self.budget))
        return best

    def scores_of(self, pairs: IntArray) -> Scores:
        """The scores of pairs ``[2, P]``, from kept embeddings where there are any."""
        return self.scorer.score(pairs) if self.h is None else self.scorer.score_embedded(self.h, pairs)

    def linked(self, pairs: IntArray) -> npt.NDArray[np.bool_]:
        """Which of the pairs ``[2, P]`` are known links."""
        codes = self._codes(pairs)
        places = np.searchsorted(self.links, codes).clip(max=max(self.links.size - 1, 0))
        return np.asarray(self.links[places] == codes) if self.links.size else np.zeros(codes.size, bool)

    def _forget(self) -> None:
        """Keep the best alone, where nothing is learned from the others."""
        most = max(2 * self.n, BLOCK)
        if self.scored.size > 8 * most:
            best = np.argpartition(-self.scores, most)[:most]
            self.scored, self.scores = self.scored[best], self.scores[best]

    # Where to look

    def _learn_where_to_look(self) -> None:
        """Score some candidates, learn from them which others are best, score these, and so on."""
        share = self.budget // (2 * ROUNDS)
        some = self.rng.permutation(self.pool.size) < share
        self._score(self.pool[some])
        self._fill(self.pool[~some])
        for _ in range(ROUNDS - 1):
            self._score(self._promising(share))

    def _fill(self, codes: IntArray) -> None:
        """Make these the pool, with what is known about them."""
        self.pool, self.known = codes, self._features(codes)

    def _promising(self, count: int) -> IntArray:
        """Take `count` pairs whose scores should be largest out of the pool; those without much hope leave it too."""
        if self.pool.size <= count:
            found, self.pool, self.known = self.pool, self.pool[:0], self.known[:0]
            return found
        from sklearn.ensemble import HistGradientBoostingRegressor

        seed = int(self.rng.integers(2**31))
        regression = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=24, random_state=seed)
        # The order among the best is what matters, so they are repeated. Weights would make the regression sort every
        # feature again to find its bins.
        rank = self.scores.argsort().argsort() / max(self.scores.size - 1, 1)
        weight = np.cumsum(0.05 + rank**4)
        rows = np.searchsorted(weight, (np.arange(rank.size) + 0.5) / rank.size * weight[-1])
        features = self._features(self.scored)[rows]
        # Threads that share a busy core wait for one another longer than they work.
        with threadpool_limits(1, "openmp"):
            regression.fit(features, self.scores[rows])
        with threadpool_limits(1, "openmp") if self.pool.size <= PART else nullcontext():
            hopes = regression.predict(self.known)
        order = np.argsort(-hopes, kind="stable")
        found, kept = np.sort(self.pool[order[:count]]), order[count : KEPT_PER_SCORED * self.budget]
        self.pool, self.known = self.pool[kept], self.known[kept]
        return found

    def _features(self, codes: IntArray) -> npt.NDArray[np.float32]:
        """What is quickly known about pairs: walks of two and three steps, degrees and the embedding, ``[P, 8]``."""
        adjacency, out = self.union.adjacency, np.empty((codes.size, 8), np.float32)
        degrees = adjacency.degrees.astype(np.float32)

        def piece(start: int) -> None:
            us, vs = self.pairs(codes[start : start + FEATURE_BLOCK])
            # One hub after the other: `local_walks` looks around each of them once.
            swapped = degrees[us] > degrees[vs]
            us, vs = np.where(swapped, vs, us), np.where(swapped, us, vs)
            order = np.argsort(vs, kind="stable")
            us, vs = us[order], vs[order]
            walks = np.empty((us.size, 6))
            local_walks(adjacency.indptr, adjacency.indices, us, vs, MOST_WALKED, walks)
            a, b = self.near[us], self.near[vs]
            ends = np.stack([degrees[us], degrees[vs]])
            columns = [*walks[:, [1, 3, 4, 5]].T, ends.min(axis=0), ends.max(axis=0)]
            columns += [np.square(a - b).sum(axis=1), (a * b).sum(axis=1)]
            out[start + order] = np.stack(columns, axis=1)

        parallel_map(piece, range(0, codes.size, FEATURE_BLOCK), 1000.0 * codes.size)
        return out

    def _climb(self) -> None:
        """Go on from the best pairs, until that changes none of them."""
        share = max(self.budget // (2 * CLIMBS), 1)
        in_vain = 0
        for _ in range(CLIMBS):
            bar = np.sort(self.scores)[-self.n :].min(initial=np.inf)
            best = self.pairs(self.scored[np.argsort(-self.scores, kind="stable")[: self.n]])
            found = self._new(np.concatenate([self._around(best), self._rows_of(best)], axis=1))
            found = np.setdiff1d(found, np.concatenate([self.scored, self.pool]), assume_unique=True)
            if self.h is None:
                self.known = np.concatenate([self.known, self._features(found)])
                self.pool = np.concatenate([self.pool, found])
                found = self._promising(share)
            if found.size == 0:
                return
            in_vain = 0 if self._score(found) > bar else in_vain + 1
            if in_vain == MOST_IN_VAIN:
                return

    def _around(self, best: IntArray) -> IntArray:
        """An end of every pair with the neighbours of the other, in the graph and in the embedding."""
        adjacency = self.union.adjacency
        found = [np.zeros((2, 0), np.int64)]
        for u, v in (*best.T, *best[::-1].T):
            row = adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]]
            if row.size > CLIMB_NEIGHBOURS:
                row = self.rng.choice(row, CLIMB_NEIGHBOURS, replace=False)
            others = np.concatenate([row, self.nearest[v][self.nearest[v] >= 0]])
            found.append(np.stack([np.full(others.size, u), others.astype(np.int64)]))
        return np.concatenate(found, axis=1)

    def _rows_of(self, best: IntArray) -> IntArray:
        """All pairs of the nodes that come most often among the best, once."""
        nodes, times = np.unique(best, return_counts=True)
        found = [np.zeros((2, 0), np.int64)]
        for u in nodes[np.argsort(-times, kind="stable")][:ROWS].tolist():
            if u in self.looked_at:
                continue
            self.looked_at.add(u)
            g = self.union.graph_of[u]
            everyone = np.arange(self.union.ptr[g], self.union.ptr[g + 1])
            found.append(np.stack([np.full(everyone.size, u), everyone]))
        return np.concatenate(found, axis=1)

    def _projected(self, show_progress: bool) -> Floats:
        """The embeddings in at most `PROJECTED` dimensions, by a random projection where they have more."""
        projection, rows = None, []
        nodes = np.arange(self.union.num_nodes)
        blocks = blocks_of(nodes.size, NODE_BLOCK)
        for some in progress(blocks, "embedding", show=show_progress and self.h is None):
            h = self.scorer.embed(nodes[some]) if self.h is None else self.h[some]
            if h.shape[1] > PROJECTED:
                if projection is None:
                    random = self.rng.standard_normal((h.shape[1], PROJECTED), np.float32)
                    projection = random / np.float32(np.sqrt(PROJECTED))
                h = h @ projection
            rows.append(h)
        return np.concatenate(rows)

    # Codes

    def _codes(self, pairs: IntArray) -> IntArray:
        us, vs = self.space.oriented(pairs)
        return np.asarray(us * self.union.num_nodes + vs)

    def pairs(self, codes: IntArray) -> IntArray:
        """The pairs ``[2, P]`` of codes."""
        return np.stack(np.divmod(codes, self.union.num_nodes))

    def _new(self, pairs: IntArray) -> IntArray:
        """The codes of unlinked pairs of different nodes among these, each once, in ascending order."""
        if self.space.ordered:
            pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
        codes = np.unique(self._codes(pairs[:, self.space.holds(pairs)]))
        return np.setdiff1d(codes, self.links, assume_unique=True)
