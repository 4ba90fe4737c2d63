"""Reads columns of a Parquet file in a process of its own; `psgnn.graph._parquet` starts it as a script.

On some damaged files polars ends the process, for no one can catch its failure to allocate memory. This one may end.
It answers with one line of JSON per step: the columns and first rows, then what became of the chosen columns. These
follow as an Arrow stream.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import polars as pl

# Categories, and integers that 64 bits may not hold: their text is the name.
AS_TEXT = (pl.Categorical, pl.Enum, pl.Boolean, pl.UInt64, pl.Int128, pl.Null)


def _columns(path: str, sample: int) -> dict[str, Any]:
    schema = pl.read_parquet_schema(path)
    scan = pl.scan_parquet(path)
    rows = scan.head(sample).collect().rows() if len(schema) > 2 else []
    return {
        "names": list(schema),
        "numeric": [dtype.is_numeric() for dtype in schema.values()],
        "integers": [dtype.is_integer() for dtype in schema.values()],
        "sample": [[str(value)[:100] for value in row] for row in rows],
        "rows": scan.select(pl.len()).collect().item(),
    }


def _read(path: str, asked: dict[str, Any]) -> dict[str, Any] | pl.DataFrame:
    frame = pl.read_parquet(path, columns=asked["columns"]).select(asked["columns"])
    found = []
    for i, column in enumerate(frame.iter_columns()):
        dtype = column.dtype
        text = dtype in AS_TEXT or dtype == pl.String
        if i < asked["nodes"] and not (text or dtype.is_integer()):
            return {"wrong": f"column '{column.name}' holds {dtype}; store integers or strings there"}
        if not (text or dtype.is_numeric() or dtype in (pl.Date, pl.Datetime)):
            return {"wrong": f"column '{column.name}' holds {dtype}; store numbers, dates or strings there"}
        if text:
            column = column.cast(pl.String)
        elif dtype.is_numeric():
            column = column.cast(pl.Int64 if dtype.is_integer() else pl.Float64)
        found.append(column.rename(str(i)))
    return pl.DataFrame(found)


def _answer(step: Any, *arguments: Any) -> None:
    try:
        answer = step(*arguments)
    except (Exception, pl.exceptions.PanicException) as error:
        answer = {"error": " ".join(str(error).split())[:160] or type(error).__name__}
    frame = answer if isinstance(answer, pl.DataFrame) else None
    sys.stdout.buffer.write(json.dumps(answer if frame is None else {"rows": frame.height}).encode() + b"\n")
    if frame is not None:
        frame.write_ipc_stream(sys.stdout.buffer, compression="uncompressed")
    sys.stdout.flush()


if __name__ == "__main__":
    path, sample = sys.argv[1:]
    _answer(_columns, path, int(sample))
    asked = sys.stdin.readline()
    if asked:
        _answer(_read, path, json.loads(asked))
