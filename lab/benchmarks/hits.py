"""Predictions a person would act on: hits found and hits expected among the best pairs of real graphs.

    python lab/benchmarks/hits.py [--graph NAME] [--seeds N] [--runs FOLDER] [--json FILE]

A random tenth of the links is removed, the rest is all that the scorer sees, and the best 50, 200 and 1000 pairs are
looked up among the removed links. The expected number is the sum of the probabilities that psgnn gives when it
knows how many links are missing (--missing). The ready-made
weights do that for several removals. For the first, models are trained too: `trained` predicts with the weights that
were tested, `refitted` with those that were trained again on all links. Beside them the rule that finds most, chosen
with the answers in hand, which nobody has. A file that exists is continued; trained runs stay in --runs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from output import publish, recorded, write
from psgnn.datasets import load_dataset
from psgnn.graph import Graph, GraphBatch, read_graph
from psgnn.graph._sampling import NonEdges, pair_code
from psgnn.models import build_model
from psgnn.scoring import Scorer, answer, pretrained, score_pairs
from psgnn.scoring._names import find_nodes
from psgnn.tasks import LinkPrediction
from psgnn.training import Run, fit, load

RANKS = (50, 200, 1000)
SEEDS = 3
RULES = ("common-neighbours", "adamic-adar", "resource-allocation", "preferential-attachment")
GRAPHS = (
    "email", "seal/USAir", "seal/Celegans", "scale/road-euroroad", "cora", "citeseer", "seal/Router", "seal/Power",
    "seal/PPI_subgraph", "seal/facebook",
)  # fmt: skip
SCORERS = ("ready-made", "trained", "refitted", "best rule")


def measure(name: str, seed: int, folder: Path | None) -> list[dict[str, Any]]:
    """Hits found and expected on one graph without a tenth of its links, a row per scorer."""
    (graph, *_) = load_dataset(name)
    removed = np.random.default_rng(seed).random(graph.num_edges) < 0.1
    # Named edges, as in a person's file: nodes that have lost all links are not there.
    names = np.array([f"n{v}" for v in range(graph.num_nodes)])
    ends = names[graph.edges[:, ~removed]]
    rest = read_graph(pl.DataFrame({"source": ends[0], "target": ends[1]}))
    place = {name: v for v, name in enumerate(rest.names)}
    pairs = [[place.get(str(names[v]), -1) for v in row] for row in graph.edges[:, removed]]
    truth = pair_code(np.sort(np.array(pairs), axis=0))
    about: dict[str, Any] = {
        "graph": name,
        "seed": seed,
        "nodes": graph.num_nodes,
        "removed": int(removed.sum()),
    }
    rows = [about | {"scorer": "ready-made"} | found_by(pretrained().on([rest]), truth, about["removed"])]
    if seed == 0:
        rows.append(about | {"scorer": "best rule"} | best_rule(rest, truth))
        if folder is not None:
            refitted = trained(rest, folder / f"tr_{name.replace('/', '_')}")
            tested = replace(refitted, model=refitted.evaluated, evaluated=None)
            rows.append(about | {"scorer": "trained"} | found_by(tested, truth, about["removed"]))
            rows.append(about | {"scorer": "refitted"} | found_by(refitted, truth, about["removed"]))
    return rows


def trained(graph: Graph, folder: Path) -> Run:
    """A run with both weights: those that were tested, and those of a refit."""
    if not (folder / "record.json").exists():
        task = LinkPrediction(graph, seed=0)
        fit(build_model("psgnn", task, seed=0), task, seed=0, refit=True, out=folder)
    return load(folder)


def found_by(scorer: Scorer, truth: np.ndarray, missing: int) -> dict[str, Any]:
    """How many of the best pairs are among the removed links, and how many were expected."""
    frame = answer(scorer, top=max(RANKS), missing=missing)
    ends = [find_nodes(scorer, frame[column].to_list()) for column in ("source", "target")]
    hits = np.isin(pair_code(np.sort(np.stack(ends), axis=0)), truth)
    likely = frame["probability"].to_numpy()
    row: dict[str, Any] = {}
    for rank in RANKS:
        row[f"found_{rank}"] = int(hits[:rank].sum())
        row[f"expected_{rank}"] = round(float(likely[:rank].sum()), 1)
    return row


def best_rule(graph: Graph, truth: np.ndarray) -> dict[str, Any]:
    """The most hits of any rule at every rank, among all pairs."""
    batch = GraphBatch.of([graph])
    pool = NonEdges(batch.ptr, graph.edges)
    pairs = pool.unrank(np.arange(int(pool.sizes.sum())))
    real = np.isin(pair_code(pairs), truth)
    best: dict[str, Any] = {f"found_{rank}": 0 for rank in RANKS}
    for rule in RULES:
        scores = np.concatenate(
            [score_pairs(rule, batch, part) for part in np.array_split(pairs, 50, axis=1)]
        )
        order = np.argsort(-scores, kind="stable")[: max(RANKS)]
        for rank in RANKS:
            best[f"found_{rank}"] = max(best[f"found_{rank}"], int(real[order[:rank]].sum()))
    return best


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/pretrained.md: means over the removals."""
    lines = [
        "| graph | links removed | first | ready-made: found, expected | trained: found, expected | "
        "refitted: found, expected | best rule: found |",
        "| --- | ---: | ---: |" + " ---: |" * len(SCORERS),
    ]
    for name in dict.fromkeys(row["graph"] for row in rows):
        of_graph = [row for row in rows if row["graph"] == name]
        for rank in RANKS:
            cells = []
            for scorer in SCORERS:
                some = [row for row in of_graph if row["scorer"] == scorer]
                kinds = [kind for kind in ("found", "expected") if some and f"{kind}_{rank}" in some[0]]
                means = [np.mean([row[f"{kind}_{rank}"] for row in some]) for kind in kinds]
                cells.append(", ".join(f"{mean:.1f}".removesuffix(".0") for mean in means) or "-")
            removed = np.mean([row["removed"] for row in of_graph if row["scorer"] == "ready-made"])
            lines.append(f"| {name} | {removed:,.0f} | {rank} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graph", choices=GRAPHS, action="append", help="one of the graphs")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="removals, for the ready-made weights")
    parser.add_argument("--runs", type=Path, help="train too, and keep the runs in this folder")
    parser.add_argument(
        "--json", type=Path, help="also write the results here, and continue with what is there"
    )
    arguments = parser.parse_args()
    rows = recorded(arguments.json)
    for seed in range(arguments.seeds):
        for name in arguments.graph or GRAPHS:
            if (name, seed) not in {(row["graph"], row["seed"]) for row in rows}:
                rows += measure(name, seed, arguments.runs)
                write({"rows": rows}, arguments.json)
    rows.sort(key=lambda row: (GRAPHS.index(row["graph"]), row["seed"], SCORERS.index(row["scorer"])))
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
