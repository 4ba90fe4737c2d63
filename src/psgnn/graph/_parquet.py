"""Two columns of a Parquet file, read in a process of its own, which a damaged file may end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from psgnn.errors import InputError
from psgnn.graph import _parquet_child
from psgnn.graph._headers import chosen_column, first_pair, ignored_columns, named_pair, weight_column
from psgnn.graph._node_table import NodeTable
from psgnn.graph._options import ReadOptions
from psgnn.graph._records import SAMPLE_RECORDS
from psgnn.graph._table import Table, asked_columns, asked_pair, need_rows, no_column, shortened
from psgnn.paths import check_file


def read_parquet(path: Path, edges: bool, how: ReadOptions) -> Table:
    """Read the columns of the nodes, and those that were asked for beside them."""
    asked = how.columns
    check_file(path)
    with _child(path) as child:
        about = child.answer()
        names = about["names"]
        if len(names) < 2:
            raise InputError(f"{path} has {len(names)} column(s); two are needed, such as source and target")
        first = first_pair(names, about["sample"])
        pair = named_pair(names, edges) or first if asked is None else asked_pair(path, names, asked)
        more = asked_columns(path, names, how, pair)
        weight = weight_column(names, [], pair) if edges and "weight" not in more else None
        third = pair[1] + 1
        if weight is None and edges and pair == first and third < len(names) and about["numeric"][third]:
            weight = third
        ignored = ignored_columns(names, about["sample"], (*pair, *more.values()))
        if weight is not None and weight not in more.values() and "weight" not in more:
            more = {"weight": weight, **more}
        need_rows(about["rows"], integers=all(about["integers"][i] for i in pair))
        frame = child.columns([names[i] for i in (*pair, *more.values())], nodes=2)
    found = dict(zip(more, frame.get_columns()[2:], strict=True))
    titles = (names[pair[0]], names[pair[1]])
    return Table(frame[:, 0], frame[:, 1], _place(path, frame), found, titles, ignored)


def read_parquet_nodes(path: Path, how: ReadOptions) -> NodeTable:
    """Read all columns of a table of nodes."""
    check_file(path)
    with _child(path) as child:
        about = child.answer()
        names = about["names"]
        key = 0 if how.node_name is None else chosen_column(names, how.node_name)
        if key is None or not names:
            raise no_column(path, str(how.node_name), names)
        order = [names[key], *(name for name in names if name != names[key])]
        frame = child.columns(order, nodes=1)
    columns = dict(zip(order, frame.get_columns(), strict=True))
    return NodeTable({name: columns[name] for name in names}, _place(path, frame), str(path))


def _place(path: Path, frame: pl.DataFrame) -> Callable[[int], str]:
    """Where a row stands, for messages."""
    return lambda row: f"{path}, row {row + 1} ({shortened(', '.join(map(str, frame.row(row))))})"


class _Child:
    """The process that reads, and its answers."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self.path, self.process = path, process

    def columns(self, names: Sequence[str], *, nodes: int) -> pl.DataFrame:
        """These columns of the file, of which the first hold nodes."""
        self.ask({"columns": names, "nodes": nodes})
        self.answer()
        content = self._stream("stdout").read()
        if self.process.wait():  # before it had written all of it
            raise InputError(f"{self.path} cannot be read as Parquet: it is damaged")
        frame = pl.read_ipc_stream(content)
        if frame.is_empty():
            raise InputError(f"{self.path} has no rows")
        return frame

    def ask(self, question: Any) -> None:
        try:
            self._stream("stdin").write(json.dumps(question).encode() + b"\n")
            self._stream("stdin").flush()
        except OSError:
            pass  # it has ended, and has no answer

    def answer(self) -> dict[str, Any]:
        line = self._stream("stdout").readline()
        answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {"error": "it is damaged"}
        if "wrong" in answer:
            raise InputError(f"{self.path}: {answer['wrong']}")
        if "error" in answer:
            raise InputError(f"{self.path} cannot be read as Parquet: {answer['error']}")
        return answer

    def _stream(self, name: str) -> Any:
        return getattr(self.process, name)


@contextmanager
def _child(path: Path) -> Iterator[_Child]:
    command = [sys.executable, _parquet_child.__file__, str(path.absolute()), str(SAMPLE_RECORDS)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # What polars writes to stderr is its panic, before an error that is reported.
    with subprocess.Popen(command, **pipes, stderr=subprocess.DEVNULL) as process:
        try:
            yield _Child(path, process)
        finally:
            process.kill()
