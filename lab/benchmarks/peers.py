"""psgnn beside node2vec (PecanPy) on large real graphs: AUC, time and memory, one after the other in the same run.

    python lab/benchmarks/peers.py [--only NAME] [--limit SECONDS] [--json FILE]

Each method learns and scores in a process of its own on the same split (seed 100). PecanPy has as many workers as there
are cores. A method that needs more than the limit is stopped; its row says so. Results in the file are kept, and what
is in it already is not measured again. Needs ``make peers``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from output import publish, recorded, write

SEED = 100
METHODS = ("psgnn", "node2vec")
GRAPHS = {
    "Enron mail": "scale/email-Enron",
    "Brightkite": "scale/soc-brightkite",
    "Gnutella": "scale/p2p-Gnutella31",
    "Slashdot": "scale/soc-slashdot0902",
    "US roads": "scale/road-usroads",
    "Notre Dame web": "scale/web-NotreDame",
}


def measure(method: str, dataset: str) -> None:
    """One method on one graph, in this process: prints what the graph is, then what came out."""
    import psgnn
    from psgnn.training import _peers as peers
    from psgnn.training._compare import Method, make_task, measure

    workers = peers.NODE2VEC.index("--workers") + 1
    peers.NODE2VEC = (*peers.NODE2VEC[:workers], str(os.cpu_count()), *peers.NODE2VEC[workers + 1 :])
    task = make_task(psgnn.load_dataset(dataset), "link", SEED)
    adjacency = task.union.adjacency
    print(json.dumps({"nodes": adjacency.num_nodes, "edges": adjacency.num_edges}), flush=True)
    found = measure(Method(method, "model" if method == "psgnn" else "peer"), task, SEED)
    print(json.dumps({"auc": found["test"]["auc"], "seconds": round(found["seconds"], 1)}))


def watched(method: str, dataset: str, limit: float | None) -> dict[str, Any]:
    """The same in a process of its own, with the peak memory of that and of those it starts.

    Beyond the limit they are stopped: there is no AUC, and the seconds are those until then.
    """
    command = [sys.executable, __file__, "--one", method, dataset]
    peak, stopped = 0, None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        graph = process.stdout.readline()
        started = time.perf_counter()
        while process.poll() is None:
            peak = max(peak, sum(map(resident, family(process.pid))))
            time.sleep(0.2)
            seconds = time.perf_counter() - started
            if limit is not None and seconds > limit:
                os.killpg(process.pid, signal.SIGKILL)
                stopped = {"auc": None, "seconds": round(seconds, 1)}
                break
        printed = process.stdout.read()
    if process.returncode and stopped is None:
        raise SystemExit(f"{method} failed on {dataset}")
    found = stopped or json.loads(printed)
    return {**json.loads(graph), **found, "memory_gb": round(1024 * peak / 1e9, 2)}


def family(pid: int) -> list[int]:
    """A process and those that it started, and they."""
    try:
        started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(member for child in started for member in family(int(child)))]


def resident(pid: int) -> int:
    """Memory of a process in kB; nothing if it has just ended."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = [
        "| graph | nodes | edges | psgnn, AUC | node2vec, AUC | psgnn, s | node2vec, s | times as fast "
        "| psgnn, memory | node2vec, memory |",
        "| :--- |" + " ---: |" * 9,
    ]
    for row in rows:
        ours, theirs = row["psgnn"], row["node2vec"]
        auc, more = (f"{theirs['auc']:.4f}", "") if theirs["auc"] is not None else ("stopped", "> ")
        lines.append(
            f"| {row['graph']} | {ours['nodes']:,} | {ours['edges']:,} | {ours['auc']:.4f} | {auc} "
            f"| {ours['seconds']:.0f} | {more}{theirs['seconds']:.0f} "
            f"| {more}{theirs['seconds'] / ours['seconds']:.1f}x "
            f"| {ours['memory_gb']:.1f} GB | {theirs['memory_gb']:.1f} GB |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=GRAPHS, action="append", help="one of the graphs")
    parser.add_argument("--limit", type=float, help="stop a method after this many seconds")
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(*arguments.one)
        return
    rows = recorded(arguments.json)
    for graph in arguments.only or GRAPHS:
        if any(row["graph"] == graph for row in rows):
            continue
        measured = {method: watched(method, GRAPHS[graph], arguments.limit) for method in METHODS}
        rows.append({"graph": graph, **measured})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        write({"rows": rows}, arguments.json)
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
