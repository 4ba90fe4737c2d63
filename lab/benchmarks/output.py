"""What all benchmarks do with what they have measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def publish(results: dict[str, Any], table: str, path: Path | None) -> None:
    """Print JSON on stdout and the table on stderr, and write the file if there is one."""
    print(json.dumps(results, indent=2))
    print(table, file=sys.stderr)
    write(results, path)


def write(results: dict[str, Any], path: Path | None) -> None:
    """Write the file if there is one."""
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n")


def recorded(path: Path | None) -> list[dict[str, Any]]:
    """The rows of a file, for benchmarks that go on where they were stopped."""
    if path is None or not path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows
