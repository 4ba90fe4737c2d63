"""Predictions a person would act on: hits found and hits expected among the best pairs of real graphs.

    python lab/benchmarks/hits.py [--graph NAME] [--scorer NAME] [--seeds N] [--runs FOLDER] [--json FILE]

A random tenth of the links is removed, the rest is all that the scorer sees, and the best 50, 200 and 1000 pairs are
looked up among the removed links. The expected number is the sum of the probabilities that psgnn gives when it
knows how many links are missing (--missing). `trained` runs predict with the weights that were tested, `refitted` ones
with those that were trained again on all links. Beside them the rule that finds most, chosen with the answers in hand,
which nobody has. `village` is the example of the guide, whose 73 missing links are a file; there a seed is that of the
training. A file that exists is continued; trained runs stay in --runs.

The calibration was developed on removals with the seeds 100 and up, which are not reported.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from output import publish, recorded, write
from psgnn.datasets import load_dataset
from psgnn.graph import Graph, GraphBatch, read_graph
from psgnn.graph._read import read_pairs
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
VILLAGE = "village"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FACTOR = 1.4  # our goal: expected and found are no further apart


def without_a_tenth(name: str, seed: int) -> tuple[Graph, np.ndarray, int]:
    """A graph without a random tenth of its links, the codes of these links, and how many they are."""
    if name == VILLAGE:
        graph = read_graph(EXAMPLES / "village.csv")
        pairs = read_pairs(EXAMPLES / "village-forgotten.csv", graph.names)
        return graph, pair_code(np.sort(pairs, axis=0)), pairs.shape[1]
    (graph, *_) = load_dataset(name)
    removed = np.random.default_rng(seed).random(graph.num_edges) < 0.1
    # Named edges, as in a person's file: nodes that have lost all links are not there.
    names = np.array([f"n{v}" for v in range(graph.num_nodes)])
    ends = names[graph.edges[:, ~removed]]
    rest = read_graph(pl.DataFrame({"source": ends[0], "target": ends[1]}))
    place = {name: v for v, name in enumerate(rest.names)}
    pairs = np.array([[place.get(str(names[v]), -1) for v in row] for row in graph.edges[:, removed]])
    return rest, pair_code(np.sort(pairs, axis=0)), int(removed.sum())


def measure(name: str, seed: int, scorer: str, runs: Path) -> dict[str, Any]:
    """Hits found and expected by one scorer on one graph without a tenth of its links."""
    rest, truth, missing = without_a_tenth(name, seed)
    row: dict[str, Any] = {"graph": name, "seed": seed, "scorer": scorer, "nodes": rest.num_nodes}
    row["removed"] = missing
    if scorer == "best rule":
        return row | best_rule(rest, truth)
    if scorer == "ready-made":
        return row | found_by(pretrained().on([rest]), truth, missing)
    run = trained(rest, runs / f"{name.replace('/', '_')}_{seed}", seed if name == VILLAGE else 0)
    if scorer == "trained":
        run = replace(run, model=run.evaluated, evaluated=None)
    return row | found_by(run, truth, missing)


def trained(graph: Graph, folder: Path, seed: int = 0) -> Run:
    """A run with both weights: those that were tested, and those of a refit."""
    if not (folder / "record.json").exists():
        task = LinkPrediction(graph, seed=seed)
        fit(build_model("psgnn", task, seed=seed), task, seed=seed, refit=True, out=folder)
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
    """The table of docs/pretrained.md: means over the removals, and how many lists are as good as expected."""
    sure = SCORERS[:3]
    lines = [
        "| graph | links removed | first | " + " | ".join(f"{each}: found, expected" for each in sure) + " | "
        "best rule: found | removals |",
        "| --- | ---: | ---: |" + " ---: |" * 5,
    ]
    inside = {scorer: [0, 0, 0] for scorer in sure}
    for name in (*GRAPHS, VILLAGE):
        by_scorer = {
            each: [row for row in rows if (row["graph"], row["scorer"]) == (name, each)] for each in SCORERS
        }
        if not by_scorer["ready-made"]:
            continue
        for rank in RANKS:
            cells = []
            for scorer, own in by_scorer.items():
                kinds = ("found", "expected") if scorer in sure else ("found",)
                means = [float(np.mean([row[f"{kind}_{rank}"] for row in own])) for kind in kinds if own]
                far = len(means) == 2 and not within(*means)
                if len(means) == 2 and name != VILLAGE:
                    off = abs(means[0] - means[1]) * len(own) ** 0.5
                    inside[scorer][0] += not far
                    inside[scorer][1] += far and off <= 2 * means[1] ** 0.5
                    inside[scorer][2] += 1
                text = ", ".join(f"{mean:.1f}".removesuffix(".0") for mean in means) or "-"
                cells.append(f"*{text}*" if far else text)
            removed = np.mean([row["removed"] for row in by_scorer["ready-made"]])
            counts = "/".join(str(len(by_scorer[each])) for each in sure)
            lines.append(f"| {name} | {removed:,.0f} | {rank} | {' | '.join(cells)} | {counts} |")
    shares = "; ".join(
        f"{scorer} {good} of {total}, and {chance} more within two standard deviations of chance"
        for scorer, (good, chance, total) in inside.items()
    )
    summary = (
        f"Lists whose found and expected hits are within a factor of {FACTOR}, without the village: {shares}."
    )
    return "\n".join(lines) + f"\n\n{summary}\n"


def within(found: float, expected: float) -> bool:
    """Whether the two are within the factor of our goal."""
    return max(found, expected) <= FACTOR * min(found, expected)


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graph", choices=(*GRAPHS, VILLAGE), action="append", help="one of the graphs")
    parser.add_argument("--scorer", choices=SCORERS, action="append", help="one of the scorers")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="removals")
    parser.add_argument(
        "--runs", type=Path, default=Path("hits-runs"), help="keep trained runs in this folder"
    )
    parser.add_argument(
        "--json", type=Path, help="also write the results here, and continue with what is there"
    )
    arguments = parser.parse_args()
    rows = recorded(arguments.json)
    for seed in range(arguments.seeds):
        for name, scorer in product(arguments.graph or (*GRAPHS, VILLAGE), arguments.scorer or SCORERS):
            known = {(row["graph"], row["seed"], row["scorer"]) for row in rows}
            alike = name == VILLAGE and seed and scorer in ("ready-made", "best rule")  # nothing is drawn
            if (name, seed, scorer) not in known and not alike:
                rows.append(measure(name, seed, scorer, arguments.runs))
                write({"rows": rows}, arguments.json)
    order = (*GRAPHS, VILLAGE)
    rows.sort(key=lambda row: (order.index(row["graph"]), row["seed"], SCORERS.index(row["scorer"])))
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
