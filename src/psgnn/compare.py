"""Models and training-free rules side by side, on the same splits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.console import progress
from psgnn.errors import InputError, unknown_name
from psgnn.heuristics import HEURISTICS, score_pairs
from psgnn.metrics import evaluate
from psgnn.tasks import LinkPrediction, PairClassification

if TYPE_CHECKING:
    from torch_geometric.data import Data

TASKS = {"link": LinkPrediction, "pair": PairClassification}
METRICS = ("auc", "auc_pooled", "ap")


def make_task(graphs: Sequence[Data], name: str, seed: int) -> LinkPrediction | PairClassification:
    """The task of that name, split with that seed."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    task: LinkPrediction | PairClassification = TASKS[name](graphs, seed=seed)
    return task


def compare(
    graphs: Sequence[Data], task: str, *, seeds: int = 3, show_progress: bool = False
) -> list[dict[str, Any]]:
    """Test metrics of every training-free rule over the splits of seeds ``0 .. seeds - 1``, best AUC first.

    Each row holds ``name``, ``kind``, the ``seconds`` for one split, and for each metric the list of its
    values, one a seed, with ``<metric>_mean`` and ``<metric>_sd``.
    """
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more, found {seeds}")
    values: dict[str, dict[str, list[float]]] = {
        name: {metric: [] for metric in (*METRICS, "seconds")} for name in HEURISTICS
    }
    for seed in progress(range(seeds), "scoring splits", show=show_progress):
        split_task = make_task(graphs, task, seed)
        for name, found in values.items():
            start = time.perf_counter()
            scores = score_pairs(name, split_task.union, split_task.test.pairs.numpy(), seed)
            found["seconds"].append(time.perf_counter() - start)
            for metric, value in evaluate(split_task.test, scores).items():
                found[metric].append(value)
    rows = [{"name": name, "kind": "rule", **_summary(found)} for name, found in values.items()]
    return sorted(rows, key=lambda row: -float(row["auc_mean"]))


def _summary(found: dict[str, list[float]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"seconds": float(np.mean(found["seconds"]))}
    for metric in METRICS:
        summary[metric] = found[metric]
        summary[f"{metric}_mean"] = float(np.mean(found[metric]))
        summary[f"{metric}_sd"] = float(np.std(found[metric], ddof=1)) if len(found[metric]) > 1 else None
    return summary
