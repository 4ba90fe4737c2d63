"""Hop distances: psgnn against C, SciPy, networkit and networkx, in one run, on the same graphs.

    python lab/benchmarks/distances.py [--quick] [--only GRAPH] [--json FILE]

Every engine answers for the same sources and all answers are compared. An engine that would take too long
runs on its first few sources and its time is extrapolated (marked ~); one that is not installed is left out
and named. Times are the best of three runs, or of as many as take ten seconds together; the graph is handed to
each engine in its own form beforehand, and compiling is not counted. With --only, one graph is measured and takes
its place among the results of the file.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from output import publish, recorded
from psgnn.datasets import load_dataset
from psgnn.distances import hop_columns
from psgnn.errors import PsgnnError
from psgnn.graph._graph import Adjacency
from psgnn.kernels._compile import kernel_threads
from psgnn_lab.bench import Answer, grid, power_law, scipy_bfs_order, scipy_dijkstra, timed

BUDGET = 3.0  # seconds that a slow peer may take


# --- engines: each takes the graph and returns a function from sources to distances


def psgnn_all_cores(graph: Adjacency) -> Answer:
    """Ours, on all cores."""
    return lambda sources: hop_columns(graph, sources)


def psgnn_one_core(graph: Adjacency) -> Answer:
    """Ours, on one core, to compare with C."""

    def answer(sources: np.ndarray) -> np.ndarray:
        with kernel_threads(1):
            return hop_columns(graph, sources)

    return answer


def c_kernels(graph: Adjacency) -> Answer:
    """The same searches in C, -O3 -march=native, one core; the better of the two."""
    if shutil.which("gcc") is None:
        raise ImportError("gcc")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "bfs.so"
        source = Path(__file__).with_name("bfs.c")
        command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(binary)]
        subprocess.run(command, check=True)
        library = ctypes.CDLL(str(binary))

    def run(kernel: Any, sources: np.ndarray) -> np.ndarray:
        hops = np.full((graph.num_nodes, sources.size), -1, np.int16)
        for first in range(0, sources.size, 64):
            block = np.ascontiguousarray(sources[first : first + 64], np.int64)
            kernel(
                ctypes.c_int64(graph.num_nodes), graph.indptr.ctypes, graph.indices.ctypes, block.ctypes,
                ctypes.c_int64(block.size), ctypes.c_void_p(hops.ctypes.data + 2 * first),
                ctypes.c_int64(sources.size),
            )  # fmt: skip
        return hops

    kernels = library.bitset_bfs, library.queue_bfs
    trial = np.random.default_rng(1).choice(graph.num_nodes, 16, replace=False)
    best = kernels[int(np.argmin([timed(lambda kernel=kernel: run(kernel, trial))[0] for kernel in kernels]))]
    return lambda sources: run(best, sources)


def networkit_bfs(graph: Adjacency) -> Answer:
    """networkit.distance.BFS, one source after another."""
    import networkit

    peer = networkit.Graph(graph.num_nodes)
    peer.addEdges(tuple(graph.edges().astype(np.uint64)))

    def answer(sources: np.ndarray) -> np.ndarray:
        hops = np.empty((graph.num_nodes, sources.size), np.int16)
        for j, source in enumerate(sources):
            search = networkit.distance.BFS(peer, int(source), storePaths=False)
            search.run()
            found = np.array(search.getDistances())
            hops[:, j] = np.where(found > graph.num_nodes, -1, found)
        return hops

    return answer


def networkx_bfs(graph: Adjacency) -> Answer:
    """networkx.single_source_shortest_path_length."""
    import networkx

    peer = networkx.empty_graph(graph.num_nodes)
    peer.add_edges_from(graph.edges().T.tolist())

    def answer(sources: np.ndarray) -> np.ndarray:
        hops = np.full((graph.num_nodes, sources.size), -1, np.int16)
        for j, source in enumerate(sources.tolist()):
            found = networkx.single_source_shortest_path_length(peer, source)
            hops[list(found.keys()), j] = list(found.values())
        return hops

    return answer


ENGINES: dict[str, Callable[[Adjacency], Answer]] = {
    "psgnn": psgnn_all_cores,
    "psgnn, one core": psgnn_one_core,
    "C": c_kernels,
    "scipy dijkstra": scipy_dijkstra,
    "scipy breadth_first_order": scipy_bfs_order,
    "networkit": networkit_bfs,
    "networkx": networkx_bfs,
}
OURS = ("psgnn", "psgnn, one core", "C")


def measure(answer: Answer, sources: np.ndarray, full: bool) -> tuple[float, int, np.ndarray]:
    """Seconds for all sources (extrapolated if only some fit the budget), how many ran, their distances."""
    count = sources.size
    if not full:
        one, _ = timed(lambda: answer(sources[:1]))
        count = int(np.clip(BUDGET / one, 1, sources.size))
    seconds, hops = timed(lambda: answer(sources[:count]))
    return seconds * sources.size / count, count, hops


def run(name: str, graph: Adjacency, counts: list[int | None], skip: tuple[str, ...]) -> list[dict[str, Any]]:
    """All engines on one graph, for each number of sources (None = all nodes); a row each."""
    rows = []
    for count in counts:
        row: dict[str, Any] = {"graph": name, "nodes": graph.num_nodes, "edges": graph.num_edges}
        row |= {"sources": "all" if count is None else count, "seconds": {}, "sources_run": {}}
        rows.append(row | {"left_out": list(skip)})
    everyone = np.arange(graph.num_nodes)
    chosen = [
        everyone if count is None else np.random.default_rng(0).choice(everyone, count, replace=False)
        for count in counts
    ]
    truth = [hop_columns(graph, sources) for sources in chosen]
    for engine_name, make in ENGINES.items():
        if engine_name in skip:
            continue
        try:
            answer = make(graph)
        except ImportError as error:
            for row in rows:
                row["left_out"].append(f"{engine_name} ({error})")
            continue
        for row, sources, expected in zip(rows, chosen, truth, strict=True):
            seconds, count, hops = measure(answer, sources, full=engine_name in OURS)
            if not np.array_equal(hops, expected[:, :count]):
                raise SystemExit(f"{engine_name} disagrees with psgnn on {name}")
            row["seconds"][engine_name] = seconds
            row["sources_run"][engine_name] = count
    for row in rows:
        row["ratio"] = {peer: seconds / row["seconds"]["psgnn"] for peer, seconds in row["seconds"].items()}
        print(
            json.dumps({key: row[key] for key in ("graph", "sources", "seconds")}),
            file=sys.stderr,
            flush=True,
        )
    return rows


Case = tuple[str, Callable[[], Adjacency], list[int | None], tuple[str, ...]]


def cases(quick: bool) -> list[Case]:
    """Name, graph, numbers of sources (None = all), engines that cannot hold it."""

    def real(name: str) -> Callable[[], Adjacency]:
        return lambda: load_dataset(name)[0].adjacency

    small: list[Case] = [
        ("grid 20x20", lambda: grid(20, 20), [None], ()),
        ("cora", real("cora"), [None], ()),
    ]
    if quick:
        return small
    some: list[int | None] = [16, 64, 256]
    names = ("road-euroroad", "email-Enron", "p2p-Gnutella31", "soc-brightkite", "soc-slashdot0902",
             "road-usroads", "web-NotreDame")  # fmt: skip
    return [
        *small,
        ("pubmed", real("pubmed"), [None], ()),
        ("power law 1M", lambda: power_law(1_000_000, 10_000_000), some, ("networkx",)),
        ("grid 1000x1000", lambda: grid(1000, 1000), some, ("networkx",)),
        *((name, real(f"scale/{name}"), some, ()) for name in names),
    ]


def markdown(rows: list[dict[str, Any]]) -> str:
    """Seconds of ours and how many times as long the others take."""
    peers = [name for name in ENGINES if name != "psgnn"]
    lines = [
        "| graph | nodes | edges | sources | psgnn, s | " + " | ".join(peers) + " |",
        "| --- " * (len(peers) + 5) + "|",
    ]
    for row in rows:
        cells = []
        for peer in peers:
            known = peer in row["ratio"]
            partial = known and row["sources_run"][peer] < row["sources_run"]["psgnn"]
            times = f"{row['ratio'][peer]:.3g}" if known and row["ratio"][peer] < 100 else ""
            times = times or (f"{row['ratio'][peer]:.0f}" if known else "")
            cells.append(f"{'~' if partial else ''}{times}x" if known else "-")
        lines.append(
            f"| {row['graph']} | {row['nodes']} | {row['edges']} | {row['sources']} "
            f"| {row['seconds']['psgnn']:.4f} | " + " | ".join(cells) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two small graphs only")
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--only", help="the graph of this name only")
    arguments = parser.parse_args()
    hop_columns(grid(3, 3), np.arange(9))  # compile, or load the compiled kernels
    rows = []
    for name, make, counts, skip in cases(arguments.quick):
        if arguments.only not in (None, name):
            continue
        try:
            graph = make()
        except PsgnnError as error:
            print(f"left out: {name}: {error}", file=sys.stderr)
            continue
        rows.extend(run(name, graph, counts, skip))
    if arguments.only and arguments.json:
        old = recorded(arguments.json)
        place = [row["graph"] for row in old].index(arguments.only)
        others = [row for row in old if row["graph"] != arguments.only]
        rows = others[:place] + rows + others[place:]
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine(),
               "python": platform.python_version()}  # fmt: skip
    publish({"machine": machine, "rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
