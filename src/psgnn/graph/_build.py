"""From edges as they were read to a `Graph`: parallel edges become one, and the table of nodes joins in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.errors import InputError
from psgnn.graph._edges import Edges, as_integers, number
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._kinds import merged_graph
from psgnn.graph._node_table import Nodes, classes_of, sides_of
from psgnn.graph._options import COUNT, ReadOptions
from psgnn.graph._times import shown
from psgnn.kernels._csr import bucket_edges, drop_repeats, transpose

MOST_NAMED = 5  # columns that were ignored


@dataclass(frozen=True)
class Reading:
    """What was read and what became of it: ``read = edges + reciprocal + self_loops + duplicates``.

    ``kind`` says it in a word, ``notes`` what columns were taken for, ``ignored`` what was left out. ``options`` are
    keywords of `psgnn.read_graph` that read a later version of the graph the same way.
    """

    nodes: int
    edges: int
    read: int
    reciprocal: int
    self_loops: int
    duplicates: int
    weighted: bool = False
    ignored: tuple[str, ...] = ()
    kind: str = "undirected"
    notes: tuple[str, ...] = field(default=(), compare=False)
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)
    origin: str = field(default="the graph", compare=False)

    def __str__(self) -> str:
        counted = "" if "weight" in self.options else " (--weight count counts them)"
        changed = {
            "direction ignored: {} links were given both ways (--directed keeps it)": self.reciprocal,
            "dropped {} self-loops": self.self_loops,
            "merged {} duplicates" + counted: self.duplicates,
        }
        parts = [f"{self.nodes} nodes, {self.edges} edges ({self.kind})", *self.notes]
        parts += [text.format(count) for text, count in changed.items() if count]
        if self.weighted and not any("--weight" in column for column in self.ignored):
            parts.append("ignored the weights, distances are hops (--weight weight)")
        if self.ignored:
            more = ", ..." if len(self.ignored) > MOST_NAMED else ""
            parts.append(f"ignored {', '.join(self.ignored[:MOST_NAMED])}{more}")
        return "; ".join(parts)


def graphs_of(
    edges: Edges, nodes: Nodes | None, how: ReadOptions, origin: str, *, alone: bool
) -> list[Graph]:
    """The graphs that edges make: one, or one for every value of the column of graphs.

    If it is ``alone``, all nodes of the table of nodes are its nodes.
    """
    if edges.graphs is None:
        return [_graph_of(edges, nodes, how, origin, isolated=alone)]
    ids = edges.graphs.cast(pl.String)
    found, (codes,) = number(*(as_integers(ids) or [ids]))
    return [
        _graph_of(_part(edges, codes == g), nodes, how, f"{origin}, graph {name}", isolated=False)
        for g, name in enumerate(found)
    ]


def _part(edges: Edges, mask: npt.NDArray[np.bool_]) -> Edges:
    """Some of the edges, and the nodes that they join."""
    rows, cols = edges.rows[mask], edges.cols[mask]
    present = np.zeros(len(edges.names), np.bool_)
    present[rows] = present[cols] = True
    place = np.cumsum(present) - 1
    names = [name for name, there in zip(edges.names, present.tolist(), strict=True) if there]
    columns: dict[str, Any] = {
        key: None if (column := getattr(edges, key)) is None else column[mask] for key in ("weight", "times")
    }
    sides = None if edges.sides is None else edges.sides[present]
    return replace(
        edges, rows=place[rows], cols=place[cols], names=names, sides=sides, graphs=None, **columns
    )


def _graph_of(edges: Edges, nodes: Nodes | None, how: ReadOptions, origin: str, *, isolated: bool) -> Graph:
    if how.directed and edges.directed is False:
        raise InputError(f"{origin} is undirected, its edges have no source; leave out --directed")
    notes = list(edges.notes)
    if nodes is not None:
        edges = _joined(edges, nodes, how, origin, notes, isolated=isolated)
    graph = _merged(edges, how, origin)
    if not graph.num_edges:
        raise InputError(f"{origin} has no edges between different nodes; at least one is needed")
    kind = "directed" if how.directed else "undirected"
    sides: dict[str, Any] = {}
    options = how.kept()
    if edges.sides is not None:
        sides = {"sides": edges.sides, "side_names": edges.side_names}
        sizes = [
            f"{np.count_nonzero(edges.sides == side)} {name}" for side, name in enumerate(edges.side_names)
        ]
        kind += f", two-sided: {' and '.join(sizes)}"
        options |= {} if how.between else {"sides": True}
    if nodes is not None and nodes.encoding:
        options["encoding"] = nodes.encoding
    reading = replace(
        _count(edges, graph, how),
        notes=(*notes, *_told(edges, graph, how)),
        ignored=edges.ignored,
        kind=kind,
        options=options,
        origin=origin,
    )
    return replace(graph, node_names=edges.names, reading=reading, **sides, **edges.attributes)


def _merged(edges: Edges, how: ReadOptions, origin: str) -> Graph:
    """The graph of the edges, of which parallel ones are one."""
    weight, count = _weight(edges, how, origin), len(edges.names)
    if weight is None and edges.times is None and not how.directed:
        return Graph(Adjacency.from_edges(edges.rows, edges.cols, count))
    if edges.matrix and not how.directed and how.weight_is != "length" and _is_mirrored(edges, weight):
        weight = None if weight is None else weight / 2
    what = {"lengths" if how.weight_is == "length" else "strengths": weight}
    ends = np.stack([edges.rows, edges.cols])
    return merged_graph(ends, count, directed=how.directed, times=edges.times, **what)


def _weight(edges: Edges, how: ReadOptions, origin: str) -> npt.NDArray[np.float64] | None:
    """The weight of every edge as it was asked for: a column, or 1 for each."""
    if how.weight is None:
        return None
    if edges.weight is None:
        if how.weight == COUNT and how.weight_is != "length":
            return np.ones(edges.rows.size)
        raise InputError(f"{origin} has no weights; leave out --weight")
    wrong = ~(edges.weight > 0) | np.isinf(edges.weight)
    if wrong.any():
        ends = edges.names[edges.rows[wrong.argmax()]], edges.names[edges.cols[wrong.argmax()]]
        found = edges.weight[wrong.argmax()]
        raise InputError(
            f"{origin}: the edge {ends} has the {how.weight_is} {found:g}, not above 0; correct it"
        )
    return edges.weight


def _is_mirrored(edges: Edges, weight: npt.NDArray[np.float64] | None) -> bool:
    """Whether every edge stands there in both directions, with one weight."""
    if weight is None:
        return False
    one, other = np.lexsort((edges.cols, edges.rows)), np.lexsort((edges.rows, edges.cols))
    pairs = ((edges.rows, edges.cols), (edges.cols, edges.rows), (weight, weight))
    return all(np.array_equal(a[one], b[other]) for a, b in pairs)


def _told(edges: Edges, graph: Graph, how: ReadOptions) -> list[str]:
    """What became of weights and times, in words."""
    told = []
    if graph.lengths is not None:
        told.append(f"distances are sums of '{how.weight}'")
    if graph.strengths is not None:
        counted = how.weight == COUNT and how.weight_is is None
        told.append("strengths count parallel edges" if counted else f"strengths are sums of '{how.weight}'")
    if edges.times is not None:
        first, last = shown(float(edges.times.min())), shown(float(edges.times.max()))
        told.append(f"times from '{how.time}': {first} to {last}")
    if edges.directed and not how.directed:
        told.append("its direction is ignored (--directed keeps it)")
    return told


def _count(edges: Edges, graph: Graph, how: ReadOptions) -> Reading:
    count = graph.num_edges
    self_loops = int(np.count_nonzero(edges.rows == edges.cols))
    arcs = distinct = edges.rows.size - self_loops
    if how.directed:
        distinct = count
    elif arcs > count:
        columns = bucket_edges(edges.rows, edges.cols, graph.num_nodes)
        distinct = drop_repeats(*transpose(*columns))[1].size
    return Reading(
        nodes=graph.num_nodes,
        edges=count,
        read=edges.rows.size,
        reciprocal=distinct - count,
        self_loops=self_loops,
        duplicates=arcs - distinct,
        weighted=edges.weighted and how.weight is None,
    )


def _joined(
    edges: Edges, nodes: Nodes, how: ReadOptions, origin: str, notes: list[str], *, isolated: bool
) -> Edges:
    """The edges with what the table of nodes knows, and with its other nodes if ``isolated``."""
    known = pl.Series(edges.names, dtype=pl.String)
    others = nodes.names.filter(~nodes.names.is_in(known.implode()))
    if isolated and len(others):
        notes.append(f"{len(others)} nodes without an edge come from the table of nodes")
        edges = _with_others(edges, known, others)
        known = pl.Series(edges.names, dtype=pl.String)
    rows = _places(nodes.names, known)
    absent = int(np.count_nonzero(rows < 0))
    if absent:
        notes.append(f"{absent} nodes are not in the table of nodes, and have no features")
    notes += nodes.notes
    attributes = dict(edges.attributes)
    if nodes.x is not None:
        attributes["x"] = np.where(rows[:, None] >= 0, nodes.x[rows], np.float32(0))
    if nodes.labels is not None:
        attributes["y"] = np.where(rows >= 0, classes_of(nodes.labels)[rows], -1)
    if edges.sides is not None:
        sides = _sides_of_others(edges, nodes, rows)
        missing = int(np.count_nonzero(sides < 0))
        if missing:
            notes.append(
                f"{missing} nodes without an edge are on no side; name them SIDE:NAME, or give their --type"
            )
        return replace(edges, attributes=attributes, sides=sides)
    if nodes.types is None:
        return replace(edges, attributes=attributes)
    if how.between is None:
        types = ",".join(nodes.types.drop_nulls().unique(maintain_order=True).to_list()[:12])
        raise InputError(f"--type goes with --between A,B: links between which types? It has {types}")
    sides = np.where(rows >= 0, sides_of(nodes.types, how.between, "the table of nodes")[rows], -1).astype(
        np.int8
    )
    for side, name in enumerate(how.between):
        if not (sides == side).any():
            raise InputError(f"{origin} has no node of type '{name}'; name two types that it has")
    inside = int(np.count_nonzero(sides[edges.rows] + sides[edges.cols] != 1))
    if inside:
        notes.append(f"{inside} links are not between the two types: they are seen, and never asked about")
    return replace(edges, attributes=attributes, sides=sides, side_names=how.between)


def _sides_of_others(edges: Edges, nodes: Nodes, rows: IntArray) -> npt.NDArray[np.int8]:
    """The sides of all nodes: without an edge they are known by their names or types, if at all."""
    assert edges.sides is not None
    sides = edges.sides.copy()
    for v in np.flatnonzero(sides < 0).tolist():
        kind = None if nodes.types is None else nodes.types[int(rows[v])]
        for side, title in enumerate(edges.side_names):
            if kind == title or edges.names[v].startswith(f"{title}:"):
                sides[v] = side
    return sides


def _with_others(edges: Edges, known: pl.Series, others: pl.Series) -> Edges:
    """The edges over more nodes: in ascending order if the nodes were, otherwise after them."""
    everyone = pl.concat([known, others])
    names, (codes,) = number(*(as_integers(everyone) or [everyone]))
    place = codes[: len(known)]
    if (np.diff(place) < 0).any() or edges.sides is not None:
        names, place = everyone.to_list(), np.arange(len(known))
    sides = None
    if edges.sides is not None:
        sides = np.concatenate([edges.sides, np.full(len(others), -1, np.int8)])
    attributes = dict(edges.attributes)
    for key in ("x", "y"):  # of nodes that another source has not
        if key in attributes:
            raise InputError(
                f"the graph has an attribute {key} and lacks nodes of the table; leave out --nodes"
            )
    return replace(edges, rows=place[edges.rows], cols=place[edges.cols], names=names, sides=sides)


def _places(names: pl.Series, wanted: pl.Series) -> IntArray:
    """The row of every wanted name among the names, -1 where it is not there."""
    rows = pl.DataFrame({"name": names}).with_row_index("row")
    found = wanted.to_frame("name").join(rows, on="name", how="left", maintain_order="left")["row"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy()
