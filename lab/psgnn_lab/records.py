"""Results on disk: ``records/ROW/METHOD.json``, one line a seed.

A file holds all runs of one cell of a table. It is replaced as a whole, under a lock of its folder, so that
processes can write side by side and a kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psgnn.errors import InputError
from psgnn.paths import locked
from psgnn_lab.plan import Run

Record = dict[str, Any]
DIGITS = 6  # of a metric; more would be noise of the machine


def record_path(folder: Path, row: str, method: str) -> Path:
    """The file of a cell."""
    return folder / row / f"{method}.json"


def read_cell(folder: Path, row: str, method: str) -> dict[int, Record]:
    """The records of a row and method by seed, whatever settings they are of."""
    path = record_path(folder, row, method)
    with intact(path):
        return {record["seed"]: record for record in read_lines(path) if record["id"] and record["test"]}


def read_lines(path: Path) -> list[Record]:
    """The records of a file; none if there is no file."""
    records: list[Record] = json.loads(path.read_text()) if path.exists() else []
    return records


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Report what is wrong with the content of a file in one line."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())[:100]
        raise InputError(f"{path} is damaged ({reason}); restore it or delete it and run again") from None


def find_record(folder: Path, run: Run) -> Record | None:
    """The record of exactly this run, or None."""
    record = read_cell(folder, run.row.name, run.method.name).get(run.seed)
    return record if record is not None and record["id"] == run.id else None


def write_record(folder: Path, run: Run, measured: Mapping[str, Any]) -> None:
    """Add a run to the file of its cell, in the place of one with the same seed."""
    record = {"seed": run.seed, "id": run.id, **_rounded(measured)}
    path = record_path(folder, run.row.name, run.method.name)
    with locked(path.parent):
        records = read_cell(folder, run.row.name, run.method.name) | {run.seed: record}
        write_lines(path, [records[seed] for seed in sorted(records)])


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Replace a file by one with a line a record; the caller has locked its folder."""
    from psgnn.paths import atomic_write

    lines = [json.dumps(record, allow_nan=False) for record in records]
    for left in path.parent.glob(".psgnn-*"):  # by a process that was killed while it had the lock
        left.unlink()
    with atomic_write(path, force=True) as temporary:
        temporary.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(entry) for key, entry in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value
