"""How long a person waits: commands of psgnn against bare imports, in the same run.

    python lab/benchmarks/startup.py [--json FILE]

Every command runs in a process of its own. They take turns, and the best of their rounds counts: other work on the
machine only adds to a time. The first round, which may compile kernels and bytecode, is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from output import publish

ROUNDS = 7
VILLAGE = str(Path(__file__).resolve().parents[2] / "examples" / "village.csv")
PASS, IMPORTS = "python -c pass", "import numba, polars, scipy.sparse"
COMMANDS: dict[str, list[str]] = {
    PASS: ["-c", "pass"],
    IMPORTS: ["-c", IMPORTS],
    "predict village.csv --top 50": ["-m", "psgnn", "predict", VILLAGE, "--top", "50"],
    "predict nowhere.csv --top 50": ["-m", "psgnn", "predict", "nowhere.csv", "--top", "50"],
    "predikt village.csv": ["-m", "psgnn", "predikt", VILLAGE],
    "predict village.csv --topp 50": ["-m", "psgnn", "predict", VILLAGE, "--topp", "50"],
    "train village.csv --model psgn": ["-m", "psgnn", "train", VILLAGE, "--model", "psgn"],
    "psgnn --help": ["-m", "psgnn", "--help"],
}
# pip compiles an installed package to bytecode; a checkout has none where this is set.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(arguments: list[str]) -> float:
    """The time of a process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False, env=ENVIRONMENT)
    return time.perf_counter() - start


def measure() -> list[dict[str, Any]]:
    """The best time of every command, and how it compares."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for round_ in range(1 + ROUNDS):
        for name, arguments in COMMANDS.items():
            taken = seconds(arguments)
            if round_ > 0:
                best[name] = min(best[name], taken)
    return [
        {
            "command": name,
            "seconds": round(taken, 3),
            "over_pass": round(taken - best[PASS], 3),
            "times_imports": round(taken / best[IMPORTS], 2),
        }
        for name, taken in best.items()
    ]


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of docs/performance.md."""
    lines = [f"| command | s | more than `{PASS}` | times `{IMPORTS}` |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| `{row['command']}` | {row['seconds']:.2f} | {row['over_pass']:.2f} | {row['times_imports']:.2f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print JSON on stdout and a table on stderr."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    rows = measure()
    publish(
        {"rounds": ROUNDS, "python": sys.version.split()[0], "rows": rows}, markdown(rows), arguments.json
    )


if __name__ == "__main__":
    main()
