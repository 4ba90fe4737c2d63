"""Whole graphs from files: every format becomes ``Edges`` over numbered nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from psgnn.errors import InputError
from psgnn.graph._bytes import base_name
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._gml import read_gml
from psgnn.graph._graphml import read_graphml
from psgnn.graph._headers import Columns
from psgnn.graph._matrices import read_mat, read_mtx, read_npz
from psgnn.graph._nodelink import read_nodelink
from psgnn.graph._tables import read_table


def read_edges(
    path: Path, columns: Columns | None = None, header: bool | None = None, weight: str | None = None
) -> Edges:
    """Read a file in the format of its suffix; an unknown suffix is taken for a text edge list.

    ``columns`` of a text or Parquet edge list hold the nodes, and ``weight`` is the column of the weights;
    ``header`` says whether a text one has a header.
    """
    suffix = Path(base_name(path)).suffix
    readers: dict[str, Callable[[Path], Edges]] = {
        ".npz": read_npz,
        ".mat": read_mat,
        ".mtx": read_mtx,
        ".graphml": read_graphml,
        ".gml": read_gml,
        ".json": read_nodelink,
    }
    if suffix not in readers:
        return _read_edge_table(path, columns, header, weight)
    if columns is not None or weight is not None:
        raise InputError(f"{path} is no table of edges; columns can be named in text and Parquet alone")
    if header is not None:
        raise InputError(f"{path} is no table of edges; --header and --no-header go with text files")
    return readers[suffix](path)


def _read_edge_table(path: Path, columns: Columns | None, header: bool | None, weight: str | None) -> Edges:
    table = read_table(path, edges=True, columns=columns, header=header, weight=weight)
    weights = table.weights()
    ends = [table.first, table.second]
    ids = as_integers(*ends)
    if ids is not None:
        for column in ids:
            table.refuse(column < 0, "a node id is negative; use integers from 0 up, or names")
    else:
        ids = [column.cast(pl.String) for column in ends]
        if all(column.cast(pl.Float64, strict=False).null_count() == 0 for column in ids):
            for column in ids:
                refused = ~column.str.contains("^[0-9]+$")
                table.refuse(refused, "a node id is no integer from 0 up; use such integers, or names")
    names, (rows, cols) = number(*ids)
    if weights is not None and weight is not None:
        table.refuse(weights <= 0, "the length is not above 0; correct or remove it")
        return Edges(rows, cols, names, ignored=table.ignored, weight=weights.to_numpy())
    return Edges(rows, cols, names, weighted=weights is not None, ignored=table.ignored)
