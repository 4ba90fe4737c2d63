import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from psgnn.errors import InputError
from psgnn.tasks import LabelledPairs
from psgnn.tasks._metrics import (
    METRICS,
    auc_standard_error,
    average_precision,
    evaluate,
    grouped_auc,
    hits_at_k,
    mrr,
    roc_auc,
)

# Few distinct scores, so that most cases have ties, within and across labels and groups.
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 2.0, np.inf]), st.integers(0, 4)),
    min_size=1,
    max_size=60,
)


def columns(rows):
    labels, scores, groups = zip(*rows, strict=True)
    return np.array(labels), np.array(scores), np.array(groups)


def sklearn_auc(labels, scores):
    # scikit-learn takes no infinite scores; ranks keep the order and the ties.
    return roc_auc_score(labels, np.unique(scores, return_inverse=True)[1])


@given(ROWS)
def test_auc_and_average_precision_agree_with_sklearn(rows):
    labels, scores, _ = columns(rows)
    ranks = np.unique(scores, return_inverse=True)[1]
    if labels.any():
        assert average_precision(labels, scores) == pytest.approx(average_precision_score(labels, ranks))
    if labels.any() and not labels.all():
        assert roc_auc(labels, scores) == pytest.approx(sklearn_auc(labels, scores))


@given(ROWS)
def test_grouped_auc_is_the_mean_over_groups_with_both_labels(rows):
    labels, scores, groups = columns(rows)
    aucs = [
        sklearn_auc(labels[groups == g], scores[groups == g])
        for g in np.unique(groups)
        if 0 < labels[groups == g].mean() < 1
    ]
    if aucs:
        assert grouped_auc(labels, scores, groups) == pytest.approx(np.mean(aucs))
    else:
        with pytest.raises(InputError, match="AUC needs positives and negatives"):
            grouped_auc(labels, scores, groups)


def test_ties_count_half():
    assert roc_auc([1, 0, 0, 1], [0.3, 0.3, 0.3, 0.3]) == 0.5
    assert roc_auc([1, 0], [1.0, 0.0]) == 1.0
    assert roc_auc([1, 0, 0], [0.5, 0.5, 0.0]) == 0.75


def test_evaluate_tells_the_mean_over_graphs_from_the_pooled_auc():
    # Each graph is ranked perfectly, but the scores of graph 1 are far above those of graph 0.
    split = LabelledPairs(
        pairs=np.zeros((2, 4), np.int64),
        labels=np.array([1, 1, 0, 0], np.float32),
        graph_ids=np.array([0, 1, 0, 1]),
    )
    scores = torch.tensor([1.0, 11.0, 0.0, 10.0], requires_grad=True)
    found = evaluate(split, scores)
    assert found == {
        "auc": 1.0,
        "auc_pooled": 0.75,
        "ap": pytest.approx(1 / 2 + 1 / 2 * 2 / 3),
        "mrr": (1 + 1 / 2) / 2,
        "hits@10": 1.0,
        "hits@20": 1.0,
        "hits@50": 1.0,
        "hits@100": 1.0,
    }
    assert evaluate(split, scores.bfloat16()) == found
    assert all(type(value) is float for value in found.values())


@given(ROWS, st.integers(1, 60))
def test_evaluate_is_each_metric_by_itself(rows, k):
    labels, scores, groups = columns(rows)
    assume(labels.any() and not labels.all())
    split = LabelledPairs(np.zeros((2, len(rows)), np.int64), labels.astype(np.float32), groups)
    if any(0 < labels[groups == g].mean() < 1 for g in groups):
        assert list(evaluate(split, scores)) == list(METRICS)
    above, below = scores[labels], scores[~labels]
    pooled = ["auc_pooled", "ap", "mrr", f"hits@{k}"]
    expected = [
        roc_auc(labels, scores),
        average_precision(labels, scores),
        mrr(above, below),
        hits_at_k(above, below, k),
    ]
    assert evaluate(split, scores, pooled) == dict(zip(pooled, expected, strict=True))


def test_only_the_metrics_asked_for_are_computed():
    all_positive = LabelledPairs(np.zeros((2, 2), np.int64), np.ones(2, np.float32), np.zeros(2, np.int64))
    assert evaluate(all_positive, [0.1, 0.2], ["ap"]) == {"ap": 1.0}
    with pytest.raises(InputError, match="AUC needs positives and negatives"):
        evaluate(all_positive, [0.1, 0.2], ["auc"])
    for name, near in (("hits", "hits@"), ("hits@5x", "hits@50"), ("hits@-1", "hits@"), ("aucs", "auc")):
        with pytest.raises(InputError, match=f"unknown metric '{name}'; did you mean '{near}"):
            evaluate(all_positive, [0.1, 0.2], [name])
    with pytest.raises(InputError, match="give one for each"):
        evaluate(all_positive, [0.1], ["hits@20"])


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.integers(1, 25),
)
def test_hits_and_mrr_against_every_negative(positives, negatives, k):
    positives, negatives = np.array(positives, float), np.array(negatives, float)
    optimistic = (negatives[None] > positives[:, None]).sum(axis=1)
    pessimistic = (negatives[None] >= positives[:, None]).sum(axis=1)
    assert mrr(positives, negatives) == pytest.approx(np.mean(1 / ((optimistic + pessimistic) / 2 + 1)))
    # Above the k-th best of the negatives: fewer than k of them are as good.
    assert hits_at_k(positives, negatives, k) == pytest.approx(np.mean(pessimistic < k))


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([1, 0], [0.1, np.nan], "1 of 2 scores are NaN"),
        ([1, 0], [0.1, 0.2, 0.3], "give one for each"),
        ([1, 2], [0.1, 0.2], "labels must be 0 or 1, found 2"),
        ([], [], "scores must be numbers"),
        ([1, 0], [[0.1], [0.2]], "scores must be numbers"),
        ([1, 0], ["a", "b"], "scores must be numbers"),
    ],
)
@pytest.mark.parametrize("metric", [roc_auc, average_precision])
def test_bad_scores_and_labels(metric, labels, scores, message):
    with pytest.raises(InputError, match=message):
        metric(labels, scores)


def test_bad_groups_missing_labels_and_bad_k():
    with pytest.raises(InputError, match="groups must be 2 integers"):
        grouped_auc([1, 0], [0.1, 0.2], [0, -1])
    with pytest.raises(InputError, match="groups must be 2 integers"):
        grouped_auc([1, 0], [0.1, 0.2], [0.5, 1.0])
    with pytest.raises(InputError, match="found 2 positives of 2"):
        roc_auc([1, 1], [0.1, 0.2])
    with pytest.raises(InputError, match="needs a positive"):
        average_precision([0, 0], [0.1, 0.2])
    with pytest.raises(InputError, match="k=0"):
        hits_at_k([1.0], [0.0], 0)
    with pytest.raises(InputError, match="NaN"):
        mrr([1.0], [np.nan])


def test_the_standard_error_of_auc_is_the_spread_over_samples() -> None:
    rng = np.random.default_rng(0)
    aucs = []
    for _ in range(2000):
        positives, negatives = rng.exponential(3.0, 60), rng.exponential(1.0, 40)
        labels = np.repeat([1, 0], [60, 40])
        aucs.append(roc_auc(labels, np.concatenate([positives, negatives])))
    # Hanley and McNeil's formula is exact for scores that are exponentially distributed.
    assert auc_standard_error(0.75, 60, 40) == pytest.approx(np.std(aucs), rel=0.05)
    assert auc_standard_error(1.0, 5, 5) == 0
