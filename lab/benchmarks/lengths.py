"""Shortest path lengths: psgnn against scipy.sparse.csgraph.dijkstra, in one run, on the same roads.

    python lab/benchmarks/lengths.py [--quick] [--json FILE]

Both get the graph in their own form beforehand, psgnn as a `Graph` and its lengths. What psgnn prepares for its
searches is part of its time. Answers are compared: they may differ in the last bit of a float32. Times are the best
of three runs, or of as many as take ten seconds together; compiling is not counted.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from output import publish
from psgnn import Graph, shortest_distances
from psgnn.kernels._compile import kernel_threads, num_threads
from psgnn_lab.bench import timed

Roads = tuple[Graph, npt.NDArray[np.float64]]
SOURCES = (16, 64)


def oldenburg() -> Roads:
    """The roads of Oldenburg (T. Brinkhoff), from the folder of data."""
    path = Path(os.environ.get("PSGNN_DATA", "")) / "kinds" / "oldenburg-roads.txt.gz"
    if not path.exists():
        raise SystemExit(f"{path} is missing; set PSGNN_DATA to the folder of data")
    table = np.loadtxt(path, usecols=(1, 2, 3))
    return with_lengths(table[:, :2].T.astype(np.int64), table[:, 2])


def generated(num_nodes: int) -> Roads:
    """A grid of crossings with a fifth of its roads missing; half of the nodes are bends. Nodes are in random order."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(num_nodes / 2))
    crossings = np.arange(side * side).reshape(side, side)
    tails = np.concatenate([crossings[1:].ravel(), crossings[:, 1:].ravel()])
    heads = np.concatenate([crossings[:-1].ravel(), crossings[:, :-1].ravel()])
    kept = rng.random(tails.size) < 0.8
    tails, heads = tails[kept], heads[kept]
    road = np.sort(rng.integers(0, tails.size, num_nodes - crossings.size))  # that a bend is on
    bends = np.arange(crossings.size, num_nodes)
    first, last = np.r_[True, road[1:] != road[:-1]], np.r_[road[1:] != road[:-1], True]
    straight = np.setdiff1d(np.arange(tails.size), road)
    before = np.where(first, tails[road], bends - 1)
    us = np.concatenate([before, bends[last], tails[straight]])
    vs = np.concatenate([bends, heads[road[last]], heads[straight]])
    return with_lengths(rng.permutation(num_nodes)[np.stack([us, vs])], rng.uniform(10, 170, us.size))


def with_lengths(edges: npt.NDArray[np.int64], lengths: npt.NDArray[np.float64]) -> Roads:
    """The graph, and the lengths in the order of its edges; of parallel edges the shortest."""
    low, high = np.sort(edges, axis=0)
    order = np.lexsort([lengths, high, low])
    order = order[low[order] != high[order]]
    keys = low[order] * (edges.max() + 1) + high[order]
    graph = Graph.from_edges(edges)
    assert np.array_equal(graph.edges[0] * (edges.max() + 1) + graph.edges[1], np.unique(keys))
    return graph, lengths[order][np.unique(keys, return_index=True)[1]]


def run(name: str, graph: Graph, lengths: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """A row for each number of sources."""
    shape = graph.num_nodes, graph.num_nodes
    ends = np.concatenate([graph.edges, graph.edges[::-1]], axis=1)
    matrix = csr_matrix((np.tile(lengths, 2), tuple(ends)), shape=shape)
    rows = []
    for count in SOURCES:
        sources = np.random.default_rng(0).choice(graph.num_nodes, count, replace=False)

        def ours(sources: npt.NDArray[np.int64] = sources) -> npt.NDArray[np.float32]:
            return shortest_distances(graph, sources, lengths=lengths)

        def on_one_core(ours: Callable[[], npt.NDArray[np.float32]] = ours) -> npt.NDArray[np.float32]:
            with kernel_threads(1):
                return ours()

        def scipys(sources: npt.NDArray[np.int64] = sources) -> npt.NDArray[np.float64]:
            found: npt.NDArray[np.float64] = dijkstra(matrix, indices=sources)
            return found

        seconds, found = timed(ours)
        one_core, again = timed(on_one_core)
        taken, theirs = timed(scipys)
        expected = np.where(np.isinf(theirs), -1, theirs).T.astype(np.float32)
        different = found != expected
        if (np.abs(found - expected) > np.spacing(np.abs(expected))).any() or (found != again).any():
            raise SystemExit(f"scipy disagrees with psgnn on {name}")
        rows.append(
            {
                "graph": name, "nodes": graph.num_nodes, "edges": graph.num_edges, "sources": count,
                "seconds": {"psgnn": seconds, "psgnn, one core": one_core, "scipy dijkstra": taken},
                "ratio": taken / seconds, "ratio_one_core": taken / one_core,
                "different_last_bits": int(different.sum()),
            }
        )  # fmt: skip
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """Seconds of ours, and how many times as long SciPy takes."""
    lines = [
        "| graph | nodes | edges | sources | psgnn, s | scipy dijkstra | against psgnn on one core | other last bit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        lines.append(
            f"| {row['graph']} | {row['nodes']:,} | {row['edges']:,} | {row['sources']} "
            f"| {row['seconds']['psgnn']:.4f} | {row['ratio']:.1f}x | {row['ratio_one_core']:.1f}x "
            f"| {row['different_last_bits']} of {row['nodes'] * row['sources']:,} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small generated graph only")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    shortest_distances([[0], [1]], lengths=[1.0])  # compile, or load the compiled kernels
    size = 2000 if arguments.quick else 200_000
    graphs = {} if arguments.quick else {"Oldenburg roads": oldenburg}
    graphs[f"generated roads, {size:,} nodes"] = lambda: generated(size)
    rows = [row for name, make in graphs.items() for row in run(name, *make())]
    machine = {"cores": num_threads(), "processor": platform.processor() or platform.machine(),
               "python": platform.python_version()}  # fmt: skip
    publish({"machine": machine, "rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
