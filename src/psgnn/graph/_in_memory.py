"""Graphs of other libraries: tables, networkx graphs, SciPy sparse matrices, PyG data."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError, MissingExtraError
from psgnn.graph._edges import Edges, edges_of
from psgnn.graph._graph import Graph, check_names, list_names, pyg_num_nodes, to_numpy
from psgnn.graph._headers import first_pair, ignored_columns, named_pair
from psgnn.graph._matrices import from_edge_index, from_matrix
from psgnn.graph._node_table import NodeTable
from psgnn.graph._options import COUNT, ReadOptions, refuse_columns
from psgnn.graph._records import SAMPLE_RECORDS
from psgnn.graph._table import Table, asked_columns, asked_pair, no_column
from psgnn.graph._times import seconds_of

if TYPE_CHECKING:
    import networkx

PygData: TypeAlias = Any  # torch_geometric.data.Data, which the core does not import


def from_memory(source: Any, how: ReadOptions) -> Edges:
    """Read a table, a networkx graph, a SciPy sparse matrix or a PyG ``Data``."""
    if is_frame(source):
        return edges_of(_edge_table(source, how), how)
    origin = f"the {type(source).__name__}"
    if hasattr(source, "edge_index"):
        refuse_columns(origin, how)
        return _from_data(source)
    if scipy.sparse.issparse(source):
        refuse_columns(origin, how)
        return from_matrix(source, origin)
    nx = sys.modules.get("networkx")  # whoever holds one of its graphs has imported it
    if nx is not None and isinstance(source, nx.Graph):
        refuse_columns(origin, how, attributes=True)
        return _from_networkx(source, how)
    raise InputError(
        f"cannot read a graph from {type(source).__name__}; pass a path, a table, a networkx graph, "
        "a SciPy sparse matrix or a PyG Data"
    )


def is_frame(source: Any) -> bool:
    """Whether this is a table of pandas, polars or Arrow."""
    return hasattr(source, "columns") and hasattr(source, "shape")


def _edge_table(frame: Any, how: ReadOptions) -> Table:
    """A table of pandas, polars or Arrow: one row per edge."""
    names, below = _names(frame), _first_rows(frame)
    if len(names) < 2:
        raise InputError(f"the table has {len(names)} column(s); two are needed, such as source and target")
    if how.columns is not None:
        pair = asked_pair("the table", names, how.columns)
    else:
        pair = named_pair(names, edges=True) or first_pair(names, below)
    first, second = (_filled_column(frame, names, i) for i in pair)
    more = asked_columns("the table", names, how, pair)
    ignored = ignored_columns(names, below, (*pair, *more.values()))
    found = {role: _column(frame, i) for role, i in more.items()}
    for i, column in zip((*pair, *more.values()), (first, second, *found.values()), strict=True):
        if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):  # such as bytes in a database
            raise InputError(
                f"the column '{names[i]}' holds {column.dtype}; store numbers, dates or strings there"
            )
    titles = (names[pair[0]], names[pair[1]])
    return Table(first, second, _row_of_table, found, titles, ignored, typed=True)


def frame_of_nodes(frame: Any) -> NodeTable:
    """A table of pandas, polars or Arrow: one row per node."""
    columns = {name: _column(frame, i) for i, name in enumerate(_names(frame))}
    if not columns or not len(next(iter(columns.values()))):
        raise InputError("the table of nodes is empty; give it a row per node")
    return NodeTable(columns, _row_of_table, "the table of nodes")


def _row_of_table(row: int) -> str:
    return f"row {row} of the table"


def _names(frame: Any) -> list[str]:
    """The names of the columns; those of an Arrow table are apart from its arrays."""
    return [str(name) for name in (getattr(frame, "column_names", None) or frame.columns)]


def named_pairs(frame: Any) -> list[tuple[str, str]]:
    """The pairs of names in two columns of a table: ``source`` and ``target`` or the like, or the first two."""
    names = _names(frame)
    if len(names) < 2:
        raise InputError(f"a table of pairs needs two columns, found {', '.join(names) or 'none'}")
    pair = named_pair(names, edges=True) or first_pair(names, _first_rows(frame))
    ends = (_filled_column(frame, names, i).cast(pl.String).to_list() for i in pair)
    return list(zip(*ends, strict=True))


def _filled_column(frame: Any, names: Sequence[str], i: int) -> pl.Series:
    """A column of a table, in which no row may be empty."""
    found = _column(frame, i).alias(names[i])
    empty = found.is_null() | (found.is_nan() if found.dtype.is_float() else False)
    if empty.any():
        raise InputError(f"the column '{names[i]}' is empty in row {empty.arg_max()}; name both nodes")
    return found


def _column(frame: Any, i: int) -> pl.Series:
    column = frame.column(i) if hasattr(frame, "column_names") else frame[frame.columns[i]]
    values = np.asarray(column)
    if values.dtype.kind == "M":  # moments, whose unit a list of numbers would lose
        return pl.Series(values.astype("datetime64[us]"))
    return pl.Series(values.tolist(), strict=False)


def _first_rows(frame: Any) -> list[list[str]]:
    """The first rows, as text."""
    columns = [_column(frame[:SAMPLE_RECORDS], i).to_list() for i in range(len(_names(frame)))]
    return [["" if value is None else str(value) for value in row] for row in zip(*columns, strict=True)]


def _from_networkx(graph: networkx.Graph, how: ReadOptions) -> Edges:
    names = [str(node) for node in graph]
    check_names(names, len(graph))
    edges = list(graph.edges(data="weight"))
    for u, v, weight in edges:
        if weight is not None and not (isinstance(weight, (int, float, np.number)) and math.isfinite(weight)):
            raise InputError(f"edge ({u}, {v}) has the weight {weight!r}, not a finite number; correct it")
    code = {node: i for i, node in enumerate(graph)}
    rows = np.fromiter((code[u] for u, _, _ in edges), np.int64, len(edges))
    cols = np.fromiter((code[v] for _, v, _ in edges), np.int64, len(edges))
    labels = [node.get("y", node.get("label")) for _, node in graph.nodes(data=True)]
    labelled = bool(labels) and all(isinstance(label, (int, np.integer)) for label in labels)
    keys = {str(key): None for _, node in graph.nodes(data=True) for key in node}  # in their order
    used = {"y" if any("y" in node for _, node in graph.nodes(data=True)) else "label"} if labelled else set()
    return Edges(
        rows,
        cols,
        names,
        weighted=any(weight is not None for _, _, weight in edges),
        weight=None
        if how.weight in (None, COUNT)
        else _of_edges(graph, how.weight).cast(pl.Float64, strict=False).to_numpy(),
        times=None if how.time is None else seconds_of(_of_edges(graph, how.time), _refuse_edge),
        directed=graph.is_directed(),
        ignored=tuple(f"node attribute {key}" for key in keys if key not in used),
        attributes={"y": np.array(labels)} if labelled else {},
    )


def _of_edges(graph: networkx.Graph, name: str) -> pl.Series:
    """An attribute of every edge."""
    values = [value for _, _, value in graph.edges(data=name)]
    if all(value is None for value in values):
        raise no_column(
            "the graph", name, sorted({str(key) for *_, data in graph.edges(data=True) for key in data})
        )
    return pl.Series(values, strict=False)


def _refuse_edge(bad: pl.Series, reason: str) -> None:
    if bad.any():
        raise InputError(f"edge {bad.arg_max()} of the graph: {reason}")


def _from_data(data: PygData) -> Edges:
    if data.edge_index is None:
        raise InputError("the Data has no edge_index; at least one edge is needed")
    edges = from_edge_index(to_numpy(data.edge_index), pyg_num_nodes(data), "the Data")
    weight = data.get("edge_weight")
    values = np.zeros(0) if weight is None else to_numpy(weight)
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InputError("the Data has an edge_weight that is not a finite number; correct or remove it")
    names = edges.names
    if data.get("node_names") is not None:
        names = list_names(data.node_names, len(edges.names))
    attributes = {key: to_numpy(data[key]) for key in ("x", "y") if data.get(key) is not None}
    known = None if weight is None else values.reshape(-1).astype(np.float64)
    return replace(edges, names=names, weighted=weight is not None, weight=known, attributes=attributes)


# To other libraries


def to_pyg(graph: Graph) -> PygData:
    """`Graph.to_pyg`."""
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError:
        raise MissingExtraError("torch_geometric", "train", "to_pyg") from None
    arrays = {"x": graph.x, "y": graph.y, **graph.split}
    tensors = {key: torch.tensor(value) for key, value in arrays.items() if value is not None}
    edges, columns = graph.edges, graph.edge_columns
    if not graph.directed:
        edges = np.concatenate([edges, edges[::-1]], axis=1) if columns else graph.adjacency.edge_index()
    for name, column in columns.items():
        tensors[f"edge_{name}"] = torch.tensor(column if graph.directed else np.tile(column, 2))
    edge_index = torch.tensor(edges)
    return Data(edge_index=edge_index, num_nodes=graph.num_nodes, node_names=[*graph.names], **tensors)


def to_networkx(graph: Graph) -> networkx.Graph:
    """`Graph.to_networkx`."""
    try:
        import networkx
    except ImportError:
        raise MissingExtraError("networkx", "networkx", "to_networkx") from None
    found = networkx.DiGraph() if graph.directed else networkx.Graph()
    found.add_nodes_from(graph.names)
    for row in graph.to_polars().iter_rows(named=True):
        found.add_edge(row.pop("source"), row.pop("target"), **row)
    for key, column in (("y", graph.y), ("side", graph.sides)):
        if column is not None:
            networkx.set_node_attributes(found, dict(zip(graph.names, column.tolist(), strict=True)), key)
    return found


def to_scipy(graph: Graph) -> scipy.sparse.csr_array:
    """`Graph.to_scipy`."""
    values = graph.strengths if graph.strengths is not None else graph.lengths
    if graph.directed or values is not None:
        entries = np.ones(graph.num_edges, np.float32) if values is None else values
        shape = (graph.num_nodes, graph.num_nodes)
        found = scipy.sparse.csr_array((entries, tuple(graph.edges)), shape=shape)
        return found if graph.directed else scipy.sparse.csr_array(found + found.T)
    ones = np.ones(graph.adjacency.indices.size, np.float32)
    parts = ones, graph.adjacency.indices, graph.adjacency.indptr
    # A copy, since methods of SciPy such as eliminate_zeros write into these arrays.
    return scipy.sparse.csr_array(parts, shape=(graph.num_nodes, graph.num_nodes), copy=True)
