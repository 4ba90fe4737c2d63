"""Distances between the two nodes of each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.distances._lengths import LengthSearch
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import Adjacency, Graph, IntArray
from psgnn.graph._names import node_ids
from psgnn.graph._read import read_graph, read_pairs
from psgnn.kernels._bfs import NO_CUTOFF
from psgnn.kernels._pairs import pair_hops
from psgnn.kernels._parallel import parallel_rows
from psgnn.paths import PathLike

Doubles = npt.NDArray[np.float64]
SOURCES_AT_ONCE = 64  # columns of lengths that are in memory


def pair_distances(
    graph: Any, pairs: PathLike | Iterable[tuple[str | int, str | int]], *, cutoff: float | None = None
) -> pl.DataFrame:
    """Measure the distance between the two nodes of each pair: hops, or the length where the graph has lengths.

    For hops every pair is searched from both ends, so a pair costs less than a column of distances.

    Args:
        graph: A `Graph`, or anything that `psgnn.read_graph` takes.
        pairs: Pairs of names or ids, or a file of names, two per line.
        cutoff: Farther than this counts as unreachable.

    Returns:
        One row per pair, in the order of `pairs`: ``source``, ``target`` and ``hops`` or ``length``, which is
        null without a path.

    Raises:
        InputError: If a name is not a node of the graph.

    >>> from psgnn.graph import Graph
    >>> path = Graph.from_edges([[0, 1], [1, 2]], 4, names=["ann", "bob", "cy", "dee"])
    >>> pair_distances(path, [("ann", "cy"), ("ann", "dee")])["hops"].to_list()
    [2, None]
    """
    found = read_graph(graph)
    if cutoff is not None and found.lengths is None:
        check_integer("cutoff", cutoff, 0)
    ids = read_pairs(pairs, found.names) if isinstance(pairs, (str, Path)) else _ids(pairs, found.names)
    far: npt.NDArray[Any]
    if found.lengths is None:
        what, far = "hops", hops_between(found.adjacency, ids, cutoff).astype(np.int32)
    else:
        what, far = "length", _lengths_between(found, ids, cutoff)
    names = pl.Series(found.names, dtype=pl.String)
    columns = {"source": names[ids[0]], "target": names[ids[1]], what: pl.Series(far)}
    return pl.DataFrame(columns).with_columns(pl.col(what).replace(-1, None))


def _lengths_between(graph: Graph, pairs: IntArray, cutoff: float | None) -> npt.NDArray[np.float32]:
    """Lengths between the two nodes of each pair, ``[P]``: a column per distinct first node, some at a time."""
    search = LengthSearch(graph.adjacency, graph.edges, np.asarray(graph.lengths))
    sources, place = np.unique(pairs[0], return_inverse=True)
    out = np.empty(pairs.shape[1], np.float32)
    for start in range(0, sources.size, SOURCES_AT_ONCE):
        columns = search.columns(sources[start : start + SOURCES_AT_ONCE], cutoff=cutoff)
        here = np.flatnonzero((place >= start) & (place < start + SOURCES_AT_ONCE))
        out[here] = columns[pairs[1, here], place[here] - start]
    return out


def _ids(pairs: Any, names: list[str]) -> IntArray:
    ends: list[Any] = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"{pair!r} is no pair; name two nodes")
        ends += pair
    return np.ascontiguousarray(node_ids(ends, names).reshape(-1, 2).T)


def hops_between(adjacency: Adjacency, pairs: IntArray, cutoff: float | None = None) -> Doubles:
    """Hops between the two nodes of each pair, ``[P]``; -1 = unreachable or beyond the cutoff."""
    limit = NO_CUTOFF if cutoff is None else cutoff
    return by_slices(pair_hops, adjacency, pairs[0], pairs[1], limit, steps=1000)


def by_slices(
    kernel: Callable[..., None], adjacency: Adjacency, us: IntArray, vs: IntArray, *args: Any, steps: float
) -> Doubles:
    """Run a pair kernel over contiguous slices of the pairs, one a core; a pair takes about so many `steps`."""
    out = np.empty(us.size)

    def piece(first: int, last: int) -> None:
        part = slice(first, last)
        kernel(adjacency.indptr, adjacency.indices, us[part], vs[part], *args, out[part])

    parallel_rows(piece, us.size, us.size * steps)
    return out
