"""Two columns of a Parquet file, read in a process of its own, which a damaged file may end."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from psgnn.errors import InputError
from psgnn.graph import _parquet_child
from psgnn.graph._headers import Columns, first_pair, named_pair, weight_column
from psgnn.graph._records import SAMPLE_RECORDS
from psgnn.graph._table import Table, asked_pair, asked_weight, need_rows, shortened
from psgnn.paths import check_file


def read_parquet(path: Path, edges: bool, asked: Columns | None, named_weight: str | None = None) -> Table:
    """Read the columns of the nodes, and the weight of ``edges``."""
    check_file(path)
    with _folder() as folder, _child(path, folder) as child:
        about = child.answer()
        names = about["names"]
        if len(names) < 2:
            raise InputError(f"{path} has {len(names)} column(s); two are needed, such as source and target")
        first = first_pair(names, about["sample"])
        pair = named_pair(names, edges) or first if asked is None else asked_pair(path, names, asked)
        asked_for = asked_weight(path, names, named_weight, pair)
        weight = weight_column(names, [], pair, asked_for) if edges else None
        third = pair[1] + 1
        if weight is None and edges and pair == first and third < len(names) and about["numeric"][third]:
            weight = third
        columns = [names[i] for i in (*pair, weight) if i is not None]
        need_rows(about["rows"], integers=all(about["integers"][i] for i in pair))
        child.ask(columns)
        child.answer()
        frame = pl.read_ipc(child.out)
    if frame.is_empty():
        raise InputError(f"{path} has no rows")

    def where(row: int) -> str:
        return f"{path}, row {row + 1} ({shortened(', '.join(map(str, frame.row(row))))})"

    ignored = tuple(name for name in names if name not in columns)
    return Table(frame[:, 0], frame[:, 1], None if weight is None else frame[:, 2], where, ignored)


def _folder() -> tempfile.TemporaryDirectory[str]:
    # On Windows a mapped file stays until it is let go.
    return tempfile.TemporaryDirectory(prefix="psgnn-parquet-", ignore_cleanup_errors=True)


class _Child:
    """The process that reads, and its answers."""

    def __init__(self, path: Path, process: subprocess.Popen[str], out: Path) -> None:
        self.path, self.process, self.out = path, process, out

    def ask(self, question: Any) -> None:
        try:
            self._stream("stdin").write(json.dumps(question) + "\n")
            self._stream("stdin").flush()
        except OSError:
            pass  # it has ended, and has no answer

    def answer(self) -> dict[str, Any]:
        line = self._stream("stdout").readline()
        answer: dict[str, Any] = json.loads(line) if line.endswith("\n") else {"error": "it is damaged"}
        if "wrong" in answer:
            raise InputError(f"{self.path}: {answer['wrong']}")
        if "error" in answer:
            raise InputError(f"{self.path} cannot be read as Parquet: {answer['error']}")
        return answer

    def _stream(self, name: str) -> Any:
        return getattr(self.process, name)


@contextmanager
def _child(path: Path, folder: str) -> Iterator[_Child]:
    out = Path(folder, "columns.arrow")
    command = [sys.executable, _parquet_child.__file__, str(path.absolute()), str(out), str(SAMPLE_RECORDS)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # What polars writes to stderr is its panic, before an error that is reported.
    with subprocess.Popen(command, **pipes, stderr=subprocess.DEVNULL, encoding="utf-8") as process:
        try:
            yield _Child(path, process, out)
        finally:
            process.kill()
