"""End or kill every command that writes at any moment, and look at what its repeat leaves.

python lab/benchmarks/crashes.py --kills 100 --json lab/benchmarks/results/crashes.json
"""

from __future__ import annotations

from typing import Any

from psgnn_lab.crashes import main


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/security.md."""
    lines = [
        "| command | ended before each file operation | killed at random | repeats that were not whole |"
    ]
    lines.append("| :--- | ---: | ---: | ---: |")
    lines += [
        f"| `{'psgnn-lab' if row['command'] == 'pretrain' else 'psgnn'} "
        f"{row['command'].replace(', again', ' --force')}` | {row['operations']} | {row['kills']} | "
        f"{len(row['failures'])} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
