"""Embeddings and scored pairs out, with the names of the nodes, for pandas, polars, NumPy and vector indexes.

====================  ==========================================================================================
``.parquet``          embeddings: ``node`` and one column ``embedding``, a fixed-size list of float32, the vector
                      column of LanceDB, DuckDB and Milvus; ``polars_frame["embedding"].to_numpy()`` and
                      ``np.stack(pandas_frame["embedding"])`` are ``[N, d]``
``.csv``, ``.tsv``    embeddings: ``node`` and the columns ``d0``, ``d1``, ...
``.npz``              embeddings: ``names`` (unicode) and ``embeddings``, float32 ``[N, d]``, contiguous, as FAISS and
                      hnswlib take it; no pickle
====================  ==========================================================================================

Pairs have the columns of `psgnn.predict` in every format. Of several graphs, a column ``graph`` says which: 0, 1, ...
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._graph import to_numpy
from psgnn.paths import PathLike, atomic_write, check_output, unfinished_parts

log = logging.getLogger("psgnn")
FORMULA = r"^\s*[=+\-@]"
MOST_NAME_BYTES = 2**31  # in .npz, where every name takes as much as the longest


def write_embeddings(
    path: PathLike,
    names: Sequence[Sequence[str]],
    embeddings: npt.ArrayLike,
    *,
    force: bool = False,
    spreadsheet: bool = False,
) -> None:
    """Write embeddings ``[N, d]`` of the nodes of some graphs, one after another, by their names in each graph."""
    h = np.ascontiguousarray(to_numpy(embeddings), np.float32)
    count = sum(map(len, names))
    if h.ndim != 2 or h.shape[0] != count:
        raise InputError(f"{count} nodes need embeddings [{count}, d], found {list(h.shape)}")
    check_output(path, force=force)
    graph = _graph_column(names, np.arange(count))
    nodes = [name for part in names for name in part]
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        write_frame(
            path,
            {"names": _unicode(nodes, path), **graph, "embeddings": h},
            force=force,
            spreadsheet=spreadsheet,
        )
        return
    named = {"node": pl.Series(nodes, dtype=pl.String), **graph}
    if suffix == ".parquet":
        vectors = pl.Series(h, dtype=pl.Array(pl.Float32, h.shape[1]))
        write_frame(path, pl.DataFrame({**named, "embedding": vectors}), force=force, spreadsheet=spreadsheet)
        return
    columns = {f"d{i}": column for i, column in enumerate(h.T)}
    write_frame(path, pl.DataFrame({**named, **columns}), force=force, spreadsheet=spreadsheet)


def write_pairs(
    path: PathLike, pairs: pl.DataFrame, *, force: bool = False, spreadsheet: bool = False
) -> None:
    """Write a table of names and numbers, such as that of `psgnn.predict`."""
    check_output(path, force=force)
    if Path(path).suffix.lower() != ".npz":
        write_frame(path, pairs, force=force, spreadsheet=spreadsheet)
        return
    arrays = {
        column.name: _unicode(column.to_list(), path) if column.dtype == pl.String else column.to_numpy()
        for column in pairs
    }
    write_frame(path, arrays, force=force, spreadsheet=spreadsheet)


def write_pair_blocks(
    path: PathLike, blocks: Iterable[pl.DataFrame], *, force: bool = False, spreadsheet: bool = False
) -> int:
    """Write tables of predicted pairs as one, each as it comes; return the number of pairs.

    Only `.npz` holds all of them in memory.
    """
    check_output(path, force=force)
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        whole = pl.concat(blocks)
        write_pairs(path, whole, force=force)
        return whole.height
    count = formulas = 0
    with ExitStack() as stack:
        target = stack.enter_context(atomic_write(path, force=force))
        parts = stack.enter_context(unfinished_parts(target))
        for i, block in enumerate(blocks):
            count += block.height
            if suffix == ".parquet":
                block.write_parquet(parts / f"{i:08}.parquet")
                continue
            with target.open("ab") as file:
                formulas += _write_csv(file, block, suffix, spreadsheet, header=i == 0)
        if suffix == ".parquet":
            pl.scan_parquet(parts / "*.parquet").sink_parquet(target)
    _note_formulas(path, formulas)
    return count


def _graph_column(names: Sequence[Sequence[str]], nodes: npt.NDArray[Any]) -> Mapping[str, Any]:
    """The graph of each node, where there are several."""
    if len(names) == 1:
        return {}
    return {"graph": np.repeat(np.arange(len(names)), [len(part) for part in names])[nodes]}


def _unicode(names: Sequence[str], path: PathLike) -> npt.NDArray[np.str_]:
    longest = max(map(len, names), default=0)
    if 4 * longest * len(names) > MOST_NAME_BYTES:
        raise InputError(
            f"cannot write {path}: a name has {longest} letters, too long for .npz; use .parquet"
        )
    return np.array(names, dtype=np.str_)


def write_table(
    path: PathLike, columns: Mapping[str, Any], *, force: bool = False, spreadsheet: bool = False
) -> None:
    """Write columns of one length to ``.csv``, ``.tsv``, ``.parquet`` or ``.npz``, atomically.

    A column is a list or an array ``[N]``. An array ``[N, d]`` becomes the columns ``name_0`` to
    ``name_{d-1}``; in ``.npz`` it stays whole.
    """
    check_output(path, force=force)
    suffix = Path(path).suffix.lower()
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    if len({len(array) for array in arrays.values()}) != 1:
        found = ", ".join(f"{len(array)} in {name}" for name, array in arrays.items())
        raise InputError(f"a table needs columns of one length, found {found or 'no columns'}")
    for name, array in arrays.items():
        if array.dtype == object:  # NumPy would pickle it
            raise InputError(f"column '{name}' mixes types; pass numbers or strings")
    write_frame(path, arrays if suffix == ".npz" else _frame(arrays), force=force, spreadsheet=spreadsheet)


def write_frame(
    path: PathLike,
    content: pl.DataFrame | Mapping[str, Any],
    *,
    force: bool = False,
    spreadsheet: bool = False,
) -> None:
    """Write a frame as its suffix says, or arrays to ``.npz``, atomically.

    With ``spreadsheet`` names in text files that a spreadsheet would run as formulas begin with an apostrophe.
    """
    with atomic_write(path, force=force) as temporary, temporary.open("wb") as file:
        if not isinstance(content, pl.DataFrame):
            np.savez(file, **content)
        elif Path(path).suffix.lower() == ".parquet":
            content.write_parquet(file)
        else:
            _note_formulas(path, _write_csv(file, content, Path(path).suffix.lower(), spreadsheet))


def _write_csv(
    file: IO[bytes], content: pl.DataFrame, suffix: str, spreadsheet: bool, *, header: bool = True
) -> int:
    """Write text; return the number of names that look like formulas and stand there as they are."""
    text = pl.col(pl.String)
    if spreadsheet:
        content = content.with_columns(text.str.replace(FORMULA, "'$0"))
    formulas = content.select(text.str.contains(FORMULA).sum())
    # Unquoted, a name that starts with '#' or '%' would be read as a comment.
    texts = (column for column in content if column.dtype == pl.String)
    comment_like = any(column.str.contains("^[#%]").any() for column in texts)
    content.write_csv(
        file,
        include_header=header,
        separator="," if suffix == ".csv" else "\t",
        quote_style="non_numeric" if comment_like else "necessary",
    )
    return sum(map(int, formulas.row(0) if formulas.width else ()))


def _note_formulas(path: PathLike, count: int) -> None:
    if count:
        log.info(
            "%s: %d names begin with =, +, - or @, which a spreadsheet may run as formulas; --spreadsheet quotes them",
            path,
            count,
        )


def _frame(arrays: Mapping[str, Any]) -> pl.DataFrame:
    flat = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            flat[name] = array
        else:
            flat |= {f"{name}_{i}": column for i, column in enumerate(array.T)}
    return pl.DataFrame(flat)
