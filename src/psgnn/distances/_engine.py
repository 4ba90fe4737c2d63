"""Columns of exact distances: which kernel, how many threads, which dtype."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from psgnn.distances._lengths import LengthSearch, check_lengths
from psgnn.errors import InputError, check_integer
from psgnn.graph._graph import Adjacency, Graph, IntArray, as_graph, to_numpy
from psgnn.graph._kinds import Arcs
from psgnn.graph._names import node_ids
from psgnn.kernels._bfs import (
    DONE,
    LANES,
    NO_CUTOFF,
    TOO_DEEP,
    TOO_SLOW,
    bitset_bfs,
    queue_columns,
    queue_sums,
)
from psgnn.kernels._compile import num_threads, parallel_map
from psgnn.memory import physical_memory

Hops = npt.NDArray[np.int16]  # -1 = unreachable or beyond the cutoff
CompactHops = npt.NDArray[Any]  # uint8 with 255 for -1, or int16 where a distance exceeds 254

CACHE = 2**23  # bytes that stay in a core's cache, more or less
QUEUE_LANES = 8  # lanes of one unit of work on graphs of large diameter
_NO_SUMS: npt.NDArray[np.float64] = np.empty((0, 0))
_NO_HOPS: Hops = np.empty((0, 0), np.int16)


def shortest_distances(
    graph: Graph | npt.ArrayLike,
    sources: npt.ArrayLike | None = None,
    *,
    num_nodes: int | None = None,
    cutoff: float | None = None,
    lengths: npt.ArrayLike | None = None,
    reverse: bool = False,
) -> npt.NDArray[Any]:
    r"""Return the exact distance :math:`d(v, s)` from every node to each source.

    Where a `Graph` is directed, paths follow its links from the node to the source; with `reverse`, from the source to
    the node. Edges that are given as an array have no direction.

    Without lengths, distances are hops. With them, given here or known to the graph, a distance is the least sum of
    lengths along a path. Sums are float64 and are rounded to float32. A sum depends on the order of its additions, so
    another program may differ in the last bit of a float32; sums of integers below 2^53 are exact.

    Args:
        graph: A graph, or edges ``[2, E]`` in one or both directions: an array or a tensor.
        sources: ``[S]`` node ids, or names of a graph's nodes; all nodes if None.
        num_nodes: N of edges; the largest id plus one if None.
        cutoff: Hops, or the length, beyond which a node counts as unreachable.
        lengths: ``[E]`` positive lengths, in the order of ``graph.edges`` or of the edges given. Of parallel edges the
            shortest counts.
        reverse: Measure from the sources to the nodes of a directed graph.

    Returns:
        Array ``[N, S]``, int16 hops or float32 lengths; -1 = unreachable or beyond the cutoff.

    Raises:
        InputError: If a source is not a node, or a length is not positive and finite.

    >>> shortest_distances([[0, 1], [1, 2]], [0], num_nodes=4).T
    array([[ 0,  1,  2, -1]], dtype=int16)
    >>> shortest_distances([[0, 1, 0], [1, 2, 2]], [0], lengths=[1.5, 2, 9]).T
    array([[0. , 1.5, 3.5]], dtype=float32)
    """
    if lengths is None and isinstance(graph, Graph):
        lengths = graph.lengths
    adjacency = _adjacency_of(graph, num_nodes)
    if sources is None:
        nodes = np.arange(adjacency.num_nodes)
    elif isinstance(graph, Graph):
        nodes = nodes_of(graph, sources, "source")
    else:
        nodes = check_nodes(to_numpy(sources), adjacency.num_nodes, "source")
    itemsize = np.dtype(np.int16 if lengths is None else np.float32).itemsize
    check_memory(adjacency.num_nodes * nodes.size * itemsize, f"distances to {nodes.size} sources")
    known = graph if isinstance(graph, Graph) else None
    directed = known is not None and known.directed
    if lengths is None:
        if known is None or not directed:
            return hop_columns(adjacency, nodes, cutoff=cast("int | None", cutoff))  # it is checked there
        return directed_hops(
            known.edges if reverse else known.edges[::-1], adjacency.num_nodes, nodes, cutoff
        )
    edges = to_numpy(getattr(graph, "edge_index", graph)) if known is None else known.edges
    checked = check_lengths(lengths, edges, None if known is None else known.node_names)
    ways = edges[::-1] if directed and not reverse else edges
    return LengthSearch(adjacency, ways, checked, directed=directed).columns(nodes, cutoff=cutoff)


def directed_hops(edges: IntArray, num_nodes: int, nodes: IntArray, cutoff: float | None = None) -> Hops:
    """Hops along edges ``[2, E]`` from each of the nodes to every node, ``[N, S]``; -1 = unreachable."""
    if cutoff is not None:
        check_integer("cutoff", cutoff, 0)
    hops = arc_columns(Arcs.of(edges[0], edges[1], num_nodes), nodes, np.arange(nodes.size + 1))
    if cutoff is not None:
        hops[hops > cutoff] = -1
    return hops


def _adjacency_of(graph: Any, num_nodes: int | None) -> Adjacency:
    """The adjacency of a graph, or of edges."""
    if not isinstance(graph, Graph) and not hasattr(graph, "edge_index"):
        return Adjacency.from_edge_index(graph, num_nodes)
    if num_nodes is not None:
        raise InputError("num_nodes goes with edges; a graph knows its own")
    return as_graph(graph).adjacency


def nodes_of(graph: Graph, nodes: Any, role: str) -> IntArray:
    """The ids of nodes of a graph that are given by id or by name, ``[n]``."""
    found = np.atleast_1d(nodes if isinstance(nodes, str) else to_numpy(nodes))
    if found.ndim == 1 and found.dtype.kind in "OTU":
        return node_ids([nodes] if isinstance(nodes, str) else nodes, graph.names)
    return check_nodes(found, graph.num_nodes, role)


def check_nodes(nodes: npt.NDArray[Any], num_nodes: int, role: str) -> IntArray:
    """The node ids as int64, or an error that names the first one outside the graph."""
    nodes = np.atleast_1d(nodes)
    if nodes.ndim != 1 or (nodes.size and not np.issubdtype(nodes.dtype, np.integer)):
        raise InputError(f"{role}s must be integer node ids of shape [K], found {nodes.dtype} {nodes.shape}")
    wrong = nodes[(nodes < 0) | (nodes >= num_nodes)]
    if wrong.size:
        raise InputError(f"{role} {wrong[0]} is not a node; the graph has the nodes 0..{num_nodes - 1}")
    return nodes.astype(np.int64)


def check_memory(needed: int, purpose: str) -> None:
    """Refuse a result that does not fit half of this machine's memory, instead of being killed over it."""
    if needed > physical_memory() // 2:
        raise InputError(
            f"{purpose} need {needed / 2**30:.1f} GiB, more than half of this machine's memory; "
            "ask for fewer sources at a time"
        )


def hop_columns(adjacency: Adjacency, nodes: IntArray, *, cutoff: int | None = None) -> Hops:
    """Hops from every node to each of `nodes`, ``[N, S]``."""
    return set_columns(adjacency, nodes, np.arange(nodes.size + 1), cutoff=cutoff)


def set_columns(
    adjacency: Adjacency, nodes: IntArray, starts: IntArray, *, cutoff: int | None = None
) -> Hops:
    """Hops from every node to the nearest member of each set, ``[N, L]``.

    Set ``j`` is ``nodes[starts[j]:starts[j + 1]]``; an empty set is unreachable.
    """
    hops = np.empty((adjacency.num_nodes, starts.size - 1), np.int16)
    if fill_columns(adjacency, nodes, starts, hops, -1, np.iinfo(np.int16).max, cutoff) == TOO_DEEP:
        raise InputError(
            "a shortest path is longer than the 32767 hops that int16 holds; shortest_distances and `psgnn distances` "
            "take a cutoff, anchors by distance and models need a graph that is less long"
        )
    return hops


def arc_columns(arcs: Arcs, nodes: IntArray, starts: IntArray) -> Hops:
    """Hops along arcs from the nearest member of each set to every node, ``[N, L]``; -1 = unreachable."""
    hops = np.empty((arcs.indptr.size - 1, starts.size - 1), np.int16)
    deepest = np.iinfo(np.int16).max

    def some(first: int) -> int:
        lanes = starts[first : min(first + QUEUE_LANES, starts.size - 1) + 1]
        return int(
            queue_columns(arcs.indptr, arcs.indices, nodes, lanes, hops, first, -1, deepest, NO_CUTOFF)
        )

    lanes = range(0, starts.size - 1, QUEUE_LANES)
    if TOO_DEEP in parallel_map(some, lanes, arcs.indices.size * hops.shape[1]):
        raise InputError(f"a shortest path is longer than the {deepest} hops that int16 holds")
    return hops


def compact_columns(adjacency: Adjacency, nodes: IntArray, starts: IntArray) -> CompactHops:
    """`set_columns` in one byte an entry (255 = unreachable), or in int16 where that is too small."""
    hops = np.empty((adjacency.num_nodes, starts.size - 1), np.uint8)
    if fill_columns(adjacency, nodes, starts, hops, 255, 254) == TOO_DEEP:
        return set_columns(adjacency, nodes, starts)
    return hops


def expand(hops: CompactHops) -> Hops:
    """Compact columns as int16 with -1 for unreachable."""
    if hops.dtype == np.int16:
        return hops
    wide = hops.astype(np.int16)
    wide[hops == 255] = -1
    return wide


def fill_columns(
    adjacency: Adjacency,
    nodes: IntArray,
    starts: IntArray,
    out: npt.NDArray[Any],
    unreachable: int,
    deepest: int,
    cutoff: int | None = None,
) -> int:
    """Write the hops to each set into `out` ``[N, L]``, and `unreachable` where there is no way.

    The first 64 lanes are the probe: they run bit-parallel and give up on a graph whose diameter is so
    large that one queue a lane is faster. Returns DONE or TOO_DEEP.
    """
    if cutoff is not None:
        check_integer("cutoff", cutoff, 0)
    limit = NO_CUTOFF if cutoff is None else cutoff
    num_lanes = starts.size - 1
    csr = adjacency.indptr, adjacency.indices

    def bit_parallel(first: int, probe: bool = False) -> int:
        last = min(first + LANES, num_lanes)
        lanes = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
        members = nodes[starts[first] : starts[last]]
        # A node is written once a level: a far jump each time in a wide table, none in a block that the cache
        # holds.
        small = num_lanes > LANES and out.shape[0] * LANES * out.itemsize <= CACHE
        block, column = (np.empty((out.shape[0], LANES), out.dtype), 0) if small else (out, first)
        block[:, column : column + last - first] = unreachable
        state = int(bitset_bfs(*csr, members, lanes, block, column, deepest, limit, probe, _NO_SUMS))
        if small:
            out[:, first:last] = block[:, : last - first]
        return state

    def one_by_one(first: int) -> int:
        last = min(first + QUEUE_LANES, num_lanes)
        return int(
            queue_columns(*csr, nodes, starts[first : last + 1], out, first, unreachable, deepest, limit)
        )

    if num_lanes == 0 or adjacency.num_nodes == 0:
        return DONE
    steps = adjacency.indices.size * num_lanes
    state = TOO_SLOW if num_lanes == 1 else bit_parallel(0, probe=True)
    if state == DONE:
        states = parallel_map(bit_parallel, range(LANES, num_lanes, LANES), steps / 4)
    elif state == TOO_SLOW:
        states = parallel_map(one_by_one, range(0, num_lanes, QUEUE_LANES), steps)
    else:
        states = [state]
    return TOO_DEEP if TOO_DEEP in states else DONE


def distance_sums(adjacency: Adjacency, cutoff: int | None = None) -> npt.NDArray[np.float64]:
    """Exact sums over all other nodes that reach a node (within the cutoff): hops, 1 / hops, 1; ``[3, N]``.

    All pairs, but never more than 64 columns at a time and no column is written: a node's sum needs only
    how many lanes reach it on each level.
    """
    limit = NO_CUTOFF if cutoff is None else cutoff
    num_nodes = adjacency.num_nodes
    csr = adjacency.indptr, adjacency.indices
    pieces = min(num_threads(), max(1, num_nodes // LANES))

    def block(first: int, sums: npt.NDArray[np.float64], probe: bool = False) -> int:
        nodes = np.arange(first, min(first + LANES, num_nodes))
        return int(bitset_bfs(*csr, nodes, nodes - first, _NO_HOPS, 0, NO_CUTOFF, limit, probe, sums))

    wide = block(0, np.zeros((3, num_nodes)), probe=True) == TOO_SLOW if num_nodes else False

    def part(piece: int) -> npt.NDArray[np.float64]:
        sums = np.zeros((3, num_nodes))
        if wide:
            queue_sums(*csr, piece, pieces, limit, sums)
        else:
            for first in range(piece * LANES, num_nodes, pieces * LANES):
                block(first, sums)
        return sums

    return np.asarray(sum(parallel_map(part, range(pieces), adjacency.indices.size * num_nodes / 4)))
