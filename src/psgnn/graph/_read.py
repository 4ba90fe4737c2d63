"""Graphs, labels and pairs in; tables out.

See :mod:`psgnn.graph._tables` for what a text file may look like.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._build import Reading, graphs_of
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._formats import read_edges
from psgnn.graph._graph import Graph, IntArray
from psgnn.graph._in_memory import frame_of_nodes, from_memory, is_frame
from psgnn.graph._node_table import Nodes, nodes_of
from psgnn.graph._options import ReadOptions
from psgnn.graph._table import Table, shortened
from psgnn.graph._tables import query_table, read_node_table, read_table
from psgnn.paths import PathLike, check_file, is_url, without_secrets

__all__ = [
    "Reading",
    "read_graph",
    "read_labels",
    "read_pairs",
]

logger = logging.getLogger("psgnn")


# Graphs

Source = Any  # a path, an address, a table, a networkx graph, a SciPy matrix, a PyG Data or a Graph


@overload
def read_graph(graph: list[Any] | tuple[Any, ...], /, **options: Any) -> list[Graph]: ...
@overload
def read_graph(graph: Source, /, *, graph_id: str, **options: Any) -> list[Graph]: ...
@overload
def read_graph(graph: Source, /, **options: Any) -> Graph: ...
def read_graph(  # type: ignore[misc]
    graph: Source,
    /,
    *,
    source: str | None = None,
    target: str | None = None,
    directed: bool = False,
    weight: str | None = None,
    weight_is: str | None = None,
    time: str | None = None,
    until: str | float | None = None,
    sides: bool | None = None,
    nodes: Any = None,
    node_name: str | None = None,
    label: str | None = None,
    type: str | None = None,
    between: tuple[str, str] | None = None,
    graph_id: str | None = None,
    query: str | None = None,
    header: bool | None = None,
    encoding: Sequence[Mapping[str, Any]] | None = None,
) -> Graph | list[Graph]:
    """Read a graph with the names of its nodes; ``graph.reading`` says what became of the edges and columns.

    >>> graph = read_graph("email.txt")
    >>> str(graph.reading).partition(";")[0]
    '1005 nodes, 16064 edges (undirected)'

    ``graph`` is a file, whose format its suffix says: ``.parquet``, ``.npz`` (SciPy sparse, or ``edge_index [2, E]``
    with or without ``num_nodes``), ``.mtx``, ``.mat`` (MATLAB v5 to v7), ``.graphml``, ``.gml``, ``.json`` (node-link),
    and a text edge list under any other. All but Parquet may be packed (``.gz``, ``.bz2``, ``.xz``). ``-`` is a text
    edge list on standard input. It can also be a pandas, polars or Arrow table of edges, a networkx graph, a SciPy
    sparse matrix, a PyG ``Data`` (its ``x``, ``y`` and ``node_names`` are kept), or a `Graph`, which is returned. A
    list of these gives a list of graphs.

    Nodes are numbered in ascending order if all ids are integers, otherwise in the sorted order of
    their names. The rows of a matrix are named ``"0"`` to ``"N-1"``, those of an ``.mtx`` file ``"1"`` to ``"N"`` as
    written there. A graph in memory keeps its order. Names are text: ``007`` is not ``7``.

    Args:
        graph: Where the edges are.
        source: The column of the first nodes: its name, or its number from 1 on. By default the columns of the nodes
            are found by their names, or are the first two.
        target: The column of the second nodes.
        directed: Edges go from source to target.
        weight: The column of weights. ``"count"`` counts the rows of an edge. In a format that is not a table,
            and in a matrix, they are called ``"weight"``.
        weight_is: What they are. Every ``"length"`` is above 0, lengths add up along a path, and of parallel edges the
            shortest counts. Every ``"strength"`` is above 0, and strengths of parallel edges add up.
        time: The column that says when an edge was: ISO dates, dates with a time of day, or seconds since 1970.
        until: Read only edges up to this date.
        sides: Whether sources and targets are nodes of two kinds. A name that both columns have is then two nodes,
            called ``COLUMN:NAME``. By default they are if the columns have no name in common.
        nodes: A table with a row per node: a file, or a pandas, polars or Arrow table. Its nodes without an edge are
            nodes of the graph too. Columns of numbers become features with mean 0 and variance 1. Columns of text with
            at most 50 values become a feature per value.
        node_name: The column of their names. Default: the first.
        label: The column of their classes.
        type: The column of their types, for ``between``.
        between: Two types. Pairs are asked about, and predicted, from the first to the second.
        graph_id: The column that says which graph an edge is in. The result is a list of graphs.
        query: SQL whose answer is the table of edges; ``graph`` is the address of a database, such as
            ``sqlite:///shop.db``, or an open connection.
        header: Whether the first line of a text file names its columns. By default that of a ``.csv`` or ``.tsv``
            file does, unless it looks like the lines below: one of its nodes is named there again, or it has numbers
            where they have numbers. In other text it does only where the lines below have numbers and it has none.
        encoding: How columns of ``nodes`` become features, as ``graph.reading.options`` of an earlier version has it.

    Raises:
        InputError: What was found, where, and what to do.
    """
    how = ReadOptions(
        source, target, weight, weight_is, time, until, directed, sides, nodes, node_name, label, type,
        None if between is None else (between[0], between[1]), graph_id, query, header, encoding,
    )  # fmt: skip
    listed = list(graph) if isinstance(graph, (list, tuple)) else [graph]
    found = _read(listed, how)
    if sides is None and len({each.sides is None for each in found}) > 1:
        # Columns without a common name are no sign of two sides, if those of other graphs have one.
        found = _read(listed, replace(how, sides=False))
    for each in found:
        if each is not graph:
            logger.info("read %s: %s", each.reading and each.reading.origin, each.reading)
    return found if graph_id is not None or isinstance(graph, (list, tuple)) else found[0]


def _read(sources: Sequence[Source], how: ReadOptions) -> list[Graph]:
    found = []
    nodes = None if how.nodes is None else _read_nodes(how)
    for source in sources:
        if isinstance(source, Graph):
            if how.given():
                raise InputError(
                    f"{next(iter(how.given()))} goes with a file or table; a Graph has been read already"
                )
            found.append(source)
        else:
            origin, edges = _read_edges(source, how)
            found += graphs_of(edges, nodes, how, origin, alone=len(sources) == 1)
    return found


def _read_edges(source: Source, how: ReadOptions) -> tuple[str, Edges]:
    if is_url(source) or (how.query is not None and not isinstance(source, (str, os.PathLike))):
        if how.query is None:
            raise InputError(
                f"{without_secrets(source)} is a database; pass the SQL of its edges with --query"
            )
        origin = without_secrets(source) if isinstance(source, str) else "the query"
        return origin, from_memory(query_table(source, how.query), how)
    if how.query is not None:
        raise InputError(
            f"--query goes with the address of a database, such as sqlite:///shop.db; {source} is a file"
        )
    if isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        check_file(path)
        return str(path), read_edges(path, how)
    if how.header is not None:
        raise InputError(f"header goes with a text file, found {type(source).__name__}; leave it out")
    return f"the {type(source).__name__}", from_memory(source, how)


def _read_nodes(how: ReadOptions) -> Nodes:
    if is_frame(how.nodes):
        return nodes_of(frame_of_nodes(how.nodes), how)
    path = Path(how.nodes).expanduser()
    check_file(path)
    return nodes_of(read_node_table(path, how), how)


# Labels and pairs


def read_labels(path: PathLike, node_names: Sequence[str], *, header: bool | None = None) -> IntArray:
    """Read a ``node,label`` file as class codes, int64 ``[N]``; a node that is not in the file gets -1.

    Codes follow the ascending order of the labels if all are integers, otherwise their sorted order.
    ``header`` says whether the first line names the columns. By default it does if it names no node of the graph.
    """
    table = read_table(Path(path).expanduser(), node_names=node_names, how=ReadOptions(header=header))
    note_skipped(path, table, node_names)
    nodes = codes_of(table.first, node_names, table.where)
    labels = table.second.cast(pl.String)
    _, (codes,) = number(*(as_integers(labels) or [labels]))
    y = np.full(len(node_names), -1, np.int64)
    y[nodes[::-1]] = codes[::-1]  # of several labels the first stays
    conflicts = np.flatnonzero(y[nodes] != codes)
    if conflicts.size:
        row = int(conflicts[0])
        raise InputError(
            f"{table.where(row)}: node {shortened(str(table.first[row]))} has another label further up; keep one"
        )
    return y


def read_pairs(
    path: PathLike,
    *node_names: Sequence[str],
    header: bool | None = None,
    side_names: tuple[str, str] | None = None,
) -> IntArray:
    """Read a file of pairs of node names as node numbers, int64 ``[2, P]``.

    Of several graphs, given by the names of the nodes of each, numbers are those in their union, and a node is written
    ``GRAPH:NODE``, such as ``0:anna``, where two graphs have a node of that name. Both nodes are of one graph.
    ``header`` says whether the first line names the columns. By default it does if it names no node of the graph.
    Where nodes have sides, ``side_names`` are theirs: a name that both sides have is that of the column's side.
    """
    names = [name for part in node_names for name in part]
    graph = np.repeat(np.arange(len(node_names)), [len(part) for part in node_names])
    if len(set(names)) < len(names):
        names = [f"{g}:{name}" for g, name in zip(graph.tolist(), names, strict=True)]
    known = set(names)
    plain = known | {name.partition(":")[2] for name in names if side_names and name.startswith(side_names)}
    how = ReadOptions(header=header)
    table = read_table(Path(path).expanduser(), pairs=True, node_names=plain, how=how)
    note_skipped(path, table, names)
    ends = [table.first.cast(pl.String), table.second.cast(pl.String)]
    for i, title in enumerate(side_names or ()):
        titled = title + ":" + ends[i]
        ends[i] = pl.select(pl.when(titled.is_in(known)).then(titled).otherwise(ends[i])).to_series()
    pairs = np.stack([codes_of(column, names, table.where) for column in ends])
    table.refuse(pl.Series(pairs[0] == pairs[1]), "a node with itself is not a pair; name two nodes")
    table.refuse(
        pl.Series(graph[pairs[0]] != graph[pairs[1]]), "the nodes are of two graphs; name two of one"
    )
    return pairs


def header_for(path: PathLike, header: bool | None) -> bool | None:
    """The option of a command about headers, as it applies to this file: Parquet has names of its own."""
    return None if Path(path).suffix.lower() == ".parquet" else header


def codes_of(names: pl.Series, node_names: Sequence[str], where: Callable[[int], str]) -> IntArray:
    """The ids of nodes that stand in a column of a file, int64 ``[n]``."""
    names = names.cast(pl.String)
    codes_of = pl.DataFrame({"name": pl.Series(node_names, dtype=pl.String)}).with_row_index("code")
    found = names.to_frame("name").join(codes_of, on="name", how="left", maintain_order="left")
    codes = found["code"].cast(pl.Int64)
    if codes.null_count():
        row = int(codes.is_null().arg_max() or 0)
        raise InputError(f"{where(row)}: {unknown_node(str(names[row]), node_names)}")
    return codes.to_numpy()


def unknown_node(name: str, node_names: Sequence[str], graph: str = "the graph") -> str:
    """What to say about a name that no node of the graph has."""
    near = _on_a_side(name, node_names) or _nearest_names(name, node_names)
    quoted = [shortened(each) for each in near]
    listed = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    hint = f"did you mean {listed}?" if near else f"it has {len(node_names)} others"
    return f"{graph} has no node {shortened(name)}; {hint}"


def _on_a_side(name: str, node_names: Sequence[str]) -> list[str]:
    """The nodes that are called so on their sides."""
    return list(islice((each for each in node_names if each.endswith(f":{name}")), 2))


def note_skipped(path: PathLike, table: Table, node_names: Sequence[str]) -> None:
    """Say that a first line was taken for a header where one of its names is nearly that of a node."""
    for name in table.skipped:
        near = nearest_name(name, node_names)
        if near is not None:
            logger.info(
                "%s: the first line was taken for a header, as the graph has no node '%s'; "
                "if it is none, correct its names (did you mean '%s'?)",
                path,
                name,
                near,
            )
            return


def nearest_name(name: str, node_names: Sequence[str]) -> str | None:
    """A node of nearly this name, or the same in other case; of very many nodes some are looked at."""
    return next(iter(_nearest_names(name, node_names, least=0.6)), None)


def _nearest_names(name: str, node_names: Sequence[str], least: float = 0.5) -> list[str]:
    """Up to three nodes of nearly this name, nearest first, or the one that differs in case alone."""
    folded = name.casefold()
    same = next((each for each in node_names if each.casefold() == folded), None)
    if same is not None:
        return [same]
    alike = (each for each in node_names if abs(len(each) - len(name)) <= 2)
    return difflib.get_close_matches(name[:100], list(islice(alike, 50_000)), n=3, cutoff=least)
