"""A graph with named nodes, its symmetric CSR adjacency, and many graphs side by side.

Letters used all over the package: ``N`` nodes, ``E`` undirected edges, ``K`` anchors, ``G`` graphs,
``P`` pairs, ``R`` hidden width.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psgnn.console import html_line, html_table, shortened
from psgnn.errors import InputError
from psgnn.graph._kinds import PER_EDGE, Kinds
from psgnn.kernels._csr import (
    bucket_edges,
    connected_components,
    drop_repeats,
    in_order,
    is_symmetric,
    merge_rows,
    transpose,
)

if TYPE_CHECKING:
    import networkx
    import polars
    import scipy.sparse
    from torch_geometric.data import Data

    from psgnn.graph._build import Reading

IntArray = npt.NDArray[np.int64]
MAX_NODES = 2**31 - 1
LARGE_NODES = 30_000
OFFICIAL_SPLIT = ("valid_edge", "valid_edge_neg", "test_edge", "test_edge_neg")  # OGB's names
HALF_PRECISION = ("torch.float16", "torch.bfloat16")


@dataclass(frozen=True, eq=False)
class Adjacency:
    """An undirected graph without self-loops or parallel edges, as CSR with sorted rows.

    ``indptr`` is int64 ``[N + 1]``, ``indices`` int32 ``[2E]``: every edge stands in both rows.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]

    @classmethod
    def from_edges(cls, rows: npt.ArrayLike, cols: npt.ArrayLike, num_nodes: int) -> Adjacency:
        """Build from edges in any direction; self-loops are dropped and repeats merged, in O(N + E)."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        cols = np.ascontiguousarray(cols, dtype=np.int64)
        if not 0 <= num_nodes <= MAX_NODES:
            raise InputError(f"a graph of {num_nodes} nodes is outside 0..{MAX_NODES}")
        if rows.size and (min(rows.min(), cols.min()) < 0 or max(rows.max(), cols.max()) >= num_nodes):
            raise InputError(
                f"edges name nodes {min(rows.min(), cols.min())}..{max(rows.max(), cols.max())}, "
                f"but the graph has {num_nodes} nodes (0..{num_nodes - 1}); pass the right num_nodes"
            )
        if in_order(rows, cols):  # as `edge_index` gives them
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_nodes))])
            found = cls(starts, cols.astype(np.int32))
            if is_symmetric(found.indptr, found.indices):
                return found
            del found
        # A transpose leaves every row sorted, so bucketing once and transposing twice sorts both directions.
        backward = drop_repeats(*transpose(*bucket_edges(rows, cols, num_nodes)))
        forward = transpose(*backward)
        if np.array_equal(forward[0], backward[0]) and np.array_equal(forward[1], backward[1]):
            return cls(*forward)
        return cls(*merge_rows(*forward, *backward))

    @classmethod
    def from_edge_index(cls, edge_index: npt.ArrayLike, num_nodes: int | None = None) -> Adjacency:
        """Build from ``[2, *]`` edges, an array or a tensor; direction is ignored."""
        edges = to_numpy(edge_index)
        # NumPy makes floats of two empty lists.
        if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
            raise InputError(
                f"edges must be integers of shape [2, E], found {edges.dtype} of shape {list(edges.shape)}"
            )
        if num_nodes is None:
            num_nodes = int(edges.max()) + 1 if edges.size else 0
        if edges.dtype.kind == "u" and edges.size and int(edges.max()) > MAX_NODES:
            raise InputError(f"edges name node {int(edges.max())}; at most {MAX_NODES} nodes are supported")
        return cls.from_edges(edges[0], edges[1], num_nodes)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """E: undirected edges."""
        return self.indices.size // 2

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbours of every node, ``[N]``."""
        return np.diff(self.indptr)

    @cached_property
    def components(self) -> npt.NDArray[np.int32]:
        """The component of every node, ``[N]``, numbered by their first nodes."""
        labels: npt.NDArray[np.int32] = connected_components(self.indptr, self.indices)
        return labels

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """The row of every entry of ``indices``, ``[2E]``."""
        return np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.degrees)

    def edges(self) -> IntArray:
        """Every edge once as ``[2, E]`` with ``u < v``, sorted by ``(u, v)``."""
        upper = self.rows < self.indices
        return np.stack([self.rows[upper], self.indices[upper]]).astype(np.int64)

    def edge_index(self) -> IntArray:
        """Every edge in both directions, as PyG lays them out: int64 ``[2, 2E]``."""
        edge_index = np.empty((2, self.indices.size), np.int64)
        edge_index[0], edge_index[1] = self.rows, self.indices
        return edge_index


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph with named nodes, undirected unless it has ``arcs``. `psgnn.read_graph` and `Graph.from_edges` make it.

    Args:
        adjacency: The edges without direction.
        node_names: A name for every node; the numbers of the nodes if None.
        x: Node features ``[N, F]``, or None.
        y: The class of every node, integers ``[N]``, or None; a class below 0 is unknown.
        split: A published split of the links: arrays of pairs ``[2, P]`` by OGB's names, such as ``test_edge``.
        reading: What was read and what became of it, where the graph comes from `psgnn.read_graph`.
        lengths: The length of every edge, ``[E]`` in the order of `edges`, positive; None where distances are hops.
        arcs: The directed edges ``[2, E]``, sorted by source and target; None where the graph is undirected.
        strengths: The strength of every edge, ``[E]``, positive, or None.
        times: When every edge was first seen, seconds since 1970, ``[E]``, or None.
        last_times: When every edge was last seen, ``[E]``, or None.
        sides: The side of every node, 0 or 1, and -1 for nodes that are in no pair, int8 ``[N]``; None where any
            two nodes may be a pair.
        side_names: What the two sides are called.
    """

    adjacency: Adjacency
    node_names: Sequence[str] | None = None
    x: npt.NDArray[Any] | None = None
    y: npt.NDArray[Any] | None = None
    split: Mapping[str, IntArray] = field(default_factory=dict)
    reading: Reading | None = None
    lengths: npt.NDArray[np.float64] | None = None
    arcs: IntArray | None = None
    strengths: npt.NDArray[np.float64] | None = None
    times: npt.NDArray[np.float64] | None = None
    last_times: npt.NDArray[np.float64] | None = None
    sides: npt.NDArray[np.int8] | None = None
    side_names: tuple[str, str] = ("source", "target")

    @classmethod
    def from_edges(
        cls,
        edges: npt.ArrayLike,
        num_nodes: int | None = None,
        *,
        names: Sequence[str] | None = None,
        x: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
    ) -> Graph:
        """Build from edges ``[2, E]`` in any direction; self-loops are dropped and parallel edges merged.

        >>> Graph.from_edges([[0, 1], [1, 2]], names=["ann", "bob", "cy"])
        Graph(nodes=3, edges=2)
        """
        if num_nodes is None and isinstance(names, Sized):
            num_nodes = len(names)
        adjacency = Adjacency.from_edge_index(edges, num_nodes)
        if names is not None:
            names = list_names(names, adjacency.num_nodes)
        features = None if x is None else to_numpy(x)
        if features is not None and features.shape[:1] != (adjacency.num_nodes,):
            raise InputError(
                f"the graph has {adjacency.num_nodes} nodes, but x has the shape {list(features.shape)}; "
                "give each node one row"
            )
        return cls(adjacency, names, features, None if y is None else to_numpy(y))

    @classmethod
    def from_pyg(cls, data: Data) -> Graph:
        """Build from a PyG ``Data``: its ``edge_index``, ``node_names``, ``x``, ``y`` and published split."""
        names = data.get("node_names")
        found = cls.from_edges(
            data.edge_index, pyg_num_nodes(data), names=names, x=data.get("x"), y=data.get("y")
        )
        split = {key: to_numpy(data[key]) for key in OFFICIAL_SPLIT if key in data}
        return replace(found, split=split)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.adjacency.num_nodes

    @property
    def num_edges(self) -> int:
        """E: edges; of a directed graph two opposite edges count twice."""
        return self.adjacency.num_edges if self.arcs is None else self.arcs.shape[1]

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.arcs is not None

    @property
    def kind(self) -> frozenset[str]:
        """What the graph has beyond plain edges: ``directed``, ``strengths``, ``lengths``, ``times``, ``sides``."""
        parts: dict[str, Any] = {"directed": self.arcs, "strengths": self.strengths, "lengths": self.lengths}
        parts |= {"times": self.times, "sides": self.sides}
        return frozenset(name for name, part in parts.items() if part is not None)

    @cached_property
    def names(self) -> list[str]:
        """The name of every node."""
        if self.node_names is None:
            return [str(v) for v in range(self.num_nodes)]
        return list(self.node_names)

    @cached_property
    def edges(self) -> IntArray:
        """Every edge once: int64 ``[2, E]`` with ``u < v``, or source and target of every directed edge."""
        return self.adjacency.edges() if self.arcs is None else self.arcs

    @property
    def edge_columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """What every edge has, by the name of its column."""
        known = {name.removesuffix("s"): getattr(self, name) for name in PER_EDGE}
        return {name: column for name, column in known.items() if column is not None}

    def to_pyg(self) -> Data:
        """The graph as a PyG ``Data`` with both directions of every edge, or the one that it has.

        What edges have is ``edge_strength``, ``edge_length``, ``edge_time`` and ``edge_last_time``, one number per
        column of ``edge_index``. It needs the extra ``train``.
        """
        from psgnn.graph._in_memory import to_pyg

        return to_pyg(self)

    def to_networkx(self) -> networkx.Graph:
        """The graph as a networkx graph whose nodes are the names, directed if it is.

        Classes become the attribute ``y`` of nodes, sides ``side``, and what edges have ``strength``, ``length``,
        ``time`` and ``last_time``.
        """
        from psgnn.graph._in_memory import to_networkx

        return to_networkx(self)

    def to_scipy(self) -> scipy.sparse.csr_array:
        """The adjacency matrix ``[N, N]`` with ones for edges, or with their strengths or lengths.

        It is symmetric; of a directed graph entry ``[u, v]`` is the edge from u to v.
        """
        from psgnn.graph._in_memory import to_scipy

        return to_scipy(self)

    def to_polars(self) -> polars.DataFrame:
        """Every edge once by the names of its ends: the columns ``source`` and ``target``, and what else edges have.

        That is ``length``, ``strength``, and ``time`` and ``last_time`` in seconds since 1970.
        """
        import polars

        names = polars.Series(self.names, dtype=polars.String)
        table = polars.DataFrame({"source": names[self.edges[0]], "target": names[self.edges[1]]})
        return table.with_columns(**self.edge_columns)

    def __repr__(self) -> str:
        parts = [f"nodes={self.num_nodes}", f"edges={self.num_edges}"]
        parts += [] if self.x is None else [f"features={self.x.shape[-1]}"]
        parts += [] if self.y is None else [f"classes={np.unique(self.y[self.y >= 0]).size}"]
        return f"Graph({', '.join(parts + self._kinds())})"

    def _kinds(self) -> list[str]:
        """What edges and nodes carry besides, in words."""
        carried = {
            "directed": self.arcs is not None,
            f"sides {' and '.join(self.side_names)}": self.sides is not None,
            "lengths": self.lengths is not None,
            "strengths": self.strengths is not None,
            "times": self.times is not None,
        }
        return [words for words, has in carried.items() if has]

    def _repr_html_(self) -> str:
        """How large the graph is, of which kind, and its first nodes, for notebooks; names are escaped."""
        degrees = self.adjacency.degrees
        rows = [
            ["nodes", f"{self.num_nodes:,}"],
            ["edges", f"{self.num_edges:,}"],
            ["kind", ", ".join(self._kinds()) or "undirected"],
            [
                "neighbours per node, mean and most",
                f"{degrees.mean():.1f}, {degrees.max():,}" if degrees.size else "-",
            ],
            ["nodes without a link", f"{int((degrees == 0).sum()):,}"],
            ["connected components", f"{np.unique(self.adjacency.components).size:,}"],
        ]
        if self.x is not None:
            rows.append(["features per node", str(self.x.shape[-1])])
        if self.y is not None:
            rows.append(["classes", str(np.unique(self.y[self.y >= 0]).size)])
        return html_table("Graph", ["measure", "value"], rows) + html_line(
            f"nodes: {shortened(self.names, 10)}"
        )


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """The disjoint union of ``G`` graphs: graph ``g`` owns the nodes ``ptr[g]:ptr[g + 1]``.

    ``kinds`` has what their edges and nodes carry besides; None where the graphs are plain.
    """

    adjacency: Adjacency
    ptr: IntArray
    kinds: Kinds | None = None

    @classmethod
    def of(cls, graphs: Sequence[Graph | Data]) -> GraphBatch:
        """Lay the graphs side by side, in order."""
        if not graphs:
            raise InputError("no graph was given; pass at least one")
        known = [as_graph(graph) for graph in graphs]
        found = cls.of_adjacencies([graph.adjacency for graph in known])
        kinds = Kinds.of(known, found.ptr)
        return found if kinds is None else replace(found, kinds=kinds)

    @classmethod
    def of_adjacencies(cls, adjacencies: Sequence[Adjacency]) -> GraphBatch:
        """The same from graphs that are adjacencies already, without another look at their edges."""
        ptr = np.concatenate([[0], np.cumsum([adjacency.num_nodes for adjacency in adjacencies])])
        if len(adjacencies) == 1:
            return cls(adjacencies[0], ptr)
        if ptr[-1] > MAX_NODES:
            raise InputError(f"the graphs have {ptr[-1]} nodes together, above {MAX_NODES}; use fewer graphs")
        degrees = np.concatenate([adjacency.degrees for adjacency in adjacencies])
        indptr = np.concatenate([[0], np.cumsum(degrees)])
        indices = [adj.indices + np.int32(start) for adj, start in zip(adjacencies, ptr[:-1], strict=True)]
        return cls(Adjacency(indptr, np.concatenate(indices)), ptr)

    @property
    def num_nodes(self) -> int:
        """Nodes of all graphs together."""
        return int(self.ptr[-1])

    @property
    def num_graphs(self) -> int:
        """G."""
        return self.ptr.size - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Nodes of every graph, ``[G]``."""
        return np.diff(self.ptr)

    @property
    def large(self) -> bool:
        """Whether there is a graph so large that memory and time are saved; many small ones are not."""
        return int(self.sizes.max(initial=0)) >= LARGE_NODES

    def graph(self, g: int) -> Adjacency:
        """Graph ``g`` by itself, its nodes numbered from 0."""
        if self.num_graphs == 1:
            return self.adjacency
        first, last = int(self.ptr[g]), int(self.ptr[g + 1])
        indptr = self.adjacency.indptr[first : last + 1]
        indices = self.adjacency.indices[indptr[0] : indptr[-1]] - np.int32(first)
        return Adjacency(indptr - indptr[0], indices)

    @cached_property
    def graph_of(self) -> IntArray:
        """The graph of every node, ``[N]``."""
        return np.repeat(np.arange(self.num_graphs), self.sizes)


def as_graph(source: Any, what: str = "the graph") -> Graph:
    """A `Graph` as it is, a PyG ``Data`` converted; anything else is an error that names `read_graph`."""
    if isinstance(source, Graph):
        return source
    if getattr(source, "edge_index", None) is None:
        raise InputError(f"{what} is a {type(source).__name__}; psgnn.read_graph makes a Graph of it")
    return Graph.from_pyg(source)


def pyg_num_nodes(data: Data) -> int | None:
    """The number of nodes of a PyG ``Data``, or None where its edges have to say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns where it takes num_nodes from the edges
        try:
            found = data.num_nodes
        except (NotImplementedError, RuntimeError, TypeError, AttributeError):
            return None  # torch has no maximum of this type
    if found is not None and not isinstance(found, Integral):
        raise InputError(f"the Data has num_nodes={found!r}, which is not an integer; correct it")
    return None if found is None else int(found)


def to_numpy(values: Any) -> npt.NDArray[Any]:
    """An array of anything that NumPy takes, and of tensors on any device."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            # NumPy has no bfloat16, and half precision is slow to sort.
            return np.asarray(values.float() if str(values.dtype) in HALF_PRECISION else values)
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, a sparse tensor
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"a {type(values).__name__} is not an array of numbers ({reason})") from None


def node_classes(graph: Graph) -> IntArray | None:
    """The class of every node, int64 ``[N]``, or None if ``y`` is not one integer per node."""
    y = None if graph.y is None else to_numpy(graph.y)
    if y is None or y.dtype.kind not in "iu" or y.shape not in ((graph.num_nodes,), (graph.num_nodes, 1)):
        return None
    return y.astype(np.int64).reshape(-1)


def list_names(names: Any, num_nodes: int) -> list[str]:
    """Names that were given for nodes, in a list, checked."""
    if isinstance(names, (str, Mapping, Set)) or not isinstance(names, Iterable):
        raise InputError(f"node_names is a {type(names).__name__}; give a list with a name for every node")
    listed = [str(name) for name in names]
    check_names(listed, num_nodes)
    return listed


def check_names(names: Sequence[str], num_nodes: int) -> None:
    """Complain about names that are too few, too many or not unique."""
    if len(names) != num_nodes:
        raise InputError(f"there are {len(names)} node_names for {num_nodes} nodes; give each node one")
    if len(set(names)) < len(names):
        name, times = Counter(names).most_common(1)[0]
        raise InputError(f"{times} nodes are called '{name}'; give each node a name of its own")
