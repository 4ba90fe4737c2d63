"""Distances on demand: to anchors (cached, compact, under a memory cap), and between the two nodes of a pair."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from psgnn.distances._engine import (
    CompactHops,
    Hops,
    compact_columns,
    directed_hops,
    expand,
)
from psgnn.distances._lengths import Lengths, LengthSearch, check_lengths
from psgnn.distances._propagation import Floats, walk_columns
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import Adjacency, Graph, GraphBatch, IntArray
from psgnn.graph._names import node_ids
from psgnn.graph._read import read_graph, read_pairs
from psgnn.kernels._bfs import NO_CUTOFF, nearest_members
from psgnn.kernels._compile import num_threads, parallel_map, parallel_rows
from psgnn.kernels._pairs import pair_hops
from psgnn.paths import PathLike

DEFAULT_MEMORY = 2**30
# Below this size the full table costs less than deciding which columns are missing.
SMALL_TABLE = 2**23
BLOCK = 2**13  # rows of a table that stay in the processor's cache while its columns are taken one by one


class DistanceOracle:
    """Measure and keep distances to anchors of a batch of graphs.

    Anchors are ids of the batch, ``[G, K]``: one row per graph, padded with -1, or ``[K]`` for a single graph. The
    result is a table ``[N, K]``: entry ``(v, k)`` is the distance of ``v`` to the k-th anchor of its own graph. Small
    batches keep the full table of all nodes. Larger ones keep the columns that were asked for, and drop the oldest
    first.

    Args:
        union: The graphs.
        memory: The most bytes that are kept.
        lengths: Lengths of the edges, those of the graphs one after another, for the method `lengths`.
    """

    def __init__(
        self, union: GraphBatch, *, memory: int = DEFAULT_MEMORY, lengths: npt.ArrayLike | None = None
    ) -> None:
        self.union = union
        self.memory = memory
        self._edge_lengths = lengths
        self._full: CompactHops | None = None
        self._columns: OrderedDict[bytes, CompactHops] = OrderedDict()
        self._column_bytes = 0  # a sum over thousands of columns would take longer than a look at one

    @property
    def cached_bytes(self) -> int:
        """Bytes that the cache holds now."""
        full = 0 if self._full is None else self._full.nbytes
        return full + self._column_bytes

    def hops(self, anchors: npt.ArrayLike) -> Hops:
        """Hops to the anchors, int16 ``[N, K]``; -1 = unreachable, or a padded anchor."""
        table = self.anchor_table(anchors)
        if self.union.num_nodes * int(self.union.sizes.max()) * 2 <= min(self.memory, SMALL_TABLE):
            return self._from_full(table)
        return self._from_columns(table)

    def lengths(self, anchors: npt.ArrayLike) -> Lengths:
        """Lengths of shortest paths to the anchors, float32 ``[N, K]``; -1 = unreachable, or a padded anchor."""
        table = self.anchor_table(anchors)
        self._check_fits(2 * table.shape[1])
        return self._length_search.columns(*self._lanes(table))

    @cached_property
    def _length_search(self) -> LengthSearch:
        """The graphs with their lengths, prepared for searches."""
        if self._edge_lengths is None:
            raise InputError("the edges have no lengths; pass DistanceOracle(lengths=...)")
        edges = self.union.adjacency.edges()
        return LengthSearch(self.union.adjacency, edges, check_lengths(self._edge_lengths, edges))

    def nearest(
        self, nodes: IntArray, starts: IntArray, cutoff: int | None = None
    ) -> tuple[Hops, npt.NDArray[np.int32]]:
        """Hops to the nearest member of each set, int16 ``[N, L]``, and which, int32 (-1 = none within the cutoff)."""
        self._check_fits(3 * (starts.size - 1))
        shape = self.union.num_nodes, starts.size - 1
        hops, who = np.full(shape, -1, np.int16), np.full(shape, -1, np.int32)
        limit = np.iinfo(np.int16).max if cutoff is None else cutoff
        csr = self.union.adjacency.indptr, self.union.adjacency.indices
        cores = num_threads()

        def part(piece: int) -> None:
            nearest_members(*csr, nodes, starts, piece, cores, hops, who, limit)

        parallel_map(part, range(cores), csr[1].size * shape[1])
        return hops, who

    def walks(
        self,
        anchors: npt.ArrayLike,
        *,
        restarts: Sequence[float] = (),
        diffusion: Sequence[int] = (),
        steps: int = 20,
    ) -> list[Floats]:
        """PageRank for each restart, then diffusion for each number of steps, float32 ``[N, K]`` each."""
        table = self.anchor_table(anchors)
        graph_of = self.union.graph_of if self.union.num_graphs > 1 else None
        return walk_columns(
            self.union.adjacency, table, graph_of, restarts=restarts, diffusion=diffusion, steps=steps
        )

    def anchor_table(self, anchors: npt.ArrayLike) -> IntArray:
        """The anchors as a checked int64 ``[G, K]`` table."""
        table = np.atleast_2d(np.asarray(anchors, dtype=np.int64))
        if table.shape[0] != self.union.num_graphs:
            raise InputError(
                f"anchors have {table.shape[0]} rows for {self.union.num_graphs} graphs; "
                "pass one row a graph, padded with -1"
            )
        start, end = self.union.ptr[:-1, None], self.union.ptr[1:, None]
        outside = (table != -1) & ((table < start) | (table >= end))
        if outside.any():
            graph, place = np.argwhere(outside)[0]
            raise InputError(
                f"anchor {table[graph, place]} of graph {graph} is outside its nodes "
                f"{start[graph, 0]}..{end[graph, 0] - 1} of the union"
            )
        return table

    def _check_fits(self, num_columns: int) -> None:
        needed = 2 * self.union.num_nodes * num_columns
        if needed > self.memory:
            raise InputError(
                f"{num_columns} distance columns of {self.union.num_nodes} nodes need "
                f"{needed / 2**20:.0f} MiB, above the cap of {self.memory / 2**20:.0f} MiB; "
                "use fewer anchors or a model with single ones (psgnn), or raise DistanceOracle(memory=...)"
            )

    @staticmethod
    def _lanes(table: IntArray) -> tuple[IntArray, IntArray]:
        """Lane ``k`` is seeded by the k-th anchor of every graph that has one."""
        by_lane = table.T
        present = by_lane >= 0
        return by_lane[present], np.concatenate([[0], np.cumsum(present.sum(axis=1))])

    def _from_full(self, table: IntArray) -> Hops:
        if self._full is None:
            offsets = np.arange(int(self.union.sizes.max()))
            everyone = self.union.ptr[:-1, None] + offsets
            everyone[offsets >= self.union.sizes[:, None]] = -1
            self._full = compact_columns(self.union.adjacency, *self._lanes(everyone))
        local = np.where(table >= 0, table - self.union.ptr[:-1, None], 0)
        if self.union.num_graphs == 1:
            hops = expand(self._full[:, local[0]])
        else:
            hops = expand(np.take_along_axis(self._full, local[self.union.graph_of], axis=1))
        if (table < 0).any():
            hops[(table < 0)[self.union.graph_of]] = -1
        return hops

    def _from_columns(self, table: IntArray) -> Hops:
        self._check_fits(table.shape[1])
        keys = [lane.tobytes() for lane in table.T]
        missing = list({key: k for k, key in enumerate(keys) if key not in self._columns}.values())
        if missing:
            computed = compact_columns(self.union.adjacency, *self._lanes(table[:, missing]))
            columns = [np.empty(computed.shape[0], computed.dtype) for _ in missing]
            for rows in _blocks(computed.shape[0]):
                for column, part in zip(columns, computed[rows].T, strict=True):
                    column[rows] = part
            self._columns.update(zip([keys[k] for k in missing], columns, strict=True))
            self._column_bytes += computed.nbytes
        hops = np.empty((self.union.num_nodes, len(keys)), np.int16)
        for rows in _blocks(hops.shape[0]):
            for k, key in enumerate(keys):
                hops[rows, k] = expand(self._columns[key][rows])
        for key in keys:
            self._columns.move_to_end(key)
        while self.cached_bytes > self.memory:
            self._column_bytes -= self._columns.popitem(last=False)[1].nbytes
        return hops


def _blocks(num_nodes: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, num_nodes, BLOCK)]


Doubles = npt.NDArray[np.float64]
SOURCES_AT_ONCE = 64  # columns that are in memory


def pair_distances(
    graph: Any, pairs: PathLike | Iterable[tuple[str | int, str | int]], *, cutoff: float | None = None
) -> pl.DataFrame:
    """Measure the distance between the two nodes of each pair: hops, or the length where the graph has lengths.

    Paths in a directed graph go from the first node to the second. In others, every pair is searched for hops from both
    ends, so a pair costs less than a column of distances.

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
    what = "hops" if found.lengths is None else "length"
    if found.lengths is None and not found.directed:
        far = hops_between(found.adjacency, ids, cutoff).astype(np.int32)
    else:
        far = _from_columns(found, ids, cutoff)
    names = pl.Series(found.names, dtype=pl.String)
    columns = {"source": names[ids[0]], "target": names[ids[1]], what: pl.Series(far)}
    return pl.DataFrame(columns).with_columns(pl.col(what).replace(-1, None))


def _from_columns(graph: Graph, pairs: IntArray, cutoff: float | None) -> npt.NDArray[Any]:
    """Distances from the first to the second node of each pair, ``[P]``."""
    if graph.lengths is None:
        hops = partial(directed_hops, graph.edges, graph.num_nodes, cutoff=cutoff)
        return entries_of(hops, *pairs).astype(np.int32)
    search = LengthSearch(graph.adjacency, graph.edges, graph.lengths, directed=graph.directed)
    return entries_of(partial(search.columns, cutoff=cutoff), *pairs)


def entries_of(columns: Callable[[IntArray], npt.NDArray[Any]], us: IntArray, vs: IntArray) -> Floats:
    """The entries ``(v, u)`` of columns of numbers, ``[P]``: one column per distinct u, some at a time."""
    sources, place = np.unique(us, return_inverse=True)
    out = np.empty(us.size, np.float32)
    for start in range(0, sources.size, SOURCES_AT_ONCE):
        here = np.flatnonzero((place >= start) & (place < start + SOURCES_AT_ONCE))
        out[here] = columns(sources[start : start + SOURCES_AT_ONCE])[vs[here], place[here] - start]
    return out


def _ids(pairs: Any, names: list[str]) -> IntArray:
    ends: list[Any] = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"{pair!r} is not a pair; name two nodes")
        ends += pair
    return np.ascontiguousarray(node_ids(ends, names).reshape(-1, 2).T)


def hops_between(adjacency: Adjacency, pairs: IntArray, cutoff: float | None = None) -> Doubles:
    """Hops between the two nodes of each pair, ``[P]``; -1 = unreachable or beyond the cutoff."""
    limit = NO_CUTOFF if cutoff is None else cutoff
    return by_slices(pair_hops, adjacency, pairs[0], pairs[1], limit, steps=1000)


def by_slices(
    kernel: Callable[..., None], adjacency: Adjacency, us: IntArray, vs: IntArray, *args: Any, steps: float
) -> Doubles:
    """Run a pair kernel over contiguous slices of the pairs, one per core; a pair takes about `steps` steps."""
    out = np.empty(us.size)

    def piece(first: int, last: int) -> None:
        part = slice(first, last)
        kernel(adjacency.indptr, adjacency.indices, us[part], vs[part], *args, out[part])

    parallel_rows(piece, us.size, us.size * steps)
    return out
