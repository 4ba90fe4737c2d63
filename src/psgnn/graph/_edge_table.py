"""A table with a row per edge, from a file, a frame or a database, as edges over numbered nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._options import ReadOptions
from psgnn.graph._table import Table
from psgnn.graph._times import LEAST_DATED, end_of, seconds_of, shown

# Columns without a common name are two sides, unless a graph would often be listed so by chance: a star, or one of few
# edges. Every further edge of a node doubles the odds that it stands in both columns.
FEWEST_OF_A_SIDE, FEWEST_FURTHER_EDGES = 2, 3
# Numbers that each column counts up by itself, to another end, may be those of two kinds: user 1 and film 1.
COUNTED, OTHER_END, FEWEST_COUNTED = 0.9, 1.1, 5
ONE_NODE = "a number in both columns is one node (--sides if the columns are two kinds)"


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
            table.refuse(refused, "a node id is no integer from 0 up; use such integers, or names")
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
        return replace(edges, notes=(*edges.notes, ONE_NODE)) if _counted_apart(edges, how) else edges
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
