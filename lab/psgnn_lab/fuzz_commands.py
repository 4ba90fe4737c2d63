"""Files that go with a graph, as targets of the fuzzer: splits, links, sets, databases, and published benchmarks.

Commands run in this process through the command line's own door.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from psgnn import Graph, LinkPrediction, load_dataset, pretrained, read_graph
from psgnn.cli import app
from psgnn.graph import read_pairs
from psgnn_lab.fuzz import Target, add, file_target
from psgnn_lab.fuzz_targets import ABOUT, DATES, EDGES, NAMES

LINKS = b"source,target\n" + b"".join(f"{4 * i},{31 - 3 * i}\n".encode() for i in range(5))
GROUPED = b"source,target,part\n" + b"".join(
    f'"{NAMES[u]}","{NAMES[v]}",{"xy"[i % 2]}\n'.encode() for i, (u, v) in enumerate(EDGES)
)


@cache
def _graph() -> Graph:
    (graph,) = load_dataset("communities", communities=4, size=8)
    return graph


@cache
def _edges() -> bytes:
    return b"source,target\n" + b"".join(f"{u},{v}\n".encode() for u, v in _graph().edges.T.tolist())


@cache
def _scorer() -> Any:
    return pretrained("best-link").on(_graph())


def _split(folder: Path) -> object:
    graph = _graph()
    parts: dict[str, Any] = {
        name: read_pairs(folder / f"{name}.csv", graph.names) for name in ("val_links", "test_links")
    }
    return LinkPrediction(graph, **parts)


def _write_split(folder: Path, parts: Sequence[bytes]) -> None:
    for name, part in zip(("val_links", "test_links"), parts, strict=True):
        (folder / f"{name}.csv").write_bytes(part)


def _command(*arguments: str) -> Callable[[Path], object]:
    """A command about the graph beside the file, which is the last of its arguments."""

    def read(path: Path) -> object:
        (path.parent / "g.csv").write_bytes(_edges())
        name, *options = (argument.format(folder=path.parent) for argument in arguments)
        return app([name, str(path.parent / "g.csv"), *options, str(path)], standalone_mode=False)

    return read


def _database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table edges (a text, b text, since text, n real)")
            rows = [(NAMES[u], NAMES[v], f"2024-0{i + 1}-01", i + 0.5) for i, (u, v) in enumerate(EDGES)]
            connection.executemany("insert into edges values (?, ?, ?, ?)", rows)
            connection.commit()
        return path.read_bytes()


def _query(path: Path) -> object:
    how: dict[str, Any] = {"time": "since", "weight": "n", "weight_is": "strength"}
    return read_graph(f"sqlite:///{path}", query="select * from edges", **how)


def _seal_split() -> bytes:
    edges = np.array(EDGES, np.uint16) + 1
    parts = {"train_pos": edges[:4], "train_neg": edges[:1], "test_pos": edges[4:], "test_neg": edges[:2]}
    with tempfile.TemporaryDirectory() as folder:
        scipy.io.savemat(f"{folder}/s.mat", parts)
        return (Path(folder) / "s.mat").read_bytes()


def _write_seal(folder: Path, parts: Sequence[bytes]) -> None:
    (folder / "seal-splits").mkdir()
    # A graph of the collection whose files have no known checksum.
    (folder / "seal-splits" / "NS_split_2.mat").write_bytes(parts[0])


add(
    Target(
        "split of one's own",
        lambda: [b"a,b\n0,9\n1,12\n3,30\n", b"9,18\n10,19\n11,30\n"],
        _write_split,
        _split,
        0.5,
    )
)
file_target("links to evaluate", "l.csv", lambda: LINKS, lambda path: _scorer().evaluate(path), share=0.1)
for name, options, content in (
    ("sets", ("--samples", "10", "--sets"), b"node,set\n0,a\n9,a\n17,b\n30,b\n1,c\n"),
    ("pairs", ("--pairs",), LINKS),
    ("anchors", ("--out", "{folder}/d.csv", "--anchor-file"), b"anchor\n0\n9\n17\n"),
):
    read = _command("distances", "--json", *options)
    file_target(f"command distances, {name}", "f.csv", lambda content=content: content, read, share=0.1)  # type: ignore[misc]
file_target("command evaluate", "l.csv", lambda: LINKS, _command("evaluate", "--json", "--links"), share=0.02)
file_target(
    "kinds: graphs by a column", "g.csv", lambda: GROUPED, lambda path: read_graph(path, graph_id="part")
)
file_target(
    "kinds: until a date",
    "g.csv",
    lambda: DATES,
    lambda path: read_graph(path, time="when", until="2024-04-01"),
)


def _write_nodes(folder: Path, parts: Sequence[bytes]) -> None:
    (folder / "g.csv").write_bytes(DATES)
    (folder / "nodes.csv").write_bytes(parts[0])


def _between(folder: Path) -> object:
    how: dict[str, Any] = {"node_name": "name", "type": "group", "between": ("0", "1")}
    return read_graph(folder / "g.csv", nodes=folder / "nodes.csv", **how)


add(Target("table of nodes, two types", lambda: [ABOUT], _write_nodes, _between))
file_target("database", "g.db", _database, _query)
add(
    Target(
        "benchmark: a split of SEAL",
        lambda: [_seal_split()],
        _write_seal,
        lambda folder: load_dataset("seal-splits/NS", folder, split=2),
    )
)
