"""Reads two or three columns of a Parquet file in a process of its own; `psgnn.graph._parquet` starts it as a script.

On some damaged files polars ends the process, for no one can catch its failure to allocate memory. This one may end.
It answers with one line of JSON per step: the columns and first rows, then what became of the chosen columns.
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
    rows = scan.select(list(schema)[:3]).head(sample).collect().rows() if len(schema) > 2 else []
    return {
        "names": list(schema),
        "numeric": [dtype.is_numeric() for dtype in schema.values()],
        "integers": [dtype.is_integer() for dtype in schema.values()],
        "sample": [[str(value)[:100] for value in row] for row in rows],
        "rows": scan.select(pl.len()).collect().item(),
    }


def _read(path: str, columns: list[str], out: str) -> dict[str, Any]:
    frame = pl.read_parquet(path, columns=columns).select(columns)
    found = []
    for i, column in enumerate(frame.iter_columns()):
        dtype = column.dtype
        if i < 2 and not (dtype in AS_TEXT or dtype.is_integer() or dtype == pl.String):
            return {"wrong": f"column '{column.name}' holds {dtype}; store integers or strings there"}
        if i == 2 and not (dtype.is_numeric() or dtype in (*AS_TEXT, pl.String)):
            return {"wrong": f"the weight '{column.name}' holds {dtype}; store numbers there"}
        text = dtype in AS_TEXT or dtype == pl.String
        number = pl.Int64 if i < 2 else pl.Float64
        found.append(column.cast(pl.String if text else number).rename(str(i)))
    pl.DataFrame(found).write_ipc(out, compression="uncompressed")
    return {"done": True}


def _answer(step: Any, *arguments: Any) -> None:
    try:
        answer = step(*arguments)
    except (Exception, pl.exceptions.PanicException) as error:
        answer = {"error": " ".join(str(error).split())[:160] or type(error).__name__}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    path, out, sample = sys.argv[1:]
    _answer(_columns, path, int(sample))
    asked = sys.stdin.readline()
    if asked:
        _answer(_read, path, json.loads(asked), out)
