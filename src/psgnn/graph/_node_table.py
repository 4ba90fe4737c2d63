"""What a table of nodes says about each: that it is there, its features, its class and its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._edges import as_integers, number
from psgnn.graph._graph import IntArray
from psgnn.graph._headers import chosen_column
from psgnn.graph._options import ReadOptions
from psgnn.graph._table import no_column, shortened

MOST_VALUES = 50  # of a column of text that becomes features, a column each
MISSING = ("", "na", "nan", "null", "none", "\\n", "n/a")
PADDED = r"^[-+]?0\d"  # 01234 is a name of something, and no number
MOST_SHOWN = 5

Encoding = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NodeTable:
    """Every column of a table with a row per node; ``where(row)`` says where a row stands."""

    columns: dict[str, pl.Series]
    where: Callable[[int], str]
    origin: str

    def place(self, asked: str) -> str:
        """The name of the column that was asked for by its name or number."""
        names = list(self.columns)
        place = chosen_column(names, asked)
        if place is None:
            raise no_column(self.origin, asked, names)
        return names[place]


@dataclass(frozen=True)
class Nodes:
    """Names of nodes, and what is known about them: features ``[n, F]``, labels and types ``[n]``, or None.

    ``encoding`` says how columns became features, so that those of another table can become the same.
    """

    names: pl.Series
    x: npt.NDArray[np.float32] | None
    labels: pl.Series | None
    types: pl.Series | None
    encoding: list[dict[str, Any]]
    notes: tuple[str, ...]


def nodes_of(table: NodeTable, how: ReadOptions) -> Nodes:
    """Read a table of nodes; names stand once, and not every column is a feature."""
    key = table.place(how.node_name) if how.node_name is not None else next(iter(table.columns))
    names = table.columns[key].cast(pl.String)
    _refuse(table, names.is_null() | (names == ""), "the node has no name; correct or remove it")
    _refuse(table, ~names.is_first_distinct(), "the node stands further up already; keep one row per node")
    label, kind = (None if asked is None else table.place(asked) for asked in (how.label, how.type))
    rest = {name: column for name, column in table.columns.items() if name not in (key, label, kind)}
    encoding, notes = (_encoding(rest), []) if how.encoding is None else ([dict(e) for e in how.encoding], [])
    notes += _notes(table.origin, rest, encoding)
    x = _features(table, rest, encoding)
    known = {role: _filled(table.columns[name]) for role, name in (("label", label), ("type", kind)) if name}
    for role, column in known.items():
        if column.null_count():
            notes.append(f"{column.null_count()} nodes have no {role}")
    return Nodes(names, x, known.get("label"), known.get("type"), encoding, tuple(notes))


def classes_of(labels: pl.Series) -> IntArray:
    """Codes of labels, in ascending order of integers or in sorted order; -1 where there is none."""
    known = labels.drop_nulls()
    _, (codes,) = number(*(as_integers(known) or [known]))
    found = np.full(len(labels), -1, np.int64)
    found[labels.is_not_null().to_numpy()] = codes
    return found


def sides_of(types: pl.Series, between: tuple[str, str], origin: str) -> npt.NDArray[np.int8]:
    """0 for nodes of the first type, 1 for those of the second, -1 for others."""
    found = types.drop_nulls().unique(maintain_order=True).to_list()
    for name in between:
        if name not in found:
            raise no_type(origin, name, found)
    sides = np.full(len(types), -1, np.int8)
    for side, name in enumerate(between):
        sides[(types == name).fill_null(False).to_numpy()] = side
    return sides


def no_type(origin: str, name: str, found: Sequence[str]) -> InputError:
    """The error for a type that no node has."""
    listed = ", ".join(" ".join(each.split()) for each in found[:12])
    return InputError(f"{origin} has no node of type {shortened(name)}; its types are {listed}")


def _refuse(table: NodeTable, bad: pl.Series, reason: str) -> None:
    row = bad.arg_max()
    if row is not None and bad[row]:
        raise InputError(f"{table.where(row)}: {reason}")


def _filled(column: pl.Series) -> pl.Series:
    """A column as text, with null for what stands for nothing."""
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING), None)


def _numbers(column: pl.Series) -> pl.Series | None:
    """A column as finite numbers or null, if all it has are numbers."""
    if column.dtype == pl.String:
        text = _filled(column)
        values = text.cast(pl.Float64, strict=False)
        if values.null_count() > text.null_count() or text.str.contains(PADDED).any():
            return None
    elif column.dtype.is_numeric():
        values = column.cast(pl.Float64)
    else:
        return None
    return values.set(~values.is_finite().fill_null(False), None)


def _encoding(columns: Mapping[str, pl.Series]) -> list[dict[str, Any]]:
    """How the columns become features: a number is standardised, a text of few values has a column for each."""
    found: list[dict[str, Any]] = []
    for name, column in columns.items():
        values = _numbers(column)
        if values is None:
            texts = _filled(column).drop_nulls().unique().sort().to_list()
            if 1 < len(texts) <= MOST_VALUES:
                found.append({"column": name, "values": texts})
        elif values.drop_nulls().n_unique() > 1:
            found.append({"column": name, "mean": values.mean(), "sd": values.std(ddof=0)})
    return found


def _features(
    table: NodeTable, columns: Mapping[str, pl.Series], encoding: Encoding
) -> npt.NDArray[np.float32] | None:
    """The columns as features; what is missing is average, or has no value."""
    parts = []
    for how in encoding:
        name = str(how["column"])
        if name not in columns:
            raise no_column(table.origin, name, list(columns))
        if "values" in how:
            text = _filled(columns[name])
            parts += [(text == value).fill_null(False).cast(pl.Float32).to_numpy() for value in how["values"]]
        else:
            values = _numbers(columns[name])
            if values is None:
                raise InputError(
                    f"{table.origin}: the column {shortened(name)} held numbers, and now has text"
                )
            parts.append(((values - how["mean"]) / how["sd"]).fill_null(0).cast(pl.Float32).to_numpy())
    return np.stack(parts, axis=1) if parts else None


def _notes(origin: str, columns: Mapping[str, pl.Series], encoding: Encoding) -> list[str]:
    """What became of the columns, in words."""
    used = {str(how["column"]): how for how in encoding}
    notes = []
    if used:
        words = [
            f"'{name}' ({len(how['values'])} values)" if "values" in how else f"'{name}'"
            for name, how in used.items()
        ]
        notes.append(f"features from {origin}: {_listed(words)}")
    missing = {name: _filled(columns[name]).null_count() for name in used if name in columns}
    missing = {name: count for name, count in missing.items() if count}
    if missing:
        counts = [f"{count} in '{name}'" for name, count in missing.items()]
        notes.append(f"missing values: {_listed(counts)}")
    left = [name for name in columns if name not in used]
    if left:
        notes.append(f"ignored in {origin}: {_listed([_why_not(name, columns[name]) for name in left])}")
    return notes


def _why_not(name: str, column: pl.Series) -> str:
    count = _filled(column).drop_nulls().n_unique()
    return f"'{name}' ({'all alike' if count < 2 else f'{count} values of text'})"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:MOST_SHOWN]) + (", ..." if len(words) > MOST_SHOWN else "")
