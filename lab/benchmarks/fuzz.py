"""Attack everything that psgnn reads with mutated files, in processes that may crash, hang or run out of memory.

    python lab/benchmarks/fuzz.py --cases 1000000 --json lab/benchmarks/results/fuzz.json

goes on where the record ends. A failure is anything but success or one line that says what is wrong. It is named by
target and case, and

    python lab/benchmarks/fuzz.py --target "MATLAB, sparse" --seed 24 --case 17 --keep folder

writes the files again.
"""

from __future__ import annotations

from typing import Any

from psgnn_lab.fuzz import main

GROUPS = {
    "edge lists and tables": ("CSV", "TSV", "text", "lengths", "Parquet", "edges", "kinds", "table"),
    "databases": ("database",),
    "packed files": ("gzip",),
    "matrices: MatrixMarket, MATLAB, NPZ": ("MatrixMarket", "MATLAB", "NPZ"),
    "GraphML, GML, node-link JSON": ("GraphML", "GML", "node-link"),
    "names, anchors, sets, labels, pairs": ("names", "anchors", "sets", "labels", "pairs"),
    "negative links": ("negative",),
    "splits, links and sets for commands": ("split", "links", "command"),
    "files of published benchmarks": ("benchmark",),
    "folders of finished runs": ("run", "questions", "report"),
    "folders of interrupted runs, resumed": ("interrupted",),
    "ready-made weights": ("weights",),
    "results of `psgnn compare`": ("comparison",),
}


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/security.md."""
    lines = ["| attacked | cases | read | refused in one line | anything else |"]
    lines.append("| :--- | ---: | ---: | ---: | ---: |")
    counted = ("cases", "read", "refused", "failed")
    total = dict.fromkeys(counted, 0)
    left = list(rows)
    for group, words in GROUPS.items():
        mine = [row for row in left if row["target"].startswith(words)]
        left = [row for row in left if row not in mine]
        counts = {key: sum(row[key] for row in mine) for key in counted}
        total = {key: total[key] + counts[key] for key in counted}
        lines.append(f"| {group} | " + " | ".join(f"{counts[key]:,}" for key in counted) + " |")
    if left:
        raise ValueError(f"no group has {left[0]['target']}")
    lines.append("| all | " + " | ".join(f"{total[key]:,}" for key in counted) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
