"""What a run knows about pairs and nodes: scores of held-out pairs, rules beside it, predictions, a map."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psgnn.console import progress
from psgnn.distances._oracle import hops_between
from psgnn.distances._propagation import Floats
from psgnn.graph._graph import IntArray
from psgnn.models._config import ModelConfig
from psgnn.report._page import shown_name
from psgnn.scoring import HEURISTICS, Calibration, score_pairs, top_links
from psgnn.scoring._answers import sides_first
from psgnn.scoring._explain import main_reason
from psgnn.scoring._rules import kind_rules
from psgnn.tasks._metrics import evaluate
from psgnn.training._heldout import HeldOut, part_of
from psgnn.training._run import Run

BINS = 40
RELIABILITY_BINS = 10
MOST_COMPARED_PAIRS = 20_000
SHOWN_METRICS = ("auc", "ap", "mrr", "hits@20")
NO_PAIRS = "the run does not hold the pairs it was tested on; train it again with this version of psgnn"


def score_histogram(run: Run, held_out: HeldOut | None) -> dict[str, Any]:
    """How the model scores the test pairs: counts of positives and negatives in equal bins, or why not."""
    if held_out is None:
        return {"why": NO_PAIRS}
    test = held_out.test
    scores = run.evaluation_scorer().score(test.pairs).astype(np.float64)
    positive = test.labels == 1
    low, high = np.quantile(scores, [0.001, 0.999])  # a few outliers would squeeze all others into one bin
    if high <= low:
        low, high = low - 0.5, low + 0.5
    clipped = np.clip(scores, low, high)
    edges = np.linspace(low, high, BINS + 1)
    return {
        "why": None,
        "edges": edges.astype(np.float32),
        "positives": np.histogram(clipped[positive], edges)[0],
        "negatives": np.histogram(clipped[~positive], edges)[0],
        "whole": held_out.whole,
        "reliability": reliability(scores, positive, trained_negatives(run.model.config)),
    }


def trained_negatives(config: ModelConfig) -> int:
    """Negatives for each positive that the scores were learned among; in pair classification there are as many."""
    return config.negatives if config.task == "link" else 1


def reliability(
    scores: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_], negatives: int
) -> dict[str, Any]:
    """How often pairs of a probability are positive: ten bins with the mean probability, that share and the count.

    Scores are logits among `negatives` negatives for a positive; positives and negatives here count alike, whatever
    their numbers. ``error`` is the mean distance of probability and share.
    """
    probability = 1 / (1 + np.exp(-np.clip(scores + np.log(negatives), -50, 50)))
    weight = np.where(positive, 0.5 / max(int(positive.sum()), 1), 0.5 / max(int((~positive).sum()), 1))
    place = np.minimum((probability * RELIABILITY_BINS).astype(np.int64), RELIABILITY_BINS - 1)
    sums = [
        np.bincount(place, values, RELIABILITY_BINS)
        for values in (weight, weight * probability, weight * positive)
    ]
    filled = sums[0] > 0
    total = sums[0][filled]
    said, true = sums[1][filled] / total, sums[2][filled] / total
    return {
        "probability": said.astype(np.float32),
        "share": true.astype(np.float32),
        "pairs": np.bincount(place, minlength=RELIABILITY_BINS)[filled],
        "error": round(float((total * np.abs(said - true)).sum()), 4),
    }


def compare_rules(run: Run, held_out: HeldOut | None, *, show_progress: bool = False) -> dict[str, Any]:
    """The run beside every training-free rule, on the same test pairs (a random part of very many), or why not."""
    if held_out is None:
        return {"why": NO_PAIRS, "rows": [], "pairs": 0, "whole": False}
    seed = int(run.record.get("seed", run.model.config.seed))
    test = part_of(held_out.test, MOST_COMPARED_PAIRS, seed)
    judged = run.evaluation_scorer()
    own = evaluate(test, judged.score(test.pairs), SHOWN_METRICS)
    rows: list[dict[str, Any]] = [{"name": "this run", "kind": "model", **own}]
    if run.model.embedding_decoder is not None:
        nodes, places = np.unique(test.pairs, return_inverse=True)
        scores = judged.score_embedded(judged.embed(nodes), places.reshape(2, -1))
        alone = evaluate(test, scores, SHOWN_METRICS)
        rows.append({"name": "this run, embeddings alone", "kind": "model", **alone})
    kinds = () if run.view.union.kinds is None else run.view.union.kinds.names
    # Without rules of other packages: a report does not depend on what else is installed.
    for rule in progress([*HEURISTICS.builtin, *kind_rules(kinds)], "scoring by rules", show=show_progress):
        by_rule = score_pairs(rule, run.view.union, test.pairs, seed)
        rows.append({"name": rule, "kind": "rule", **evaluate(test, by_rule, SHOWN_METRICS)})
    rows.sort(key=lambda row: -row["auc"])
    whole = held_out.whole and test is held_out.test
    return {"why": None, "rows": rows, "pairs": test.labels.size, "whole": whole}


def predictions(
    run: Run,
    count: int,
    classes: IntArray | None,
    calibration: Calibration | None = None,
    *,
    show_progress: bool = False,
) -> dict[str, Any]:
    """The best-scored pairs that are not linked, with their names, hops, common neighbours and probabilities.

    ``pairs`` are union ids ``[2, n]``, ``rows`` say the same in words, best first.
    """
    ends, scores = top_links(run, count, show_progress=show_progress)
    ends = sides_first(run.batch, ends)
    likely = None if calibration is None else calibration.probability(scores)
    expected = None if likely is None else np.cumsum(likely) / np.arange(1, likely.size + 1)
    union = run.batch
    apart = hops_between(union.adjacency, ends)
    common = score_pairs("common-neighbours", union, ends)
    because = None if union.kinds is None else main_reason(run, ends)
    graph = union.graph_of[ends[0]]
    rows = []
    for i, score in enumerate(scores.tolist()):
        u, v = (int(end) - int(union.ptr[graph[i]]) for end in ends[:, i])
        names = run.node_names[graph[i]]
        row: dict[str, Any] = {
            "rank": i + 1,
            "graph": int(graph[i]),
            "source": shown_name(names[u], 60),
            "target": shown_name(names[v], 60),
            "score": round(score, 4),
            "probability": None if likely is None else float(likely[i]),
            "expected_precision": None if expected is None else float(expected[i]),
            "hops": None if apart[i] < 0 else int(apart[i]),
            "common": int(common[i]),
        }
        if because is not None:
            row["because"] = because[i]
        if classes is not None:
            known = classes[ends[:, i]]
            row["same_class"] = None if (known < 0).any() else bool(known[0] == known[1])
        rows.append(row)
    return {"pairs": ends, "rows": rows}


def map_of(embeddings: Floats) -> tuple[npt.NDArray[np.float32], list[float]]:
    """Embeddings ``[N, d]`` on their two principal components, ``[N, 2]`` in [-1, 1], and the shares of the variance.

    A direction's sign is chosen so that its largest entry is positive: the same page from the same run.
    """
    points = embeddings.astype(np.float64)
    points = points - points.mean(axis=0)
    values, directions = np.linalg.eigh(points.T @ points)
    values, directions = values[::-1].clip(min=0), directions[:, ::-1][:, :2]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    places = points @ directions
    if places.shape[1] < 2:
        places = np.pad(places, ((0, 0), (0, 1)))
    total = max(float(values.sum()), 1e-12)
    shares = [float(value / total) for value in values[:2]]
    places /= max(float(np.abs(places).max()), 1e-12)
    return places.astype(np.float32), [*shares, 0.0, 0.0][:2]
