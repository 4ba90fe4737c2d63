"""Edges over numbered nodes, which every format becomes, and the numbering of names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._graph import MAX_NODES, IntArray
from psgnn.kernels._text import factorize_keys
from psgnn.memory import need_room, physical_memory

FEW_NODES, MOST_NODES_PER_ENTRY = 1_000_000, 1000  # a matrix of more rows than both holds hardly anything
NAME_BYTES = 100  # of a node, its number as text in a list
INTEGER = r"^(?:0|[1-9][0-9]*)$"  # 007 is a name, and keeps its zeros


@dataclass(frozen=True)
class Edges:
    """Edge ``i`` joins the nodes ``rows[i]`` and ``cols[i]``, in any direction and any number of times.

    ``weight``, ``times`` and ``graphs`` have a value per edge, where they are known; ``weighted`` says that there are
    weights, whether they are wanted or not. ``directed`` is what the format says about direction, None if it says
    nothing. Edges of a ``matrix`` may stand there in both directions.
    ``sides [N]`` is 0 or 1. ``notes`` say what columns were taken for, and ``ignored`` which were left out.
    """

    rows: IntArray
    cols: IntArray
    names: list[str]
    weighted: bool = False
    ignored: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    weight: npt.NDArray[np.float64] | None = None
    times: npt.NDArray[np.float64] | None = None
    graphs: pl.Series | None = None
    directed: bool | None = None
    matrix: bool = False
    sides: npt.NDArray[np.int8] | None = None
    side_names: tuple[str, str] = ("source", "target")
    notes: tuple[str, ...] = ()


def as_integers(*columns: pl.Series) -> list[pl.Series] | None:
    """The columns as integers, or None if some field is no integer or beyond 64 bits."""
    if any(column.dtype == pl.String and not column.str.contains(INTEGER).all() for column in columns):
        return None
    integers = [column.cast(pl.Int64, strict=False) for column in columns]
    return None if any(column.null_count() for column in integers) else integers


def number(*columns: pl.Series) -> tuple[list[str], list[IntArray]]:
    """Number the distinct values of all columns in ascending order: their names, and the codes by column."""
    values = pl.concat(columns)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    top = values.max() if values.dtype == pl.Int64 else None
    if isinstance(top, int) and top < 4 * len(values) + 1_000_000:
        # While a table over all ids is small, it beats hashing by far.
        ids = values.to_numpy()
        present = np.zeros(top + 1, np.bool_)
        present[ids] = True
        names = pl.Series(np.flatnonzero(present))
        codes = (np.cumsum(present, dtype=np.int32) - 1)[ids]
    else:
        codes, names = _factorize(values)
        order = names.arg_sort().to_numpy()
        names = names.gather(order)
        rank = np.empty(len(names), np.int32)
        rank[order] = np.arange(len(names), dtype=np.int32)
        codes = rank[codes]
    return names.cast(pl.String).to_list(), np.split(codes.astype(np.int64), ends)


def _factorize(values: pl.Series) -> tuple[npt.NDArray[np.int32], pl.Series]:
    """Codes ``[M]`` of the values, and the distinct values, in order of appearance."""
    if values.dtype == pl.Int64:
        codes, firsts = factorize_keys(values.to_numpy().view(np.uint64))
        return codes, values.gather(firsts)
    for seed in itertools.count():
        codes, firsts = factorize_keys(values.hash(seed).to_numpy())
        distinct = values.gather(firsts)
        if (distinct.gather(codes) == values).all():  # no two of them have the same hash
            break
    return codes, distinct


def row_names(num_nodes: int, origin: str, first: int = 0, *, entries: int) -> list[str]:
    """The numbers of the rows of a matrix as names, if there is room for them and they are not mostly empty."""
    if num_nodes > MAX_NODES:
        raise InputError(f"{origin} has {num_nodes} nodes; at most {MAX_NODES} are supported")
    needed = NAME_BYTES * num_nodes
    if needed > physical_memory() // 2 or num_nodes > max(FEW_NODES, MOST_NODES_PER_ENTRY * entries):
        raise InputError(
            f"{origin} has {num_nodes} nodes and {entries} entries; where few nodes have links, number those from 0 "
            "on, or write an edge list (CSV, Parquet)"
        )
    need_room(needed)
    return [str(i) for i in range(first, first + num_nodes)]


def declared_edges(
    origin: str,
    kind: str,
    ids: list[str],
    edges: list[tuple[str, str]],
    weights: Sequence[str] = (),
    labels: list[str] | None = None,
    directed: bool | None = None,
) -> Edges:
    """Edges between nodes that a file declares by their ids, and names by ``labels`` if there are any."""
    if not ids:
        raise InputError(f"{origin} declares no nodes; expected {kind}")
    for text in weights:
        if not _is_finite(text):
            raise InputError(
                f"{origin}: the weight {text[:40]!r} is not a finite number; correct or remove it"
            )
    known = dict(zip(ids, labels or ids, strict=True))
    for end in (end for edge in edges for end in edge):
        if end not in known:
            raise InputError(f"{origin}: an edge joins node {end[:40]!r}, which is not among the nodes")
    ends = pl.DataFrame(
        [(known[u], known[v]) for u, v in edges],
        schema={"source": pl.String, "target": pl.String},
        orient="row",
    )
    columns = [pl.Series(list(known.values()), dtype=pl.String), *ends]
    names, (_, rows, cols) = number(*(as_integers(*columns) or columns))
    weight = np.array(weights, np.float64) if weights and len(weights) == len(edges) else None
    return Edges(rows, cols, names, weighted=bool(weights), weight=weight, directed=directed)


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
