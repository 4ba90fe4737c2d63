"""Nodes by name: one name per line, or a table of named sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._bytes import decoded
from psgnn.graph._graph import IntArray
from psgnn.graph._options import ReadOptions
from psgnn.graph._read import codes_of, logger, nearest_name, note_skipped, unknown_node
from psgnn.graph._table import shortened
from psgnn.graph._tables import read_table
from psgnn.paths import PathLike

HEADERS = ("node", "nodes", "name", "names", "id", "anchor", "anchors")


def node_ids(nodes: Iterable[str | int], names: Sequence[str]) -> IntArray:
    """The ids of nodes that are given by name or by id, int64 ``[n]``."""
    if not isinstance(nodes, Iterable) or getattr(nodes, "ndim", 1) != 1:
        raise InputError(f"nodes go in a list of names or ids, found {shortened(str(nodes))}")
    place: dict[str, int] = {}
    found = []
    for node in nodes:
        if isinstance(node, (int, np.integer)):
            if not 0 <= node < len(names):
                raise InputError(f"there is no node {node}; the graph has the nodes 0..{len(names) - 1}")
            found.append(int(node))
            continue
        if not isinstance(node, str):
            raise InputError(f"{shortened(str(node))} is neither a name nor an id of a node")
        place = place or {name: v for v, name in enumerate(names)}
        if node not in place:
            raise InputError(unknown_node(node, names))
        found.append(place[node])
    return np.array(found, np.int64)


def distinct_ids(nodes: Iterable[str | int], names: Sequence[str], what: str) -> IntArray:
    """The ids of nodes that are given by name or by id, at least one and each once."""
    found = node_ids([nodes] if isinstance(nodes, str) else nodes, names)
    if not found.size:
        raise InputError(f"{what} has no nodes; name at least one")
    node, times = Counter(found.tolist()).most_common(1)[0]
    if times > 1:
        raise InputError(f"{what} names '{names[node]}' twice; name each node once")
    return found


def read_names(path: PathLike, node_names: Sequence[str] | None = None) -> list[str]:
    """Read a file of names, one per line.

    Blank lines and comments (``#`` or ``%``) are skipped. The first line is a header if it names no node of the
    graph, unless it is nearly the name of one. Without ``node_names`` no line is a header.
    """
    text = decoded(Path(path).expanduser()).decode()
    known = set(node_names or ())
    lines = {place: line for place, line in enumerate(map(str.strip, text.splitlines()), 1) if line}
    listed = {
        place: line for place, line in lines.items() if line in known or not line.startswith(("#", "%"))
    }
    names = list(listed.values())
    if node_names is not None:
        if names[1:2] and names[0] not in known and names[1] in known and _is_header(names[0], node_names):
            logger.info("%s: the first line, '%s', was taken for a header", path, names[0])
            del listed[next(iter(listed))], names[0]
        for place, name in listed.items():
            if name not in known:
                raise InputError(f"{path}, line {place}: {unknown_node(name, node_names)}")
    if not names:
        raise InputError(f"{path} names no node; write one per line")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise InputError(f"{path} names '{name}' twice; name each node once")
    return names


def _is_header(line: str, node_names: Sequence[str]) -> bool:
    """Whether a first line that names no node is a header, and not a node that is misspelled."""
    return line.lower() in HEADERS or nearest_name(line, node_names) is None


def read_sets(
    path: PathLike, node_names: Sequence[str], *, header: bool | None = None
) -> dict[str, IntArray]:
    """Read a ``node,set`` table as the ids of the members of each set, in the order of the file.

    A node may be in several sets. ``header`` says whether the first line names the columns. By default it does if it
    names no node of the graph.

    Raises:
        InputError: If a node is not in the graph, or stands twice in a set.
    """
    table = read_table(Path(path).expanduser(), node_names=node_names, how=ReadOptions(header=header))
    note_skipped(path, table, node_names)
    frame = pl.DataFrame(
        {"node": codes_of(table.first, node_names, table.where), "set": table.second.cast(pl.String)}
    )
    table.refuse(
        ~frame.select(pl.struct("node", "set").is_first_distinct()).to_series(),
        "the node stands in this set already; name each member once",
    )
    members = frame.group_by("set", maintain_order=True).agg("node")
    return {name: np.array(nodes, np.int64) for name, nodes in members.iter_rows()}
