"""Tomorrow's nodes: links of nodes that a run has never seen, from kept coordinates and from training anew.

    python lab/benchmarks/tomorrow.py [--json FILE]

A random twentieth of the nodes is removed and a model is trained on the rest. Then the nodes come back with half of
their links. The other half is compared with as many unlinked pairs of the same new nodes. A file that exists is
continued.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from output import publish, recorded, write
from psgnn.datasets import load_dataset
from psgnn.graph import Graph, IntArray
from psgnn.graph._sampling import pair_code
from psgnn.models import build_model
from psgnn.scoring import Scorer
from psgnn.tasks import LinkPrediction
from psgnn.tasks._metrics import roc_auc
from psgnn.training import Run, fit

GRAPHS = ("seal/USAir", "cora", "seal/Power")
SEEDS = (0, 1, 2)
NEW_NODES, NEW_LINKS = 0.05, 0.5
TITLES = {
    "kept": "kept coordinates", "anew": "trained anew", "new_anchors": "new anchors",
    "embedded_kept": "vectors alone, kept", "embedded_anew": "vectors alone, anew",
}  # fmt: skip


def measure(name: str, seed: int) -> dict[str, Any]:
    """AUC of the links of new nodes of one graph."""
    (graph, *_) = load_dataset(name)
    rng = np.random.default_rng(seed)
    new = rng.random(graph.num_nodes) < NEW_NODES
    of_new = new[graph.edges].any(axis=0)
    hidden = of_new & (rng.random(of_new.size) < NEW_LINKS)
    yesterday = _linked(graph.edges[:, ~of_new])
    today = _linked(graph.edges[:, ~hidden])
    pairs, labels = _asked(graph, today, graph.edges[:, hidden], new, rng)
    run, anew = _train(yesterday, seed), _train(today, seed)
    kept = run.on(today)
    assert kept.changes is not None
    row: dict[str, Any] = {
        "graph": name,
        "seed": seed,
        "nodes": graph.num_nodes,
        "added": len(kept.changes.added),
    }
    row |= {"links": int(labels.sum()), "moved": len(kept.changes.moved)}
    row["kept"] = roc_auc(labels, kept.score(pairs))
    row["anew"] = roc_auc(labels, anew.score(pairs))
    row["new_anchors"] = roc_auc(labels, run.on(today, new_anchors=True).score(pairs))
    row["embedded_kept"] = roc_auc(labels, _embedded(kept, pairs))
    row["embedded_anew"] = roc_auc(labels, _embedded(anew, pairs))
    return row


def _linked(edges: IntArray) -> Graph:
    """The graph of some links and of the nodes that they have, which keep their numbers as names."""
    nodes, places = np.unique(edges, return_inverse=True)
    return Graph.from_edges(places.reshape(2, -1), nodes.size, names=[str(v) for v in nodes])


def _asked(
    graph: Graph, today: Graph, links: IntArray, new: np.ndarray, rng: np.random.Generator
) -> tuple[IntArray, np.ndarray]:
    """Hidden links whose nodes are there today, as many unlinked pairs of the same new nodes, and labels."""
    place = np.full(graph.num_nodes, -1)
    place[[int(name) for name in today.names]] = np.arange(today.num_nodes)
    links = links[:, (place[links] >= 0).all(axis=0)]
    ends = np.where(new[links[0]], links[0], links[1])
    known = pair_code(np.sort(graph.edges, axis=0))
    others = np.empty_like(ends)
    left = np.ones(ends.size, bool)
    nodes = np.flatnonzero(place >= 0)
    while left.any():
        others[left] = rng.choice(nodes, int(left.sum()))
        left = (others == ends) | np.isin(pair_code(np.sort([ends, others], axis=0)), known)
    labels = np.repeat([1, 0], ends.size)
    return place[np.concatenate([links, np.stack([ends, others])], axis=1)], labels


def _train(graph: Graph, seed: int) -> Run:
    task = LinkPrediction(graph, seed=seed)
    return fit(build_model("psgnn", task, seed=seed), task, seed=seed)


def _embedded(scorer: Scorer, pairs: IntArray) -> np.ndarray:
    return scorer.score_embedded(scorer.embed(), pairs)


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/recipes.md: means over the seeds."""
    lines = [
        f"| graph | nodes | added | {' | '.join(TITLES.values())} |",
        "| --- | ---: | ---: |" + " ---: |" * len(TITLES),
    ]
    for name in dict.fromkeys(row["graph"] for row in rows):
        some = [row for row in rows if row["graph"] == name]
        added = np.mean([row["added"] for row in some])
        cells = [f"{np.mean([row[key] for row in some]):.4f}" for key in TITLES]
        lines.append(f"| {name} | {some[0]['nodes']:,} | {added:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here, and go on with what is there")
    arguments = parser.parse_args()
    rows = recorded(arguments.json)
    done = {(row["graph"], row["seed"]) for row in rows}
    for name in GRAPHS:
        for seed in SEEDS:
            if (name, seed) not in done:
                rows.append(measure(name, seed))
                write({"rows": rows}, arguments.json)
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
