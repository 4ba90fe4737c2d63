"""A million nodes, end to end: `psgnn train` on an edge list in Parquet, its time, memory and AUC.

    python benchmarks/million.py [--nodes N] [--json FILE]

The graph is the power-law one of scale.py, with ten links a node. The command runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scale import write_graph


def run(nodes: int) -> dict[str, Any]:
    """Train once and measure from outside."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "graph.parquet"
        write_graph("power-law", nodes, path)
        command = [sys.executable, "-m", "psgnn", "train", str(path), "--out", f"{folder}/run", "--json"]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - start
        record = json.loads(done.stdout)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "nodes": nodes,
        "links": 10 * nodes,
        "minutes": round(seconds / 60, 2),
        "memory_gb": round(memory / 1e9, 2),
        "anchors": len(record["anchors"][0]),
        "auc": round(record["test"]["auc"], 4),
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = ["| nodes | lines of the edge list | anchors | minutes, end to end | peak memory | test AUC |"]
    lines.append("| ---: " * 6 + "|")
    for row in rows:
        lines.append(
            f"| {row['nodes']:,} | {row['links']:,} | {row['anchors']} | {row['minutes']:.1f} | "
            f"{row['memory_gb']:.1f} GB | {row['auc']:.4f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    results = {"rows": [run(arguments.nodes)]}
    print(json.dumps(results, indent=2))
    print(markdown(results["rows"]), file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
