"""The engine spark beside one machine: how far apart what both measure and answer is, on real graphs.

    python lab/benchmarks/spark_same.py [--json FILE] [--only NAME ...]

The same anchors, the blocks' letters delivered in one process. Statistics and scores are of 2000 random pairs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import psgnn
from output import recorded, write
from psgnn.positions._statistics import pair_statistics, statistic_names
from psgnn.scoring import top_links
from psgnn.spark._predict import SparkScorer
from psgnn.spark._tasks import Judge, describe

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from spark_stand_ins import Desk, blocks_of

GRAPHS = ("email", "seal/Celegans", "seal/USAir", "seal/Power", "cora")
PAIRS, TOP, PARTS = 2000, 1000, 4


def compare(name: str) -> dict[str, Any]:
    """How far apart both are on a graph."""
    began = time.process_time()
    graph = psgnn.Graph(psgnn.load_dataset(name)[0].adjacency)
    anchors = psgnn.select_anchors(graph, "mixed", "log^2", 0)
    here = psgnn.pretrained().on([graph], anchors=anchors.tolist())
    desk = Desk()
    there = SparkScorer(desk, blocks_of(desk, graph, PARTS), anchors)  # type: ignore[arg-type]
    positions, measured = here.seats[0].positions, there.learned.measured
    kept = sorted((m for m in measured.mail if m.kind == "positions 000"), key=lambda m: m.place)
    equal = {
        part: bool(np.array_equal(np.concatenate([m.arrays[part] for m in kept]), getattr(positions, part)))
        for part in ("hops", "channels", "roles")
    }
    pairs = np.random.default_rng(0).integers(0, graph.num_nodes, (2, PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    judge = there.learned.judge
    raw = Judge(judge.plan, judge.anchors, judge.values)
    found = describe(there.post, measured.mail, raw, {0: pairs}, "statistics")[0]
    expected = pair_statistics(positions, pairs)
    apart = np.abs(found - expected) / np.maximum(np.abs(expected), 1)
    scores = np.abs(there.score(pairs)[:, 0] - here.score(pairs))
    best, ours = top_links(here, TOP)[0], there.best(TOP)[0][:, :TOP]
    common = set(map(tuple, best.T.tolist())) & set(map(tuple, ours.T.tolist()))
    worst = int(apart.max(axis=0).argmax())
    return {
        "graph": name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "equal": equal,
        "statistics, largest relative difference": float(apart.max()),
        "of": statistic_names(positions.parts)[worst],
        "scores, median difference": float(np.median(scores)),
        "scores, share within 1e-3": float((scores < 1e-3).mean()),
        "scores, largest difference": float(scores.max()),
        f"of the first {TOP} links in common": len(common) / best.shape[1],
        "seconds of CPU": round(time.process_time() - began, 1),
    }


def main() -> None:
    """Compare on every graph that is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="*", default=GRAPHS)
    options = parser.parse_args()
    rows = recorded(options.json)
    for name in options.only:
        if name not in {row["graph"] for row in rows}:
            rows.append(compare(name))
            print(rows[-1], flush=True)
            write({"pairs": PAIRS, "top": TOP, "parts": PARTS, "seed": 0, "rows": rows}, options.json)


if __name__ == "__main__":
    main()
