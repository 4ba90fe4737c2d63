"""Graphs of other libraries: tables, networkx graphs, SciPy sparse matrices, PyG data."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy  # its parts load when they are used

from psgnn.errors import InputError
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._graph import check_names, list_names, pyg_num_nodes, to_numpy
from psgnn.graph._headers import Columns, chosen_pair, first_pair, named_pair
from psgnn.graph._matrices import from_edge_index, from_matrix
from psgnn.graph._records import SAMPLE_RECORDS
from psgnn.graph._table import asked_weight

if TYPE_CHECKING:
    import networkx

PygData: TypeAlias = Any  # torch_geometric.data.Data, which the core does not import


def from_memory(source: Any, columns: Columns | None, weight: str | None = None) -> Edges:
    """Read a table, a networkx graph, a SciPy sparse matrix or a PyG ``Data``; ``weight`` is a column of a table."""
    if hasattr(source, "columns") and hasattr(source, "shape"):
        return _from_frame(source, columns, weight)
    if weight is not None:
        raise InputError(
            f"weights can be named in tables and files of edges, not in a {type(source).__name__}"
        )
    if hasattr(source, "edge_index"):
        return _from_data(source)
    if scipy.sparse.issparse(source):
        return from_matrix(source, f"the {type(source).__name__}")
    nx = sys.modules.get("networkx")  # whoever holds one of its graphs has imported it
    if nx is not None and isinstance(source, nx.Graph):
        return _from_networkx(source)
    raise InputError(
        f"cannot read a graph from {type(source).__name__}; pass a path, a table, a networkx graph, "
        "a SciPy sparse matrix or a PyG Data"
    )


def _from_frame(frame: Any, columns: Columns | None, weight: str | None) -> Edges:
    """A table of pandas, polars or Arrow: one row per edge."""
    # The columns of an Arrow table are arrays; their names are apart.
    names = [str(name) for name in (getattr(frame, "column_names", None) or frame.columns)]
    below = _first_rows(frame, len(names))
    pair = (chosen_pair(names, columns) if columns else named_pair(names, edges=True)) or first_pair(
        names, below
    )
    if len(names) < 2 or (columns and chosen_pair(names, columns) is None):
        asked = f" {columns[0]} and {columns[1]}" if columns else " two"
        raise InputError(f"the table has no columns{asked}; it has {', '.join(names) or 'none'}")
    ends = [_filled_column(frame, names, i) for i in pair]
    ids = as_integers(*ends) if all(column.dtype.is_integer() for column in ends) else None
    if ids is not None and any((column < 0).any() for column in ids):
        raise InputError("a node id is negative; use integers from 0 up, or names")
    labels, (rows, cols) = number(*(ids or [column.cast(pl.String) for column in ends]))
    place = asked_weight("the table", names, weight, pair)
    rest = tuple(name for i, name in enumerate(names) if i not in (*pair, place))
    return Edges(
        rows, cols, labels, ignored=rest, weight=None if place is None else _lengths(frame, names, place)
    )


def _lengths(frame: Any, names: Sequence[str], i: int) -> npt.NDArray[np.float64]:
    """A column of lengths, which are all finite and above 0."""
    found = pl.Series(np.asarray(_column(frame, i)).tolist(), strict=False).cast(pl.Float64, strict=False)
    wrong = ~(found.is_finite() & (found > 0)).fill_null(False)
    if wrong.any():
        raise InputError(
            f"the column '{names[i]}' has no length above 0 in row {wrong.arg_max()}; correct or remove it"
        )
    return found.to_numpy()


def named_pairs(frame: Any) -> list[tuple[str, str]]:
    """The pairs of names in two columns of a table: ``source`` and ``target`` or the like, or the first two."""
    names = [str(name) for name in (getattr(frame, "column_names", None) or frame.columns)]
    if len(names) < 2:
        raise InputError(f"a table of pairs needs two columns, found {', '.join(names) or 'none'}")
    pair = named_pair(names, edges=True) or first_pair(names, _first_rows(frame, len(names)))
    ends = (_filled_column(frame, names, i).cast(pl.String).to_list() for i in pair)
    return list(zip(*ends, strict=True))


def _filled_column(frame: Any, names: Sequence[str], i: int) -> pl.Series:
    """A column of a table, in which no row may be empty."""
    found = pl.Series(names[i], np.asarray(_column(frame, i)).tolist(), strict=False)
    empty = found.is_null() | (found.is_nan() if found.dtype.is_float() else False)
    if empty.any():
        raise InputError(f"the column '{names[i]}' is empty in row {empty.arg_max()}; name both nodes")
    return found


def _column(frame: Any, i: int) -> Any:
    return frame.column(i) if hasattr(frame, "column_names") else frame[frame.columns[i]]


def _first_rows(frame: Any, num_columns: int) -> list[list[str]]:
    """The first three columns of the first rows, as text."""
    columns = [np.asarray(_column(frame, i)[:SAMPLE_RECORDS]).tolist() for i in range(min(3, num_columns))]
    return [[str(value) for value in row] for row in zip(*columns, strict=True)]


def _from_networkx(graph: networkx.Graph) -> Edges:
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
        ignored=tuple(f"node attribute {key}" for key in keys if key not in used),
        attributes={"y": np.array(labels)} if labelled else {},
    )


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
    return Edges(edges.rows, edges.cols, names, weighted=weight is not None, attributes=attributes)
