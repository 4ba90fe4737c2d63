"""Models and training-free rules side by side, on the same splits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psgnn.console import Bar
from psgnn.errors import InputError, unknown_name
from psgnn.heuristics import HEURISTICS, score_pairs
from psgnn.metrics import evaluate
from psgnn.nn import MODELS, build_model
from psgnn.tasks import LinkPrediction, PairClassification
from psgnn.training import fit

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


def parse_models(text: str) -> list[str]:
    """``all``, ``none``, or names with commas between them."""
    if text in ("all", "none"):
        return list(MODELS) if text == "all" else []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in MODELS:
            raise unknown_name("model", name, [*MODELS, "all", "none"])
    return names


def compare(
    graphs: Sequence[Data],
    task: str,
    *,
    models: Sequence[str] = (),
    preset: str = "best",
    seeds: int = 3,
    epochs: int | None = None,
    show_progress: bool = False,
) -> list[dict[str, Any]]:
    """Test metrics of models and of every training-free rule over the splits of seeds ``0 .. seeds - 1``.

    Each row holds ``name``, ``kind``, the ``seconds`` for one split, and for each metric the list of its
    values, one a seed, with ``<metric>_mean`` and ``<metric>_sd``. The best AUC comes first.
    """
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more, found {seeds}")
    kinds = dict.fromkeys(models, "model") | dict.fromkeys(HEURISTICS, "rule")
    values: dict[str, dict[str, list[float]]] = {
        name: {metric: [] for metric in (*METRICS, "seconds")} for name in kinds
    }
    with Bar("comparing", seeds * len(kinds), show=show_progress) as bar:
        for seed in range(seeds):
            split_task = make_task(graphs, task, seed)
            for place, (name, kind) in enumerate(kinds.items()):
                bar.update(seed * len(kinds) + place, f"{name}, split {seed}")
                start = time.perf_counter()
                if kind == "model":
                    model = build_model(name, split_task, preset, seed)
                    metrics = fit(model, split_task, epochs=epochs, seed=seed).test
                else:
                    scores = score_pairs(name, split_task.union, split_task.test.pairs.numpy(), seed)
                    metrics = evaluate(split_task.test, scores)
                values[name]["seconds"].append(time.perf_counter() - start)
                for metric in METRICS:
                    values[name][metric].append(metrics[metric])
    rows = [{"name": name, "kind": kinds[name], **_summary(found)} for name, found in values.items()]
    return sorted(rows, key=lambda row: -float(row["auc_mean"]))


def _summary(found: dict[str, list[float]]) -> dict[str, Any]:
    summary: dict[str, Any] = {"seconds": float(np.mean(found["seconds"]))}
    for metric in METRICS:
        summary[metric] = found[metric]
        summary[f"{metric}_mean"] = float(np.mean(found[metric]))
        summary[f"{metric}_sd"] = float(np.std(found[metric], ddof=1)) if len(found[metric]) > 1 else None
    return summary
