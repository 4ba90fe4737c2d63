"""Edges over numbered nodes, which every format becomes: tables with a row per edge, and the numbering of names."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._graph import MAX_NODES, IntArray
from psgnn.graph._options import ReadOptions
from psgnn.graph._table import Table
from psgnn.graph._times import LEAST_DATED, end_of, seconds_of, shown
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
    """The columns as integers, or None if some field is not an integer or beyond 64 bits."""
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


# Columns without a common name are two sides, unless a graph would often be listed so by chance: a star, or one of few
# edges. Every further edge of a node doubles the odds that it stands in both columns.
FEWEST_OF_A_SIDE, FEWEST_FURTHER_EDGES = 2, 3
# Numbers that each column counts up by itself, to another end, may be those of two kinds: user 1 and film 1.
COUNTED, OTHER_END, FEWEST_COUNTED = 0.9, 1.1, 5
ID_SPACE = re.compile(r":(?:START|END)_ID\((.+)\)", re.IGNORECASE)  # of Neo4j
ONE_NODE = "an id in both columns is one node (--sides if the columns are two kinds)"


def edges_of(table: Table, how: ReadOptions) -> Edges:
    """Number the nodes of a table, and read the columns that were asked for."""
    weights = table.weights()
    asked = how.weight is not None and "weight" in table.more
    if asked and weights is not None:
        kind = "length" if how.weight_is == "length" else "strength"
        table.refuse(weights <= 0, f"the {kind} is not above 0; correct or remove it")
    times = None if how.time is None else seconds_of(table.more["time"], table.refuse)
    ends = _ids(table)
    graphs, notes = table.more.get("graph_id"), _columns_in_words(table)
    if graphs is not None:
        table.refuse(graphs.is_null(), "the graph has no name; correct or remove it")
    weight = weights.to_numpy() if asked and weights is not None else None
    if how.until is not None and times is not None:
        known = times <= end_of(how.until, dated=float(times.max()) >= LEAST_DATED)
        if not known.any():
            raise InputError(
                f"--until {how.until} leaves no edge; the first is of {shown(float(times.min()))}"
            )
        notes.append(f"{np.count_nonzero(~known)} rows after {how.until} left out")
        ends = [column.filter(pl.Series(known)) for column in ends]
        graphs = None if graphs is None else graphs.filter(pl.Series(known))
        weight, times = (None if column is None else column[known] for column in (weight, times))
    names, (rows, cols) = number(*ends)
    edges = Edges(
        rows, cols, names, weighted=weights is not None and how.weight is None, ignored=table.ignored,
        weight=weight, times=times, graphs=graphs, notes=tuple(notes),
    )  # fmt: skip
    return _with_sides(edges, table.names, how)


def _ids(table: Table) -> list[pl.Series]:
    """The two columns of the nodes, as integers if all of them are, or as text."""
    ends = [table.first, table.second]
    ids = as_integers(*ends)
    if ids is not None:
        for column in ids:
            table.refuse(column < 0, "a node id is negative; use integers from 0 up, or names")
        return ids
    texts = [column.cast(pl.String) for column in ends]
    if all(column.cast(pl.Float64, strict=False).null_count() == 0 for column in texts):
        for column in texts:
            refused = ~column.str.contains("^[0-9]+$")
            table.refuse(refused, "a node id is not an integer from 0 up; use such integers, or names")
    return texts


def _columns_in_words(table: Table) -> list[str]:
    """Which columns the nodes came from, where they have names."""
    first, second = table.names
    return [f"from '{first}' to '{second}'"] if first and second else []


def _with_sides(edges: Edges, columns: tuple[str, str], how: ReadOptions) -> Edges:
    """The edges with a side for every node, if the two columns are kinds of nodes of their own.

    A name that both columns have is two nodes, whose names begin with that of their column.
    """
    if how.sides is False or how.between is not None:
        return edges
    here = np.zeros((2, len(edges.names)), np.bool_)
    here[0, edges.rows] = here[1, edges.cols] = True
    both = here[0] & here[1]
    if how.sides is None and both.any():
        doubtful = _counted_apart(edges, how) or _spaces_differ(columns)
        return replace(edges, notes=(*edges.notes, ONE_NODE)) if doubtful else edges
    if how.sides is None and _by_chance(edges, here):
        return edges
    titles = columns if all(columns) and columns[0] != columns[1] else ("source", "target")
    noticed = "the columns share no name, so links are between two sides (--no-sides if they are not)"
    notes = edges.notes if how.sides else (*edges.notes, noticed)
    sides = np.where(here[0], 0, 1).astype(np.int8)
    edges = replace(edges, sides=sides, side_names=titles, notes=notes)
    return _kept_apart(edges, here, both) if both.any() else edges


def _by_chance(edges: Edges, here: npt.NDArray[np.bool_]) -> bool:
    """Whether columns without a common name are no sign of two sides."""
    if (here.sum(axis=1) < FEWEST_OF_A_SIDE).any():
        return True
    count = np.unique(edges.rows * len(edges.names) + edges.cols).size
    return bool(2 * count - here.sum() < FEWEST_FURTHER_EDGES)


def _counted_apart(edges: Edges, how: ReadOptions) -> bool:
    """Whether each column counts its nodes from the same number on, and to another end than the other column."""
    names = pl.Series(edges.names).cast(pl.Int64, strict=False)
    if how.directed or names.null_count():
        return False
    numbers = names.to_numpy()
    found = [np.unique(numbers[column]) for column in (edges.rows, edges.cols)]
    counted = all(part.size >= max(COUNTED * (part[-1] - part[0] + 1), FEWEST_COUNTED) for part in found)
    short, long = sorted(part[-1] for part in found)
    return bool(counted and found[0][0] == found[1][0] and long >= OTHER_END * short)


def _spaces_differ(columns: tuple[str, str]) -> bool:
    """Whether the header says that the ids of the columns are of two spaces, as Neo4j's can."""
    first, second = (ID_SPACE.fullmatch(name or "") for name in columns)
    return first is not None and second is not None and first[1] != second[1]


def _kept_apart(edges: Edges, here: npt.NDArray[np.bool_], both: npt.NDArray[np.bool_]) -> Edges:
    """The edges with two nodes for every name that both sides have: first the nodes of side 0, then those of side 1."""
    names: list[str] = []
    places = []
    for there, title in zip(here, edges.side_names, strict=True):
        place = np.cumsum(there) - 1 + len(names)
        places.append(place)
        names += [_titled(edges.names[v], title, both[v]) for v in np.flatnonzero(there).tolist()]
    if len(set(names)) < len(names):
        ((twice, _),) = Counter(names).most_common(1)
        raise InputError(f"a node is called '{twice}', as a node of two sides would be; rename it")
    sides = np.repeat(np.array([0, 1], np.int8), here.sum(axis=1))
    rows, cols = places[0][edges.rows], places[1][edges.cols]
    return replace(edges, rows=rows, cols=cols, names=names, sides=sides)


def _titled(name: str, title: str, shared: bool) -> str:
    return f"{title}:{name}" if shared else name
