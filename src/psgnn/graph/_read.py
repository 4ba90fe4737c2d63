"""Graphs, labels and pairs in; tables out.

What a text file may look like is told in :mod:`psgnn.graph._tables`.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._formats import read_edges
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._headers import Columns
from psgnn.graph._in_memory import PygData, from_memory
from psgnn.graph._table import Table, shortened
from psgnn.graph._tables import read_table
from psgnn.kernels._csr import bucket_edges, drop_repeats, transpose
from psgnn.paths import PathLike, check_file

if TYPE_CHECKING:
    import networkx

__all__ = [
    "Reading",
    "read_graph",
    "read_labels",
    "read_pairs",
]

WEIGHTS = ("length",)  # what a column of weights can hold
MOST_NAMED = 5  # columns that were left out

logger = logging.getLogger("psgnn")


@dataclass(frozen=True)
class Reading:
    """What was read and what became of it: ``read = edges + reciprocal + self_loops + duplicates``."""

    nodes: int
    edges: int
    read: int
    reciprocal: int
    self_loops: int
    duplicates: int
    weighted: bool
    ignored: tuple[str, ...] = ()
    length: str | None = None  # the column of lengths

    def __str__(self) -> str:
        changed = {
            "direction ignored: {} links were given both ways": self.reciprocal,
            "dropped {} self-loops": self.self_loops,
            "merged {} duplicates": self.duplicates,
        }
        parts = [f"{self.nodes} nodes, {self.edges} edges (undirected)"]
        parts += [text.format(count) for text, count in changed.items() if count]
        parts += ["ignored the weights, distances are hops"] if self.weighted else []
        parts += [f"distances are sums of '{self.length}'"] if self.length else []
        if self.ignored:
            more = ", ..." if len(self.ignored) > MOST_NAMED else ""
            parts.append(f"left out {', '.join(self.ignored[:MOST_NAMED])}{more}")
        return "; ".join(parts)


# Graphs


def read_graph(
    source: PathLike | Graph | networkx.Graph | scipy.sparse.sparray | scipy.sparse.spmatrix | PygData,
    columns: Columns | None = None,
    header: bool | None = None,
    *,
    weight: str | None = None,
    weight_is: str | None = None,
) -> Graph:
    """Read an undirected graph with the names of its nodes; ``graph.reading`` says what became of the edges.

    >>> graph = read_graph("email.txt")
    >>> str(graph.reading)
    '1005 nodes, 16064 edges (undirected); direction ignored: 8865 links were given both ways; dropped 642 self-loops'

    ``source`` is a `Graph`, which is returned, a pandas, polars or Arrow table of edges, a networkx graph, a SciPy
    sparse matrix, a PyG ``Data`` (its ``x``, ``y`` and ``node_names`` are kept), or a file, which its suffix says:
    ``.parquet``, ``.npz`` (SciPy sparse, or ``edge_index [2, E]`` with or without ``num_nodes``), ``.mtx``,
    ``.mat`` (MATLAB v5 to v7), ``.graphml``, ``.gml``, ``.json`` (node-link), and a text edge list under any other. All
    but Parquet may be packed (``.gz``, ``.bz2``, ``.xz``). ``-`` is a text edge list on standard input.

    Nodes are numbered in ascending order if all ids are integers, otherwise in the sorted order of
    their names. The rows of a matrix are named ``"0"`` to ``"N-1"``, those of an ``.mtx`` file ``"1"`` to ``"N"`` as
    written there. A graph in memory keeps its order.

    ``weight`` names a column of a table or file, and ``weight_is="length"`` says that it holds lengths, such as
    kilometres. Then `shortest_distances` adds up lengths; of parallel edges the shortest counts. Models and rules
    measure hops all the same. Weights that are not named are checked and then ignored.

    ``columns`` are the two columns of a table, text or Parquet file that hold the nodes: their names in the header, or
    their numbers from 1 on. By default they are found by their names, or are the first two.

    ``header`` says whether the first line of a text file names its columns. By default that of a ``.csv`` or ``.tsv``
    file does, unless it looks like the lines below: one of its nodes is named there again, or it has numbers where
    they have numbers. In other text it does only where the lines below have numbers and it has none.
    """
    _check_weight(weight, weight_is)
    if isinstance(source, Graph):
        if weight is not None:
            raise InputError("weight names a column of a file or table; a Graph has its lengths already")
        return source
    if isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        check_file(path)
        origin, edges = str(path), read_edges(path, columns, header, weight)
    elif header is not None:
        raise InputError(f"header goes with a text file, found {type(source).__name__}; leave it out")
    else:
        origin, edges = f"the {type(source).__name__}", from_memory(source, columns, weight)
    adjacency = Adjacency.from_edges(edges.rows, edges.cols, len(edges.names))
    if adjacency.num_edges == 0:
        raise InputError(f"{origin} has no edges between different nodes; at least one is needed")
    reading = replace(_count(edges, adjacency), length=weight)
    logger.info("read %s: %s", origin, reading)
    lengths = None if edges.weight is None else _shortest_of_parallel(edges, edges.weight)
    return Graph(adjacency, edges.names, reading=reading, lengths=lengths, **edges.attributes)


def _check_weight(weight: str | None, weight_is: str | None) -> None:
    """Weights are not guessed at: who names a column says what it holds."""
    if weight is None and weight_is is None:
        return
    if weight is None:
        raise InputError("--weight-is goes with --weight COLUMN; name the column")
    if weight_is not in WEIGHTS:
        found = "nothing" if weight_is is None else f"'{weight_is}'"
        raise InputError(
            f"--weight-is says what the weights are; it takes {', '.join(WEIGHTS)}, found {found}"
        )


def _shortest_of_parallel(edges: Edges, lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The length of every edge in the order of `Graph.edges`."""
    low, high = np.minimum(edges.rows, edges.cols), np.maximum(edges.rows, edges.cols)
    order = np.lexsort((lengths, high, low))
    order = order[low[order] < high[order]]  # self-loops are gone
    first = np.ones(order.size, np.bool_)
    first[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    return np.asarray(lengths[order[first]])


def _count(edges: Edges, adjacency: Adjacency) -> Reading:
    self_loops = int(np.count_nonzero(edges.rows == edges.cols))
    arcs = distinct = edges.rows.size - self_loops
    if arcs > adjacency.num_edges:
        distinct = drop_repeats(*transpose(*bucket_edges(edges.rows, edges.cols, adjacency.num_nodes)))[
            1
        ].size
    return Reading(
        nodes=adjacency.num_nodes,
        edges=adjacency.num_edges,
        read=edges.rows.size,
        reciprocal=distinct - adjacency.num_edges,
        self_loops=self_loops,
        duplicates=arcs - distinct,
        weighted=edges.weighted,
        ignored=edges.ignored,
    )


# Labels and pairs


def read_labels(path: PathLike, node_names: Sequence[str], *, header: bool | None = None) -> IntArray:
    """Read a ``node,label`` file as class codes, int64 ``[N]``; a node that is not in the file gets -1.

    Codes follow the ascending order of the labels if all are integers, otherwise their sorted order.
    ``header`` says whether the first line names the columns. By default it does if it names no node of the graph.
    """
    table = read_table(Path(path).expanduser(), node_names=node_names, header=header)
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


def read_pairs(path: PathLike, *node_names: Sequence[str], header: bool | None = None) -> IntArray:
    """Read a file of pairs of node names as node numbers, int64 ``[2, P]``.

    Of several graphs, given by the names of the nodes of each, numbers are those in their union, and a node is written
    ``GRAPH:NODE``, such as ``0:anna``, where two graphs have a node of that name. Both nodes are of one graph.
    ``header`` says whether the first line names the columns. By default it does if it names no node of the graph.
    """
    names = [name for part in node_names for name in part]
    graph = np.repeat(np.arange(len(node_names)), [len(part) for part in node_names])
    if len(set(names)) < len(names):
        names = [f"{g}:{name}" for g, name in zip(graph.tolist(), names, strict=True)]
    table = read_table(Path(path).expanduser(), pairs=True, node_names=names, header=header)
    note_skipped(path, table, names)
    pairs = np.stack([codes_of(column, names, table.where) for column in (table.first, table.second)])
    table.refuse(pl.Series(pairs[0] == pairs[1]), "a node with itself is no pair; name two nodes")
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
    near = nearest_name(name, node_names)
    hint = f"did you mean {shortened(near)}?" if near else f"it has {len(node_names)} others"
    return f"{graph} has no node {shortened(name)}; {hint}"


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
    """A node of nearly this name; of very many nodes some are looked at."""
    alike = (each for each in node_names if abs(len(each) - len(name)) <= 2)
    near = difflib.get_close_matches(name[:100], list(islice(alike, 50_000)), n=1)
    return near[0] if near else None
