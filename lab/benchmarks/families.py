"""Ten families of graphs at a million nodes: time and memory of `psgnn train`, so that none has a cliff.

    python lab/benchmarks/families.py [--nodes N] [--only FAMILY] [--json FILE]

Families that the file has at this size are left out, so that the benchmark goes on where it was stopped. CPU minutes
are user and system time of all threads and processes, memory is the sum of what each process took at most, and
``load`` is how many processes wanted a core at the start and at the end: beside other work, wall minutes say little.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import psutil

from output import publish, recorded, write

Ids = npt.NDArray[np.int64]
Ends = tuple[Ids, Ids]
Make = Callable[[int, np.random.Generator], Ends]


def small_world(nodes: int, rng: np.random.Generator) -> Ends:
    """A ring whose nodes have ten links of Pareto lengths: no hubs, and hardly any short ways around."""
    us = rng.integers(0, nodes, 10 * nodes)
    return us, (us + 1 + (3 * rng.pareto(1.1, us.size)).astype(np.int64)) % nodes


def power_law(nodes: int, rng: np.random.Generator) -> Ends:
    """Ten links per node, ends drawn in proportion to rank^-0.6."""
    weights = np.cumsum((np.arange(1, nodes + 1) / nodes) ** -0.6)
    us, vs = (np.searchsorted(weights, rng.random(10 * nodes) * weights[-1]) for _ in range(2))
    return us, vs


def uniform(nodes: int, rng: np.random.Generator) -> Ends:
    """Ten links per node between any two nodes."""
    return rng.integers(0, nodes, 10 * nodes), rng.integers(0, nodes, 10 * nodes)


def groups(nodes: int, rng: np.random.Generator) -> Ends:
    """Groups of twenty in which half of the pairs are linked, and one link per node to anywhere."""
    us = np.repeat(np.arange(nodes), 5)
    inside = us // 20 * 20 + rng.integers(0, 20, us.size)
    return np.concatenate([us, np.arange(nodes)]), np.concatenate([inside, rng.integers(0, nodes, nodes)])


def road(nodes: int, rng: np.random.Generator) -> Ends:
    """A grid with a fifth of its links missing."""
    side = int(nodes**0.5)
    index = np.arange(side * side).reshape(side, side)
    us = np.concatenate([index[1:].ravel(), index[:, 1:].ravel()])
    vs = np.concatenate([index[:-1].ravel(), index[:, :-1].ravel()])
    kept = rng.random(us.size) < 0.8
    return us[kept], vs[kept]


def path(nodes: int, rng: np.random.Generator) -> Ends:
    """One long path."""
    return np.arange(nodes - 1), np.arange(1, nodes)


def tree(nodes: int, rng: np.random.Generator) -> Ends:
    """Every node is linked to an earlier one."""
    us = np.arange(1, nodes)
    return us, (rng.random(us.size) * us).astype(np.int64)


def two_hubs(nodes: int, rng: np.random.Generator) -> Ends:
    """Two nodes with half of the others each, and one more link per node to anywhere."""
    us = np.arange(2, nodes)
    return np.concatenate([us, us]), np.concatenate([us % 2, rng.integers(0, nodes, us.size)])


def two_sides(nodes: int, rng: np.random.Generator) -> Ends:
    """People and a tenth as many things: ten links per person, more of them to popular things."""
    people = nodes * 10 // 11
    us = np.repeat(np.arange(people), 10)
    return us, people + ((nodes - people) * rng.random(us.size) ** 2).astype(np.int64)


def bipartite_core(nodes: int, rng: np.random.Generator) -> Ends:
    """Eight nodes that are linked to nine tenths of all others; were it all, there were no links to predict."""
    us, vs = np.repeat(np.arange(8, nodes), 8), np.tile(np.arange(8), nodes - 8)
    kept = rng.random(us.size) < 0.9
    return us[kept], vs[kept]


FAMILIES: dict[str, Make] = {
    "small world": small_world,
    "power law": power_law,
    "uniform": uniform,
    "groups": groups,
    "road": road,
    "path": path,
    "tree": tree,
    "two hubs": two_hubs,
    "two sides": two_sides,
    "bipartite core": bipartite_core,
}


def peak(pid: int) -> int:
    """The most bytes that a process has taken."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 1024 * int(found[1]) if found else 0


def measure(family: str, nodes: int) -> dict[str, Any]:
    """Train on a graph of the family in a process, and watch it."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.parquet"
        us, vs = FAMILIES[family](nodes, rng)
        names = rng.permutation(nodes)
        pl.DataFrame({"source": names[us], "target": names[vs]}).write_parquet(graph)
        links = us.size
        del us, vs, names
        load = [os.getloadavg()[0]]
        command = [sys.executable, "-m", "psgnn", "train", str(graph), "--task", "link", "--json"]
        command += ["--out", f"{folder}/run"]
        started, peaks = time.perf_counter(), dict[int, int]()
        before = os.times()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            own = psutil.Process(process.pid)
            while process.poll() is None:
                with suppress(psutil.Error, OSError):
                    for each in (own, *own.children(recursive=True)):
                        peaks[each.pid] = max(peaks.get(each.pid, 0), peak(each.pid))
                time.sleep(0.2)
            assert process.stdout is not None
            printed = process.stdout.read()
        after, minutes = os.times(), (time.perf_counter() - started) / 60
        load.append(os.getloadavg()[0])
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "family": family,
        "nodes": nodes,
        "links": links,
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
        "minutes": round(minutes, 2),
        "cpu_minutes": round(cpu / 60, 2),
        "memory_gb": round(sum(peaks.values()) / 1e9, 2),
        "load": [round(each, 1) for each in load],
        "auc": round(json.loads(printed)["test"]["auc"], 4),
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = ["| family | nodes | links | CPU minutes | wall minutes | load | peak memory | test AUC |"]
    lines.append("| :--- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    lines += [
        f"| {row['family']} | {row['nodes']:,} | {row['links']:,} | {row['cpu_minutes']:.1f} | {row['minutes']:.1f} | "
        f"{row['load'][0]:.0f} to {row['load'][1]:.0f} | {row['memory_gb']:.1f} GB | {row['auc']:.3f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument(
        "--only", choices=FAMILIES, action="append", help="one of the families, measured again"
    )
    parser.add_argument("--json", type=Path, help="also write the results here, beside others")
    arguments = parser.parse_args()
    anew = {(family, arguments.nodes) for family in arguments.only or ()}
    rows = [row for row in recorded(arguments.json) if (row["family"], row["nodes"]) not in anew]
    for family in arguments.only or FAMILIES:
        if all((row["family"], row["nodes"]) != (family, arguments.nodes) for row in rows):
            rows.append(measure(family, arguments.nodes))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            rows.sort(key=lambda row: (-row["nodes"], list(FAMILIES).index(row["family"])))
            write({"rows": rows}, arguments.json)
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
