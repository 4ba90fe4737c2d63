"""Two columns of a Parquet file."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from psgnn.errors import InputError
from psgnn.graph._bytes import decoding
from psgnn.graph._headers import Columns, named_pair, weight_column
from psgnn.graph._table import Table, asked_pair, need_rows, shortened
from psgnn.paths import check_file


def read_parquet(path: Path, edges: bool, asked: Columns | None) -> Table:
    """Read the columns of the nodes, and the weight of ``edges``."""
    check_file(path)
    with decoding(path, "Parquet"):
        schema = pl.read_parquet_schema(path)
        names = list(schema)
        if len(names) < 2:
            raise InputError(f"{path} has {len(names)} column(s); two are needed, such as source and target")
        pair = named_pair(names, edges) or (0, 1) if asked is None else asked_pair(path, names, asked)
        weight = weight_column(names, [], pair) if edges else None
        if weight is None and edges and pair == (0, 1) and len(names) > 2 and schema[names[2]].is_numeric():
            weight = 2
        columns = [names[i] for i in (*pair, weight) if i is not None]
        integers = all(schema[names[i]].is_integer() for i in pair)
        need_rows(pl.scan_parquet(path).select(pl.len()).collect().item(), integers=integers)
        frame = pl.read_parquet(path, columns=columns).select(columns)
    for name in columns[:2]:
        dtype = frame[name].dtype
        if dtype in (pl.Categorical, pl.Enum, pl.Boolean, pl.UInt64, pl.Null):
            frame = frame.with_columns(pl.col(name).cast(pl.String))
        elif dtype.is_integer():
            frame = frame.with_columns(pl.col(name).cast(pl.Int64))
        elif dtype != pl.String:
            raise InputError(f"{path}: column '{name}' holds {dtype}; store integers or strings there")
    if frame.is_empty():
        raise InputError(f"{path} has no rows")

    def where(row: int) -> str:
        return f"{path}, row {row + 1} ({shortened(', '.join(map(str, frame.row(row))))})"

    ignored = tuple(name for name in names if name not in columns)
    return Table(frame[:, 0], frame[:, 1], None if weight is None else frame[:, 2], where, ignored)
