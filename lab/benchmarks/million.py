"""A million nodes, end to end: time and memory of `psgnn train`, also under a cap, `embed` and `predict --top`.

    python lab/benchmarks/million.py [--nodes N] [--memory SIZE] [--only COMMAND] [--json FILE]

The graph is the power-law one of scale.py, an edge list in Parquet with ten lines a node. Every command runs in a
process, which is watched from outside; its own memory is what no file stands behind.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from output import publish, recorded
from scale import write_graph

COMMANDS = ("train", "train --memory", "embed", "predict --top")
WATCHED = {"VmRSS": "memory_gb", "RssAnon": "own_memory_gb"}


def run(nodes: int, memory: str, commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """The commands one after the other, on one graph."""
    with TemporaryDirectory() as folder:
        graph, out = Path(folder) / "graph.parquet", f"{folder}/run"
        write_graph("power-law", nodes, graph)
        arguments = {
            "train": ["train", str(graph), "--out", out, "--force"],
            "train --memory": ["train", str(graph), "--out", f"{folder}/capped", "--memory", memory],
            "embed": ["embed", out, "-o", f"{folder}/embeddings.parquet"],
            "predict --top": ["predict", out, "--top", "1000", "-o", f"{folder}/links.parquet"],
        }
        rows = []
        for name in commands:
            title = name.replace("--memory", f"--memory {memory}").replace("--top", "--top 1000")
            rows.append({"command": title, "nodes": nodes, **watched([*arguments[name], "--json"])})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def watched(arguments: list[str]) -> dict[str, Any]:
    """Run psgnn once and watch its memory."""
    peaks = dict.fromkeys(WATCHED, 0)
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "psgnn", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            found = dict(re.findall(r"(\w+):\s+(\d+) kB", status.read_text()))
            peaks = {key: max(peak, int(found.get(key, 0))) for key, peak in peaks.items()}
            time.sleep(0.1)
        seconds = time.perf_counter() - start
        assert process.stdout is not None
        printed = json.loads(process.stdout.read())
    if process.returncode:
        raise SystemExit(f"psgnn {' '.join(arguments)} failed")
    measured: dict[str, Any] = {"minutes": round(seconds / 60, 2)}
    measured |= {WATCHED[key]: round(1024 * peak / 1e9, 2) for key, peak in peaks.items()}
    if arguments[0] == "train":
        measured |= {"anchors": len(printed["anchors"][0]), "auc": printed["test"]["auc"]}
    return measured


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = ["| nodes | `psgnn ...` | minutes, end to end | peak memory | of which its own | test AUC |"]
    lines.append("| ---: | :--- | ---: | ---: | ---: | ---: |")
    for row in rows:
        auc = f"{row['auc']:.6f}" if "auc" in row else ""
        lines.append(
            f"| {row['nodes']:,} | {row['command']} | {row['minutes']:.1f} | {row['memory_gb']:.1f} GB | "
            f"{row['own_memory_gb']:.1f} GB | {auc} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--memory", default="4G", help="cap of the second run")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="one of the commands")
    parser.add_argument("--json", type=Path, help="also write the results here, beside others")
    arguments = parser.parse_args()
    commands = tuple(arguments.only or COMMANDS)
    measured = run(arguments.nodes, arguments.memory, commands)
    anew = {(row["nodes"], row["command"]) for row in measured}
    rows = [row for row in recorded(arguments.json) if (row["nodes"], row["command"]) not in anew] + measured
    order = [name.split()[0] for name in COMMANDS]
    rows.sort(key=lambda row: (row["nodes"], order.index(row["command"].split()[0]), row["command"]))
    publish({"rows": rows}, markdown(rows), arguments.json)


if __name__ == "__main__":
    main()
