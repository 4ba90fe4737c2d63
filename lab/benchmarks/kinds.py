"""Graphs with directions, sides, strengths, lengths or times: psgnn with and without what their files say.

Run: python lab/benchmarks/kinds.py --json lab/benchmarks/results/kinds.json [DATASET ...]

Every method is asked the same test pairs: psgnn trained and its ready-made weights; both once more as if the file said
nothing but who is linked (*plain*); every rule, those of the kind too; node2vec, for which `PSGNN_NODE2VEC_PYTHON`
names a Python with PecanPy; and ALS and BPR where there are two sides, if `PSGNN_IMPLICIT_PYTHON` names one with
implicit. Graphs whose links have times have one split, by time, others a random one per seed. Metrics per node rest on
100 test links at random, recall on as many nodes as 100,000 pairs allow.

The record is written after each row, and what is in it is not measured again. `--seeds`, `--epochs` and `--only` make
it shorter, `--table` prints the record and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from psgnn.datasets import load_dataset
from psgnn.graph._graph import GraphBatch, IntArray
from psgnn.models import build_model
from psgnn.scoring import HEURISTICS, pretrained, score_pairs
from psgnn.scoring._rules import kind_rules
from psgnn.tasks import LinkPrediction
from psgnn.tasks._metrics import evaluate
from psgnn.training import fit
from psgnn.training._peers import PEERS
from recommenders import recommenders

DATASETS = ("college-messages", "oldenburg-roads", "bitcoin-otc", "openflights", "movielens-100k")
SHOWN = ("auc", "ap", "mrr_per_node", "recall@20_per_node")
FIRST_SEED, SEEDS = 100, 5

IMPLICIT = "PSGNN_IMPLICIT_PYTHON"

Score = Callable[[IntArray], np.ndarray]
Row = dict[str, Any]  # of the record: graph, method, seed and metrics


def methods(task: LinkPrediction, seed: int, epochs: int | None) -> Iterator[tuple[str, Callable[[], Score]]]:
    """What is compared, by title: each makes a function that scores pairs ``[2, P]``."""
    names = [graph.names for graph in task.graphs]

    def trained(**options: Any) -> Score:
        model = build_model("psgnn", task, "best", seed, **options)
        return fit(model, task, epochs=epochs, seed=seed, device="cpu").evaluation_scorer().score

    plain = GraphBatch(task.union.adjacency, task.union.ptr)
    yield "psgnn, ready-made", lambda: pretrained().on_union(task.union, names).score
    yield "psgnn, ready-made, plain", lambda: pretrained().on_union(plain, names).score
    yield "psgnn, trained", trained
    yield "psgnn, trained, plain", lambda: trained(kinds=[])
    yield "node2vec", lambda: PEERS["node2vec"](task, seed)
    if task.graphs[0].sides is not None and IMPLICIT in os.environ:
        learned = cache(lambda: recommenders(task, os.environ[IMPLICIT]))
        for title in ("ALS", "BPR"):
            yield title, lambda title=title: learned()[title]
    for rule in (*HEURISTICS.builtin, *kind_rules(task.graphs[0].kind)):
        yield rule, lambda rule=rule: lambda pairs: score_pairs(rule, task.union, pairs, seed)


def main() -> None:
    """Measure what is missing, write the record after each row, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--only", default="*", help="methods whose title fits, such as 'psgnn*'")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    rows: list[Row] = json.loads(asked.json.read_text("utf-8"))["rows"] if asked.json.exists() else []
    known = {(row["graph"], row["method"], row["seed"]) for row in rows}
    for seed in [] if asked.table else range(FIRST_SEED, FIRST_SEED + asked.seeds):
        for name in asked.datasets:
            [graph] = load_dataset(name)
            if graph.times is not None and seed > FIRST_SEED:
                continue
            task = LinkPrediction(graph, seed=seed)
            for title, prepare in methods(task, seed, asked.epochs):
                if (name, title, seed) in known or not fnmatch(title, asked.only):
                    continue
                about = {"graph": name, "method": title, "seed": seed}
                if "trained" in title and asked.epochs:
                    about["epochs"] = asked.epochs
                rows.append(about | measured(task, prepare, seed))
                asked.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
                print(*rows[-1].values(), flush=True)
    print(markdown(rows))


def measured(task: LinkPrediction, prepare: Callable[[], Score], seed: int) -> Row:
    """The metrics of a method on the test pairs, and the processor time that it took."""
    start = _seconds()
    score = prepare()
    found = evaluate(task.test, score(task.test.pairs)) | task.metrics_per_node(score, seed)
    row = {key: round(float(found[key]), 4) for key in SHOWN if key in found}
    return {**row, "cpu_seconds": round(_seconds() - start, 1)}


def _seconds() -> float:
    """Processor time of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def markdown(rows: list[Row]) -> str:
    """A table per graph of the means over its splits: psgnn, then the others, the best AUC first."""
    parts = []
    for name in dict.fromkeys(row["graph"] for row in rows):
        found: dict[str, list[Row]] = {}
        for row in rows:
            if row["graph"] == name:
                found.setdefault(row["method"], []).append(row)
        best = {key: np.nanmax([_mean(runs, key) for runs in found.values()] + [0]) for key in SHOWN}
        lines = [f"**{name}**\n", "| method | splits | AUC | AP | per-node MRR | recall@20 | CPU s |"]
        lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        order = sorted(found, key=lambda title: (not title.startswith("psgnn"), -_mean(found[title], "auc")))
        for title in order:
            runs = found[title]
            cells = [_cell(_mean(runs, key), best[key]) for key in SHOWN]
            seconds = _mean(runs, "cpu_seconds")
            cells.append("-" if np.isnan(seconds) else f"{seconds:.0f}")
            lines.append(f"| {title} | {len(runs)} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _cell(value: float, best: float) -> str:
    """A number, bold if it is the best of its column; a dash where the metric is not measured."""
    if np.isnan(value):
        return "-"
    return f"**{value:.3f}**" if f"{value:.3f}" == f"{best:.3f}" else f"{value:.3f}"


def _mean(runs: list[Row], key: str) -> float:
    return float(np.mean([run.get(key, np.nan) for run in runs]))


if __name__ == "__main__":
    main()
