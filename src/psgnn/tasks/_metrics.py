r"""How well scores rank pairs: functions of arrays or tensors, and :func:`evaluate` for a whole split.

:math:`\mathrm{AUC} = P(s_+ > s_-) + \tfrac12 P(s_+ = s_-)` for a random positive and a random negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.errors import InputError, unknown_name
from psgnn.graph._graph import to_numpy

if TYPE_CHECKING:
    from psgnn.tasks import LabelledPairs

Array = npt.NDArray[Any]
Values = npt.ArrayLike  # tensors as well


METRICS = ("auc", "auc_pooled", "ap", "mrr", "hits@10", "hits@20", "hits@50", "hits@100")


def evaluate(split: LabelledPairs, scores: Values, metrics: Sequence[str] = METRICS) -> dict[str, float]:
    """The metrics by name: ``auc`` is the mean over the graphs that have both labels, all others are of all pairs.

    ``mrr`` and ``hits@K``, with any K, rank every positive among all negatives of the split; ``hits@K`` is 1
    where there are fewer than K. Where positives have negatives of their own, each is ranked among those,
    and ``hits@K`` is the share of ranks up to K. Ask for ``("auc",)`` alone where it is called often.
    """
    positive, score = _checked(split.labels, scores)
    return {name: _metric(name, positive, score, split.graph_ids, split.own_negatives) for name in metrics}


def check_metric(name: str) -> str:
    """The name of a metric, if there is such a one."""
    kind, _, k = name.partition("@")
    if name not in METRICS and (kind != "hits" or not k.isdecimal()):
        raise unknown_name("metric", name, METRICS)
    return name


def _metric(name: str, positive: Array, score: Array, graph_ids: Values, own_negatives: int) -> float:
    if name == "auc":
        return grouped_auc(positive, score, graph_ids)
    if name == "auc_pooled":
        return roc_auc(positive, score)
    if name == "ap":
        return average_precision(positive, score)
    kind, _, k = name.partition("@")
    if name != "mrr" and (kind != "hits" or not k.isdecimal()):
        raise unknown_name("metric", name, METRICS)
    if own_negatives:
        ranks = own_ranks(score[positive], score[~positive].reshape(-1, own_negatives))
        return float(np.mean(1 / ranks if name == "mrr" else ranks <= int(k)))
    if name == "mrr":
        return mrr(score[positive], score[~positive])
    return hits_at_k(score[positive], score[~positive], int(k))


def roc_auc(labels: Values, scores: Values) -> float:
    """Area under the ROC curve of all pairs together; ties count half."""
    return grouped_auc(labels, scores, np.zeros(to_numpy(labels).shape, dtype=np.int64))


def grouped_auc(labels: Values, scores: Values, groups: Values) -> float:
    """Mean of the AUCs of the groups that have both labels; ``groups [P]`` are integers of 0 or more."""
    positive, score = _checked(labels, scores)
    group = to_numpy(groups)
    if group.shape != score.shape or group.dtype.kind not in "iu" or group.min() < 0:
        raise InputError(
            f"groups must be {score.size} integers of 0 or more, found {group.dtype} {group.shape}"
        )
    one_group = group.min() == group.max()
    order = np.argsort(score) if one_group else np.lexsort((score, group))
    positive, score, group = positive[order], score[order], group[order]
    first = np.append(True, (score[1:] != score[:-1]) | (group[1:] != group[:-1]))
    tie = np.cumsum(first) - 1
    bounds = np.append(np.flatnonzero(first), score.size)
    rank = (bounds[tie] + bounds[tie + 1] + 1) / 2  # from 1; equal scores share their mean rank

    sizes = np.bincount(group)  # [G], as all below
    positives = np.bincount(group, positive)
    pairs = positives * (sizes - positives)
    # Mann-Whitney: the ranks of the positives, less what they would be if they stood lowest.
    lowest = positives * (np.cumsum(sizes) - sizes) + positives * (positives + 1) / 2
    wins = np.bincount(group, rank * positive) - lowest
    both = pairs > 0
    if not both.any():
        raise InputError(
            f"AUC needs positives and negatives, found {positive.sum()} positives of {score.size}"
        )
    return float(np.mean(wins[both] / pairs[both]))


def auc_standard_error(auc: float, positives: int, negatives: int) -> float:
    """Return how much an AUC of that many pairs varies from sample to sample (Hanley and McNeil 1982)."""
    higher, lower = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
    variance = auc * (1 - auc) + (positives - 1) * higher + (negatives - 1) * lower
    return float(np.sqrt(max(variance, 0.0) / (positives * negatives)))


def average_precision(labels: Values, scores: Values) -> float:
    r""":math:`\sum_t (R_t - R_{t-1}) P_t` over the distinct scores :math:`t`, from the highest down."""
    positive, score = _checked(labels, scores)
    if not positive.any():
        raise InputError(f"average precision needs a positive, found none of {score.size}")
    order = np.argsort(score)[::-1]
    positive, score = positive[order], score[order]
    last = np.append(score[1:] != score[:-1], True)  # of a run of equal scores
    hits = np.cumsum(positive)[last]
    precision = hits / (np.flatnonzero(last) + 1)
    return float(np.sum(np.diff(hits, prepend=0) * precision) / hits[-1])


def hits_at_k(positives: Values, negatives: Values, k: int) -> float:
    """Share of the positives above the ``k``-th best negative, as OGB counts; 1 if there is none."""
    above, below = _numbers(positives), _numbers(negatives)
    if k < 1:
        raise InputError(f"k={k} is not an integer of 1 or more")
    if k > below.size:
        return 1.0
    return float(np.mean(above > np.partition(below, below.size - k)[below.size - k]))


def mrr(positives: Values, negatives: Values) -> float:
    """Mean of ``1 / rank`` of the positives among all negatives; a tie takes the mean of best and worst."""
    # Sorted scores are several times faster to look up.
    above, below = np.sort(_numbers(positives)), np.sort(_numbers(negatives))
    better = below.size - np.searchsorted(below, above, side="right")
    better_or_equal = below.size - np.searchsorted(below, above, side="left")
    return float(np.mean(1 / (1 + (better + better_or_equal) / 2)))


def own_ranks(positives: Values, negatives: Values) -> Array:
    """The rank of every positive ``[P]`` among its own negatives ``[P, K]``, as OGB and HeaRT count.

    A tie takes the mean of best and worst.
    """
    above, below = to_numpy(positives)[:, None], to_numpy(negatives)
    return np.asarray(1 + (below > above).sum(axis=1) + (below == above).sum(axis=1) / 2)


def _numbers(scores: Values) -> Array:
    """Scores ``[P]``, at least one and none of them NaN."""
    score = to_numpy(scores)
    if score.ndim != 1 or not score.size or score.dtype.kind not in "biuf":
        raise InputError(f"scores must be numbers of shape [P], found {score.dtype} {score.shape}")
    missing = np.isnan(score).sum()
    if missing:
        raise InputError(f"{missing} of {score.size} scores are NaN; look for a loss that diverged")
    return score


def _checked(labels: Values, scores: Values) -> tuple[Array, Array]:
    """Which pairs are positive, and their scores, both ``[P]``."""
    score, label = _numbers(scores), to_numpy(labels)
    if label.shape != score.shape:
        raise InputError(f"there are {score.shape} scores for {label.shape} labels; give one for each")
    positive = label == 1
    if not (positive | (label == 0)).all():
        raise InputError(f"labels must be 0 or 1, found {label[~positive & (label != 0)][0]}")
    return positive, score
