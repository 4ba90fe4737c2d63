"""Graphs with directions, sides, strengths, lengths or times: psgnn, ready-made weights and every rule on one split.

Run: python lab/benchmarks/kinds.py lab/benchmarks/results/kinds.json [--models] [DATASET ...]

With `--models`, psgnn is trained as well, and once more as if the file said nothing but who is linked (*plain*: the
statistics of plain graphs alone, on the same task). Graphs whose links have times have one split, others a split per
seed. What is in the file is not measured again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from psgnn.datasets import load_dataset
from psgnn.datasets._real import LOADERS
from psgnn.scoring import HEURISTICS
from psgnn.scoring._rules import kind_rules
from psgnn.tasks import LinkPrediction
from psgnn.training._compare import Method, measure

SHOWN = ("auc", "mrr_per_node", "hits@10_per_node", "recall@20_per_node")
FIRST_SEED, SEEDS, MODEL_SEEDS = 100, 5, 1


def main(target: str, *arguments: str) -> None:
    """Measure what is missing, write the record after each run, and print a table."""
    path = Path(target)
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    models = "--models" in arguments
    for name in [argument for argument in arguments if argument != "--models"] or LOADERS:
        [graph] = load_dataset(name)
        methods = [Method(rule, "rule") for rule in (*HEURISTICS.builtin, *kind_rules(graph.kind))]
        methods.append(Method("best-link", "pretrained", label="ready-made weights"))
        if models:
            methods = [
                Method("psgnn", "model", label="psgnn, trained"),
                Method("psgnn", "model", options={"kinds": []}, label="psgnn, trained, plain"),
            ]
        seeds = 1 if graph.times is not None else MODEL_SEEDS if models else SEEDS
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            task = LinkPrediction(graph, seed=seed)
            for method in methods:
                runs = record.setdefault(name, {}).setdefault(method.title, {})
                if str(seed) in runs:
                    continue
                found = measure(method, task, seed)["test"]
                runs[str(seed)] = {key: round(float(found[key]), 4) for key in SHOWN if key in found}
                path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
                print(name, method.title, seed, runs[str(seed)], flush=True)
    print(table(record))


def table(record: dict[str, Any]) -> str:
    """The means over the splits, the best AUC of every graph first."""
    lines = [f"| graph | method | splits | {' | '.join(SHOWN)} |", f"|---|---|{'---:|' * (1 + len(SHOWN))}"]
    for name, methods in record.items():
        for title, runs in sorted(methods.items(), key=lambda item: -_mean(item[1], "auc")):
            values = [f"{_mean(runs, key):.3f}" if key in next(iter(runs.values())) else "-" for key in SHOWN]
            lines.append(f"| {name} | {title} | {len(runs)} | {' | '.join(values)} |")
    return "\n".join(lines)


def _mean(runs: dict[str, dict[str, float]], key: str) -> float:
    return float(np.mean([run[key] for run in runs.values()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
