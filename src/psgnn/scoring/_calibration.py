"""How likely a pair is a missing link: probabilities that add up to the number of missing links, and their check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError
from psgnn.graph._graph import IntArray
from psgnn.graph._pair_space import pair_space, unlinked_pairs
from psgnn.graph._sampling import distinct_integers
from psgnn.kernels._scoring import pool_adjacent
from psgnn.positions._context import number_of_links
from psgnn.scoring._scorer import Scorer, keep
from psgnn.scoring._search import scores_of_few, searched

Floats = npt.NDArray[np.float64]
Rehearsed = tuple[Floats, Floats, Floats]
Ranked = tuple[Floats, Floats]  # scores, and how many pairs each stands for

SHARE_MISSING = 0.1  # of the known links, unless a person says otherwise
RANKED, SAMPLED = 1000, 10_000
ENOUGH_HIDDEN = 2000  # links, after which there are no more rehearsals
COUNTED = 3 * RANKED  # pairs whose ranks are counted; those below are estimated from the sample
REHEARSED = 10 * RANKED  # the best pairs, among which are the best of the rehearsal
LINKS_PER_BLOCK, BLOCKS = 5, 100  # hidden links that a step of the probability rests on, and the most steps
ROUNDS = 10  # that bring the sum of the probabilities of every block to its share of the missing links
MOST_PROBABILITY = 0.98  # nothing is certain


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from scores to the log-probability that a pair is a missing link: increasing, linear between ``knots``.

    ``missing`` is the number of missing links that the probabilities of all pairs add up to. ``rehearsed`` are the
    scores, labels and weights ``[P]`` that it was learned from: hidden links (1) and other pairs (0).
    """

    knots: Floats
    log_probability: Floats
    missing: float
    rehearsed: Rehearsed

    def probability(self, scores: npt.NDArray[Any]) -> Floats:
        """The probability that pairs of these scores are missing links."""
        return np.asarray(np.exp(np.interp(scores, self.knots, self.log_probability)))


def parse_missing(text: str | float | None, links: int) -> float | None:
    """``5%``, ``200``, a share below 1, or None: how many links are missing."""
    if text is None:
        return None
    try:
        percent = isinstance(text, str) and text.strip().endswith("%")
        number = float(text.strip().rstrip("%") if isinstance(text, str) else text)
    except ValueError:
        raise InputError(f"--missing takes a share such as 5% or a number of links, found '{text}'") from None
    count = number / 100 * links if percent else number * links if 0 < number < 1 else number
    if not 0 < count < float("inf"):
        raise InputError(f"--missing must be more than 0, found '{text}'")
    return count


def calibrate(
    scorer: Scorer, missing: float | None = None, *, seed: int = 0, show_progress: bool = False
) -> Calibration | None:
    """Learn from links that a scorer does not see how likely its scores are missing links.

    The scorer rehearses: links of its graph are hidden, and it ranks the pairs that are not linked. Among its best
    pairs all are counted, below them a sample of the others. The ratio of hidden links to other pairs at a score, made
    monotone and scaled to the number of missing links, is the probability of a pair of that score.

    Args:
        scorer: What gives the scores.
        missing: How many links are missing; a tenth of the known ones if None.
        seed: Of the sample.
        show_progress: Show bars with the time left.

    Returns:
        The calibration, or None where the graph has too few links to rehearse with.
    """
    links = number_of_links(scorer.batch)
    unlinked = float(pair_space(scorer.batch).sizes.sum()) - links
    if unlinked < 1:
        raise InputError("all nodes are linked with one another, so no link can be missing")
    count = min(SHARE_MISSING * links, unlinked) if missing is None else missing
    if count > unlinked:
        raise InputError(
            f"--missing is {count:g}, but only {unlinked:.0f} pairs are not linked; make it smaller"
        )
    evidence = rehearse(scorer, seed=seed, show_progress=show_progress)
    return None if evidence is None else fit_calibration(*evidence, count)


def fit_calibration(scores: Floats, labels: Floats, weights: Floats, count: float) -> Calibration:
    """The calibration that a rehearsal gives: scores and labels of pairs, the weights of those that stand for more."""
    rehearsed = scores, labels, np.where(labels > 0, weights * count / max(labels.sum(), 1), weights)
    order = np.argsort(scores, kind="stable")
    knots, log_probability = _isotonic(scores[order], labels[order], rehearsed[2][order])
    return Calibration(knots, log_probability, count, rehearsed)


def rehearse(
    scorer: Scorer, *, seed: int = 0, known: Rehearsed | None = None, show_progress: bool = False
) -> Rehearsed | None:
    """What a scorer is calibrated by, or None where it has too few links; it is kept with the scorer.

    This is the slow part of `calibrate`, unless the result is `known` from an earlier time.
    """
    return keep(scorer, ("calibration", seed), lambda: known or _rehearsed(scorer, seed, show_progress))


def _rehearsed(scorer: Scorer, seed: int, show_progress: bool) -> Rehearsed | None:
    """Scores, labels and weights of hidden links and of other pairs, from as many rehearsals as it takes.

    With more links to see, a scorer gives the same pairs other scores. So a score of the rehearsal becomes the score
    that the scorer itself gives at the same rank among the pairs that are unlinked in both.
    """
    found: list[Rehearsed] = []
    for before, links in scorer.rehearsals():
        if not found:
            best, now, some, total = _unlinked(scorer, seed, show_progress)
            new = ranked(now, scorer.score(some), total)
            all_linked = scorer.batch.adjacency.degrees.all()
        old = ranked(before.score(best), before.score(some), total)
        alone = (before.batch.adjacency.degrees[links] == 0).any(axis=0) & all_linked
        found.append(rehearsal(before.score(links).astype(np.float64), alone, old, new))
        if enough(found):
            break
    return joined(found)


def rehearsal(links: Floats, alone: npt.NDArray[np.bool_], old: Ranked, new: Ranked) -> Rehearsed:
    """What one rehearsal shows: its scores of hidden links, and of pairs as it ranks them and as the scorer does.

    ``alone`` are the hidden links that leave a node without links. No pair that is asked about has such a node, so
    their scores say nothing about it, and they count as the least likely of all.
    """
    links = np.where(alone, old[0].min(), links)
    scores = _at_same_rank(np.concatenate([links, old[0]]), old, new)
    labels = np.repeat([1.0, 0.0], [links.size, old[0].size])
    return scores, labels, np.concatenate([np.ones(links.size), old[1]])


def enough(found: list[Rehearsed]) -> bool:
    """Whether these rehearsals have hidden links enough."""
    return sum(int(labels.sum()) for _, labels, _ in found) >= ENOUGH_HIDDEN


def joined(found: list[Rehearsed]) -> Rehearsed | None:
    """Several rehearsals as one; None without any."""
    if not found:
        return None
    scores, truth, stands_for = (np.concatenate(part) for part in zip(*found, strict=True))
    # Every rehearsal has all of the other pairs.
    return scores, truth, np.where(truth > 0, stands_for, stands_for / len(found))


def _unlinked(
    scorer: Scorer, seed: int, show_progress: bool
) -> tuple[IntArray, npt.NDArray[Any], IntArray, int]:
    """The best unlinked pairs, their scores, a sample of all unlinked pairs, and how many these are."""
    few = scores_of_few(scorer)
    if few is not None:
        return *few, np.zeros((2, 0), np.int64), few[1].size
    pairs, scores = searched(scorer, RANKED, seed=seed, show_progress=show_progress)
    pool = unlinked_pairs(scorer.batch)
    total = int(pool.sizes.sum())
    some = pool.unrank(np.sort(distinct_integers(total, SAMPLED, np.random.default_rng(seed))))
    return pairs[:, :REHEARSED], scores[:REHEARSED], some, total


def ranked(best: npt.NDArray[Any], sample: npt.NDArray[Any], total: int) -> Ranked:
    """The best scores, with a sample of the scores below them, and how many of `total` pairs each stands for."""
    if sample.size:
        best = np.sort(best)[::-1][:COUNTED]
        sample = sample[sample < best.min()]  # above it all pairs are known
    weights = np.repeat([1.0, (total - best.size) / max(sample.size, 1)], [best.size, sample.size])
    return np.concatenate([best, sample]).astype(np.float64), weights


def _at_same_rank(scores: Floats, before: Ranked, now: Ranked) -> Floats:
    """Scores of one scorer as those of another with as many pairs above them; ``before`` and ``now`` hold both's pairs.

    Pairs are their scores and how many pairs each stands for. Above the best pair scores keep their distance to it.
    """
    ranked = []
    for values, stands_for in (before, now):
        order = np.argsort(-values, kind="stable")
        ranked.append((values[order], np.cumsum(stands_for[order]) - stands_for[order] / 2))
    (old, old_rank), (new, new_rank) = ranked
    rank = np.interp(-scores, -old, old_rank)
    return np.asarray(np.interp(rank, new_rank, new) + np.maximum(scores - old[0], 0))


def _isotonic(scores: Floats, labels: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Knots and log-probabilities that never fall; scores are in ascending order.

    Pairs that count as unlinked here are those that are asked about later, the truly missing links among them. So
    the hidden links at a score, divided by the other pairs there, are the probability.
    """
    starts, _ = pool_adjacent(labels, weights)
    # One lucky link at the top says little: it is joined with what is below, until there are enough.
    found = np.add.reduceat(labels, starts)
    enough = max(LINKS_PER_BLOCK, labels.sum() // BLOCKS)
    above = found.sum() - np.cumsum(found)
    starts = starts[np.flatnonzero(np.diff(above // enough, prepend=-1))]
    # A block without a link, or of links alone, has seen too little to be sure of it.
    least = 0.5 * float(weights[labels > 0].min(initial=1.0))
    others = np.where(labels > 0, 0.0, weights)
    links = np.add.reduceat(labels * weights, starts)
    share = (links + least) / (np.add.reduceat(others, starts) + least)
    # After n hidden links and nothing else, the next pair is one with the chance (n + 1) / (n + 2).
    seen = np.add.reduceat(labels, starts)
    most = np.log(np.minimum((seen + 1) / (seen + 2), MOST_PROBABILITY))
    logs = np.minimum.accumulate(np.minimum(np.log(share), most)[::-1])[::-1]
    # The probability is that of the block between its quartiles, and rises from there to the next block.
    sums = np.cumsum(weights)
    before = sums[starts] - weights[starts]
    whole = np.append(before[1:], sums[-1]) - before
    places = np.searchsorted(sums, np.stack([before + 0.25 * whole, before + 0.75 * whole], axis=1).ravel())
    knots = scores[places.clip(max=scores.size - 1)]
    for _ in range(ROUNDS):
        expected = np.add.reduceat(others * np.exp(np.interp(scores, knots, np.repeat(logs, 2))), starts)
        off = np.log(np.where(links > 0, links, expected) / np.maximum(expected, 1e-12))
        logs = np.maximum.accumulate(np.minimum(logs + off.clip(-0.5, 0.5), most))
    return knots, np.repeat(logs, 2)


BINS_PER_DECADE = 2
LEAST_SHARE = 1e-6  # probabilities below it count as it


def reliability_of(calibration: Calibration, *, seed: int = 0) -> dict[str, Any] | None:
    """Compare probabilities with the shares of links found, on pairs that the probabilities were not learned from.

    The pairs of the rehearsal are halved. Each half is judged by the calibration that the other half gives. Every pair
    counts as often as it stands for pairs of the graph, and the hidden links as the missing ones.

    Returns:
        Arrays with an entry per bin of the probability: ``probability`` (the mean), ``share`` (missing links per
        unlinked pair), ``pairs`` (of the graph) and ``hidden`` (links of the rehearsal). None where a half has none.
    """
    scores, labels, weights = calibration.rehearsed
    half = np.random.default_rng(seed).random(scores.size) < 0.5
    if any(len(np.unique(labels[part])) < 2 for part in (half, ~half)):
        return None
    said = np.empty(scores.size)
    for part in (half, ~half):
        # Half of the other pairs are here, so half of the missing links are.
        learned = fit_calibration(
            scores[part], labels[part], _sampled(labels, weights)[part], calibration.missing / 2
        )
        said[~part] = learned.probability(scores[~part])
    place = np.floor(BINS_PER_DECADE * np.log10(said.clip(LEAST_SHARE, 1 - 1e-9))).astype(np.int64)
    bins, place = np.unique(place, return_inverse=True)
    others = np.where(labels > 0, 0.0, weights)
    pairs, links, expected = (
        np.bincount(place, values, bins.size)
        for values in (others, np.where(labels > 0, weights, 0.0), others * said)
    )
    filled = pairs > 0
    share = np.minimum(links[filled] / pairs[filled], 1)
    return {
        "probability": (expected[filled] / pairs[filled]).astype(np.float32),
        "share": share.astype(np.float32),
        "pairs": np.round(pairs[filled]).astype(np.int64),
        "hidden": np.bincount(place, labels, bins.size)[filled].astype(np.int64),
    }


def _sampled(labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights before the hidden links were scaled to the missing ones."""
    return np.where(labels > 0, 1.0, weights)
