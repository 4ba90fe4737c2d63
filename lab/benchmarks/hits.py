"""Predictions a person would act on: hits found and hits expected among the best pairs of real graphs.

    python lab/benchmarks/hits.py [--json FILE]

A random tenth of the links is removed, the rest is all that the scorer sees, and the best 50, 200 and 1000 pairs are
looked up among the removed links. The expected number is the sum of the probabilities that psgnn gives. Beside it the
rule that finds most, chosen with the answers in hand, which nobody has. A file that is there is gone on with.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from output import publish, recorded, write
from psgnn.datasets import load_dataset
from psgnn.graph import Graph, GraphBatch
from psgnn.graph._sampling import NonEdges, pair_code
from psgnn.scoring import HEURISTICS, answer, pretrained, score_pairs
from psgnn.scoring._names import find_nodes

RANKS = (50, 200, 1000)
MOST_NODES_OF_RULES = 5100  # rules score all pairs
GRAPHS = (
    "communities", "grid", "email", "seal/USAir", "seal/Celegans", "seal/Router", "seal/Power", "seal/PPI_subgraph",
    "cora", "scale/road-euroroad",
)  # fmt: skip


def measure(name: str) -> dict[str, Any]:
    """Hits found and expected on one graph."""
    (graph, *_) = load_dataset(name)
    removed = np.random.default_rng(0).random(graph.num_edges) < 0.1
    rest = Graph.from_edges(graph.edges[:, ~removed], graph.num_nodes)
    truth = pair_code(graph.edges[:, removed])
    scorer = pretrained().on([rest])
    frame = answer(scorer, top=max(RANKS))
    ends = [find_nodes(scorer, frame[column].to_list()) for column in ("source", "target")]
    hits = np.isin(pair_code(np.sort(np.stack(ends), axis=0)), truth)
    likely = frame["probability"].to_numpy()
    row: dict[str, Any] = {"graph": name, "nodes": graph.num_nodes, "removed": int(removed.sum())}
    for rank in RANKS:
        row[f"found_{rank}"] = int(hits[:rank].sum())
        row[f"expected_{rank}"] = round(float(likely[:rank].sum()), 1)
    return row | _best_rule(rest, truth)


def _best_rule(graph: Graph, truth: np.ndarray) -> dict[str, Any]:
    """The most hits of any rule at every rank."""
    if graph.num_nodes > MOST_NODES_OF_RULES:
        return {}
    batch = GraphBatch.of([graph])
    pool = NonEdges(batch.ptr, graph.edges)
    pairs = pool.unrank(np.arange(int(pool.sizes.sum())))
    real = np.isin(pair_code(pairs), truth)
    best: dict[str, Any] = {f"rule_{rank}": 0 for rank in RANKS}
    for rule in ("common-neighbours", "adamic-adar", "resource-allocation"):
        assert rule in HEURISTICS
        scores = np.concatenate(
            [score_pairs(rule, batch, part) for part in np.array_split(pairs, 50, axis=1)]
        )
        order = np.argsort(-scores, kind="stable")[: max(RANKS)]
        for rank in RANKS:
            best[f"rule_{rank}"] = max(best[f"rule_{rank}"], int(real[order[:rank]].sum()))
    return best


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/pretrained.md."""
    titles = [f"first {rank}: found, expected (best local rule)" for rank in RANKS]
    lines = [f"| graph | links removed | {' | '.join(titles)} |", "| --- | ---: |" + " ---: |" * len(RANKS)]
    for row in rows:
        cells = [
            f"{row[f'found_{rank}']}, {row[f'expected_{rank}']:.1f} ({row.get(f'rule_{rank}', '-')})"
            for rank in RANKS
        ]
        lines.append(f"| {row['graph']} | {row['removed']:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here, and go on with what is there")
    arguments = parser.parse_args()
    rows = recorded(arguments.json)
    for name in GRAPHS:
        if name not in {row["graph"] for row in rows}:
            rows.append(measure(name))
            write({"rows": rows}, arguments.json)
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
